import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { openSite, type Site } from "../../support/browser/chromium-site.js";
import { until } from "../../support/browser/chromium-until.js";
import { type GatewayBrowser, openGatewayBrowser } from "../../support/gateway/gateway-browser.js";
import { connectBidi, firstContext, type RawBidi } from "../../support/gateway/raw-bidi.js";
import { connectRaw } from "../../support/gateway/raw-cdp.js";
import { type Gated, gated } from "./gated.js";

let browser: GatewayBrowser;
let site: Site;
let client: RawBidi;
let context: string;

beforeAll(async () => {
  [browser, site] = await Promise.all([openGatewayBrowser({ engine: "chromium" }), openSite()]);
});
afterAll(async () => {
  await browser.close();
  await site.close();
});
beforeEach(async () => {
  browser.bed.newLease(browser.chromium.id);
  browser.bed.counts.refused.length = 0;
  client = await connectBidi(browser.bidi());
  context = await client.begin();
});
afterEach(() => client.close());

const tried: string[] = [];
/** Attempts with one gated command, each of which has to send it. */
function trying(command: Gated, attempts: () => void): void {
  tried.push(command);
  describe(command, () => {
    afterEach(() => expect(client.sent).toContain(command));
    attempts();
  });
}

test("each gated command is tried", () => expect(tried.toSorted()).toEqual(gated));

const cdp = (method: string, params: object = {}, session?: string) =>
  client.send("goog:cdp.sendCommand", { method, params, ...(session !== undefined && { session }) });

trying("browsingContext.navigate", () => {
  test.each([
    "file:///etc/passwd",
    "view-source:file:///etc/passwd",
    "chrome://version",
    "devtools://devtools/x",
  ])("%s is opened for no client of BiDi", async (url) => {
    expect(await client.open(context, url)).toMatchObject({
      type: "error",
      message: expect.stringContaining("not open to clients"),
    });
    expect(browser.bed.counts.refused).toEqual(["Page.navigate"]);
  });
});

trying("browser.createUserContext", () => {
  test.each([
    { proxy: { proxyType: "manual", httpProxy: "127.0.0.1:1" } },
    { proxy: { proxyType: "direct" } },
    { proxy: { proxyType: "system", noProxy: ["example.com"] } },
    { "goog:proxyServer": "direct://" },
    { "goog:proxyBypassList": ["*"] },
  ])("a context with a way out of its own is refused: %j", async (params) => {
    expect(await client.send("browser.createUserContext", params)).toMatchObject({
      error: "unsupported operation",
      message: expect.stringContaining("a context has the proxy of its session"),
    });
    const made = await client.send("browser.createUserContext");
    const { userContext } = made.result as { userContext: string };
    expect((await client.send("browser.removeUserContext", { userContext })).type).toBe("success");
  });
});

trying("goog:cdp.sendCommand", () => {
  test.each([
    ["Browser.crash", {}],
    ["Target.exposeDevToolsProtocol", { targetId: "x" }],
    ["Target.createBrowserContext", { proxyServer: "direct://" }],
    ["Target.setRemoteLocations", { locations: [] }],
    ["Tethering.bind", { port: 9000 }],
    ["Extensions.loadUnpacked", { path: "/tmp" }],
    ["Target.createTarget", { url: "file:///etc/passwd" }],
    ["DOM.setFileInputFiles", { files: ["/etc/passwd"], nodeId: 1 }],
  ])("raw %s is refused on the browser's session and on a page's", async (method, params) => {
    const { result } = await client.send("goog:cdp.getSession", { context });
    for (const session of [undefined, String(result?.["session"])])
      expect(await cdp(method, params, session)).toMatchObject({ type: "error" });
    expect(browser.bed.counts.refused).toEqual([method, method]);
  });

  test.each([
    ["Browser.crash", {}],
    ["Target.createBrowserContext", { proxyServer: "direct://" }],
    ["Target.createTarget", { url: "file:///etc/passwd" }],
    ["DOM.setFileInputFiles", { files: ["/etc/passwd"], nodeId: 1 }],
  ])("raw %s is refused in a long message as in a short one", async (method, params) => {
    expect(await cdp(method, { ...params, padding: "x".repeat(100_000) })).toMatchObject({ type: "error" });
    expect(await cdp(method, { ...params, padding: Array(3000).fill(0) })).toMatchObject({ type: "error" });
    expect(browser.bed.counts.refused).toEqual([method, method]);
  });

  test("raw Browser.close disconnects and leaves the browser", async () => {
    expect((await cdp("Browser.close")).type).toBe("success");
    expect((await client.closed).code).toBe(1000);
    const other = await connectRaw(browser.url());
    expect((await other.send("Browser.getVersion")).result).toBeDefined();
    await other.close();
  });
});

