import { chromium as playwright } from "playwright-core";
import { connect as connectPuppeteer } from "puppeteer-core";
import type { Lease } from "../daemon/daemon.js";

/** What no event may have in it: in what is typed, in addresses, scripts, paths and names of files. */
export const secret = "zqsecretzq";
export const secretPage = `<!doctype html><title>${secret}</title>
<body onkeydown="window.${secret} = 1"><button onclick="document.title = prompt('${secret}')">press</button>
<input id=text><input id=file type=file></body>`;
/** Where a site shows the page, at an address that has it too. */
export const secretPath = `/${secret}?token=${secret}#${secret}`;

interface Driven {
  readonly url: string;
  /** A file of the session that can be uploaded. */
  readonly file: string;
}

/**
 * Clicks, types, answers a dialog, uploads, evaluates and takes a screenshot, with the secret wherever it
 * goes.
 */
export async function drivePlaywright({ cdp_ws_url }: Lease, { url, file }: Driven): Promise<void> {
  const client = await playwright.connectOverCDP(cdp_ws_url);
  const opened = await (await client.newContext()).newPage();
  await opened.goto(url);
  opened.on("dialog", (dialog) => void dialog.accept(secret));
  await opened.click("button");
  await opened.dblclick("#text");
  await opened.fill("#text", secret);
  await opened.locator("#text").pressSequentially("ab");
  await opened.keyboard.press("Enter");
  await opened.setInputFiles("#file", file);
  await opened.evaluate(`window.a = "${secret}"`);
  await opened.screenshot({ type: "jpeg" });
  await opened.close();
  await client.close();
}

/** The same by Puppeteer. */
export async function drivePuppeteer({ cdp_ws_url }: Lease, { url, file }: Driven): Promise<void> {
  const client = await connectPuppeteer({ browserWSEndpoint: cdp_ws_url });
  const opened = await (await client.createBrowserContext()).newPage();
  await opened.goto(url);
  opened.on("dialog", (dialog) => void dialog.accept(secret));
  await opened.click("button");
  await opened.type("#text", "ab");
  await opened.keyboard.press("Enter");
  const input = await opened.$("#file");
  await (input as unknown as { uploadFile(path: string): Promise<void> }).uploadFile(file);
  await opened.evaluate(`window.a = "${secret}"`);
  await opened.screenshot();
  await opened.browserContext().close();
  await client.disconnect();
}
