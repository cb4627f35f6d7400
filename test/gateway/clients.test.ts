import { readdir } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { chromium as playwright } from "playwright-core";
import { connect as connectPuppeteer } from "puppeteer-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { until } from "../support/browser/chromium-until.js";
import { type GatewayBrowser, openGatewayBrowser } from "../support/gateway/gateway-browser.js";
import { connectRaw, type RawCdp } from "../support/gateway/raw-cdp.js";

describe.each(["headless-shell", "chromium"] as const)("clients of %s", (engine) => {
  let browser: GatewayBrowser;
  let observer: RawCdp;
  let site: Server;
  let siteUrl: string;

  beforeAll(async () => {
    browser = await openGatewayBrowser({ engine });
    observer = await connectRaw(browser.url());
    site = createServer((request, response) => {
      if (request.url === "/file")
        response.setHeader("content-disposition", "attachment; filename=report.txt");
      response
        .setHeader("content-type", "text/html")
        .end(`<title>site</title><a href=/file download>get</a><input type=file>`);
    });
    await new Promise<void>((resolve) => site.listen(0, "127.0.0.1", resolve));
    siteUrl = `http://127.0.0.1:${(site.address() as AddressInfo).port}/`;
  });

  afterAll(async () => {
    await browser.close();
    site.closeAllConnections();
    await new Promise((resolve) => site.close(resolve));
  });

  const contexts = async (): Promise<string[]> =>
    (await observer.send("Target.getBrowserContexts")).result?.browserContextIds as string[];

  test("unmodified Playwright opens a context of its own and drives a page in it", async () => {
    const client = await playwright.connectOverCDP(browser.url());
    const context = await client.newContext();
    const page = await context.newPage();
    await page.goto(siteUrl);
    expect(await page.title()).toBe("site");
    expect(await contexts()).toHaveLength(1);
    await client.close();
    await until("the expected number", async () => (await contexts()).length === 0);
  });

  test("Playwright finds the browser through the discovery path and drives the page that is open", async () => {
    const client = await playwright.connectOverCDP(browser.http());
    const page = client.contexts()[0]?.pages()[0];
    await page?.goto(siteUrl);
    expect(await page?.title()).toBe("site");
    await client.close();
  });

  test("a download in Playwright's own context lands in the session's downloads", async () => {
    const client = await playwright.connectOverCDP(browser.url());
    const page = await (await client.newContext()).newPage();
    await page.goto(siteUrl);
    const [download] = await Promise.all([page.waitForEvent("download"), page.click("a")]);
    expect(download.suggestedFilename()).toBe("report.txt");
    await until(
      "the expected number",
      async () => (await readdir(browser.chromium.directories.downloads)).length === 1,
    );
    await client.close();
  });

  test("Playwright hands a file to an input without naming a path", async () => {
    const client = await playwright.connectOverCDP(browser.url());
    const page = await (await client.newContext()).newPage();
    await page.goto(siteUrl);
    await page.setInputFiles("input", {
      name: "a.txt",
      mimeType: "text/plain",
      buffer: Buffer.from("hello"),
    });
    expect(await page.evaluate("document.querySelector('input').files[0].text()")).toBe("hello");
    await client.close();
  });

  test("unmodified Puppeteer connects by WebSocket and drives a page", async () => {
    const client = await connectPuppeteer({ browserWSEndpoint: browser.url() });
    const page = await (await client.createBrowserContext()).newPage();
    await page.goto(siteUrl);
    expect(await page.title()).toBe("site");
    await page.browserContext().close();
    await client.disconnect();
  });

  test("Playwright, Puppeteer and a raw client work at once and see each other's pages", async () => {
    const [first, second, raw] = await Promise.all([
      playwright.connectOverCDP(browser.url()),
      connectPuppeteer({ browserWSEndpoint: browser.url() }),
      connectRaw(browser.url()),
    ]);
    const page = await (await first.newContext()).newPage();
    await page.goto(siteUrl);
    const work = Array.from({ length: 50 }, async (_, i) => {
      const other = (await second.pages())[0];
      return [
        await page.evaluate(`${i}+1`),
        await other?.evaluate(`${i}+2`),
        (await raw.send("Browser.getVersion")).id,
      ];
    });
    const seen = await Promise.all(work);
    expect(seen.map(([a, b]) => [a, b])).toEqual(Array.from({ length: 50 }, (_, i) => [i + 1, i + 2]));
    const targets = (await raw.send("Target.getTargets")).result?.targetInfos as { url: string }[];
    expect(targets.map(({ url }) => url)).toContain(siteUrl);
    await Promise.all([first.close(), second.disconnect(), raw.close()]);
  });

  test("a leaving client takes its contexts along and nobody else's", async () => {
    await until("those of earlier clients are gone", async () => (await contexts()).length === 0);
    const [staying, leaving] = await Promise.all([connectRaw(browser.url()), connectRaw(browser.url())]);
    const kept = (await staying.send("Target.createBrowserContext", { disposeOnDetach: true })).result
      ?.browserContextId;
    await leaving.send("Target.createBrowserContext", { disposeOnDetach: true });
    expect(await contexts()).toHaveLength(2);
    await leaving.close();
    await until("the expected number", async () => (await contexts()).length === 1);
    expect(await contexts()).toEqual([kept]);
    await staying.close();
    await until("the expected number", async () => (await contexts()).length === 0);
  });

  test("a session attached through a nested browser session belongs to the client that attached it", async () => {
    const raw = await connectRaw(browser.url());
    const nested = String((await raw.send("Target.attachToBrowserTarget")).result?.sessionId);
    const infos = (await raw.send("Target.getTargets", {}, nested)).result?.targetInfos as {
      targetId: string;
      type: string;
    }[];
    const targetId = infos.find(({ type }) => type === "page")?.targetId;
    const page = String(
      (await raw.send("Target.attachToTarget", { targetId, flatten: true }, nested)).result?.sessionId,
    );
    expect(await raw.evaluate("6*7", page)).toBe(42);
    await raw.close();
  });

  test("a client that attaches without flatten gets the answer of the command its message carries, unless the gate refuses it", async () => {
    const raw = await connectRaw(browser.url());
    const infos = (await raw.send("Target.getTargets")).result?.targetInfos as {
      targetId: string;
      type: string;
    }[];
    const targetId = infos.find(({ type }) => type === "page")?.targetId;
    const sessionId = (await raw.send("Target.attachToTarget", { targetId, flatten: false })).result
      ?.sessionId;
    const carry = (command: object): Promise<unknown> =>
      raw.send("Target.sendMessageToTarget", { sessionId, message: JSON.stringify(command) });
    await carry({ id: 5, method: "Runtime.evaluate", params: { expression: "6*7" } });
    const event = await raw.message(({ method }) => method === "Target.receivedMessageFromTarget");
    expect(event.params).toMatchObject({ sessionId, targetId });
    expect(JSON.parse(String(event.params?.message))).toMatchObject({
      id: 5,
      result: { result: { value: 42 } },
    });
    expect(
      await carry({ id: 6, method: "Page.navigate", params: { url: "file:///etc/passwd" } }),
    ).toHaveProperty("error");
    await raw.close();
  });

  test("one client's session is unknown to another", async () => {
    const [owner, other] = await Promise.all([connectRaw(browser.url()), connectRaw(browser.url())]);
    const session = await owner.attach();
    const reply = await other.send("Runtime.evaluate", { expression: "1" }, session);
    expect(reply.error).toEqual({ code: -32001, message: "Session with given id not found." });
    await Promise.all([owner.close(), other.close()]);
  });
});
