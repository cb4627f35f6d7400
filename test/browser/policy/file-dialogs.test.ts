import { readdirSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Chromium } from "../../../src/browser/chromium.js";
import { cards, openXClient, request, type XClient } from "../../../src/browser/display/x-client.js";
import type { BrowserHost } from "../../../src/browser/host.js";
import { PipeClient } from "../../support/browser/chromium-client.js";
import { openTestHost } from "../../support/browser/chromium-host.js";
import { makeLauncher } from "../../support/browser/chromium-launcher.js";
import { until } from "../../support/browser/chromium-until.js";

let host: BrowserHost;
const { launch, killAll } = makeLauncher(() => host);
/** Chromium takes what is said by the file whose name sorts last. */
const allowing = new Map([["managed/zzz.json", JSON.stringify({ AllowFileSelectionDialogs: true })]]);
const { launch: launchAllowing, killAll: killAllowing } = makeLauncher(() => ({
  ...host,
  machinePolicies: allowing,
}));
beforeAll(async () => {
  host = await openTestHost();
});
afterAll(async () => {
  await killAll();
  await killAllowing();
  await host.close();
});

/** A client of the browser's display, with the cookie from its authority file (Xau(3)). */
async function displayOf({ directories }: Chromium): Promise<XClient> {
  const [socket = ""] = readdirSync(directories.display);
  const cookie = (await readFile(directories.authority)).subarray(-16);
  return await openXClient(join(directories.display, socket), cookie);
}

const queryTree = 15;
const windowAttributes = 3;
const isViewable = 2;

/** The windows at the top of the display that are shown, by their numbers. */
async function windowsOf(display: XClient): Promise<readonly number[]> {
  const tree = await display.ask(request(queryTree, 0, cards(4, display.root)));
  const shown: number[] = [];
  for (let at = 0; at < tree.readUInt16LE(16); at += 1) {
    const window = tree.readUInt32LE(32 + 4 * at);
    // One that has gone meanwhile is answered with an error.
    const attributes = await display
      .ask(request(windowAttributes, 0, cards(4, window)))
      .catch(() => undefined);
    if (attributes?.[26] === isViewable) shown.push(window);
  }
  return shown;
}

const page = `data:text/html,${encodeURIComponent(`<!doctype html>
<input type=file style="position:fixed;inset:0;width:100vw;height:100vh"><script>
  document.querySelector("input").addEventListener("cancel", () => (document.title = "cancelled"));
  addEventListener("click", () => (window.clicked = true));
</script>`)}`;

/** Clicks into the field as a person does. Gives the display, and the windows it showed before. */
async function clickOn(
  chromium: Chromium,
): Promise<{
  readonly before: readonly number[];
  readonly display: XClient;
  readonly title: () => Promise<unknown>;
}> {
  const client = new PipeClient(chromium);
  const session = await client.attach();
  await client.open(page, session);
  const display = await displayOf(chromium);
  const before = await until("the browser's window", async () => {
    const found = await windowsOf(display);
    return found.length > 0 ? found : undefined;
  });
  const at = { x: 60, y: 10, button: "left", clickCount: 1 };
  // Chromium drops what is clicked before a page's first frame.
  await until("the click", async () => {
    for (const type of ["mousePressed", "mouseReleased"])
      await client.send("Input.dispatchMouseEvent", { type, ...at }, session);
    return (await client.evaluate("window.clicked === true", session)) === true;
  });
  return { before, display, title: () => client.evaluate("document.title", session) };
}

test("a click on a file field opens no dialog on the display: the page is told that nobody chose", async () => {
  const chromium = await launch({ engine: "chromium", headless: false });
  const { before, display, title } = await clickOn(chromium);
  await until("that it is cancelled", async () => (await title()) === "cancelled");
  expect(await windowsOf(display)).toEqual(before);
  display.close();
});

test("the control: where policy allows dialogs the same click opens one", async () => {
  const chromium = await launchAllowing({ engine: "chromium", headless: false });
  const { before, display } = await clickOn(chromium);
  await until("a dialog", async () => (await windowsOf(display)).length > before.length);
  display.close();
});