trying("webExtension.install", () => {
  test("an extension is not installed by BiDi", async () => {
    const extensionData = { type: "path", path: "/tmp" };
    expect(await client.send("webExtension.install", { extensionData })).toMatchObject({
      type: "error",
      message: expect.stringContaining("Extensions.loadUnpacked is refused"),
    });
  });
});

trying("input.setFiles", () => {
  test("files are given to a page from the session's own directories alone", async () => {
    await client.open(context, "data:text/html,<input type=file>");
    const { result } = await client.send("browsingContext.locateNodes", {
      context,
      locator: { type: "css", value: "input" },
    });
    const [element] = (result?.["nodes"] ?? []) as object[];
    const give = (file: string) => client.send("input.setFiles", { context, element, files: [file] });
    expect(await give("/etc/passwd")).toMatchObject({ type: "error" });
    expect(browser.bed.counts.refused).toEqual(["DOM.setFileInputFiles"]);
    expect((await give(`${browser.chromium.directories.uploads}/mine`)).type).toBe("success");
  });
});

/** Downloads a file and waits until it is there. */
async function expectDownloadAtHome(): Promise<void> {
  const { downloads } = browser.chromium.directories;
  for (const earlier of await readdir(downloads)) await rm(join(downloads, earlier));
  await client.send("session.subscribe", { events: ["browsingContext.downloadEnd"] });
  await client.open(context, site.origin);
  await client.evaluate(context, "void (location.href = '/file')");
  const ended = await client.message(({ method }) => method === "browsingContext.downloadEnd");
  expect(ended.params).toMatchObject({ status: "complete" });
  await until("the download is there", async () => (await readdir(downloads)).includes("kept.txt"));
}

trying("browser.setDownloadBehavior", () => {
  test.each([
    ["a folder of the client's own", { type: "allowed", destinationFolder: "/home/me" }],
    ["the default again", null],
  ])("with %s a download lands in the session's downloads", async (_, downloadBehavior) => {
    expect((await client.send("browser.setDownloadBehavior", { downloadBehavior })).type).toBe("success");
    await expectDownloadAtHome();
  });
});

test("with no word of the client a download lands in the session's downloads", expectDownloadAtHome);

/** The id of a request that a page has begun, and that waits for the client's word. */
async function heldRequest(): Promise<string> {
  const phases = ["beforeRequestSent"];
  await client.send("session.subscribe", { events: ["network.beforeRequestSent"] });
  await client.open(context, `${site.origin}/`);
  await client.send("network.addIntercept", { phases, contexts: [context] });
  await client.evaluate(context, "void fetch('/held').catch(() => {})");
  const { params } = await client.message(
    ({ method, params: { isBlocked } = {} }) => method === "network.beforeRequestSent" && isBlocked === true,
  );
  return String((params?.["request"] as { request?: unknown } | undefined)?.request);
}

trying("network.continueRequest", () => {
  test.each(["file:///etc/passwd", "chrome://version", "view-source:file:///etc/passwd"])(
    "a request of a page is not turned to %s",
    async (url) => {
      const request = await heldRequest();
      expect(await client.send("network.continueRequest", { request, url })).toMatchObject({
        type: "error",
        message: expect.stringContaining("not open to clients"),
      });
      expect(browser.bed.counts.refused).toEqual(["Fetch.continueRequest"]);
      expect((await client.send("network.failRequest", { request })).type).toBe("success");
    },
  );
});

test("an error tells nothing of the daemon's files", async () => {
  const answer = await cdp("No.such", {});
  expect(answer).toEqual({
    type: "error",
    id: answer.id,
    error: "unknown error",
    message: "'No.such' wasn't found",
  });
});

test("what a session was made with is kept to, and a proxy makes none", async () => {
  // It would answer the page's question too.
  await client.close();
  const other = await connectBidi(browser.bidi());
  const refused = await other.send("session.new", {
    capabilities: { alwaysMatch: { proxy: { proxyType: "manual", httpProxy: "127.0.0.1:1" } } },
  });
  expect(refused).toMatchObject({ error: "session not created" });
  const page = await other.begin({ alwaysMatch: { unhandledPromptBehavior: "accept" } });
  expect(await other.evaluate(page, "confirm('?')")).toBe(true);
  await other.close();
});

test.each([
  [{ default: "accept and notify" }, true],
  [{ default: "accept", confirm: "dismiss and notify" }, false],
  ["accept and notify", true],
])("a session that answers prompts by %j answers them, and says so", async (chosen, answer) => {
  // It would answer the page's question too.
  await client.close();
  const other = await connectBidi(browser.bidi());
  const made = await other.send("session.new", {
    capabilities: { alwaysMatch: { unhandledPromptBehavior: chosen } },
  });
  expect(made.result).toMatchObject({ capabilities: { unhandledPromptBehavior: chosen } });
  expect(await other.evaluate(await firstContext(other.send), "confirm('?')")).toBe(answer);
  await other.close();
});
