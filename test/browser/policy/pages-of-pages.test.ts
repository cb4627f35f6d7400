import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { BrowserHost } from "../../../src/browser/host.js";
import { PipeClient, type Target } from "../../support/browser/chromium-client.js";
import { openTestHost } from "../../support/browser/chromium-host.js";
import { engines } from "../../support/browser/chromium-kinds.js";
import { makeLauncher } from "../../support/browser/chromium-launcher.js";
import { until } from "../../support/browser/chromium-until.js";

/** A page that both engines have comes first. */
const own = [
  "chrome://blob-internals",
  "chrome://process-internals",
  "chrome://version",
  "chrome://settings",
  "chrome-untrusted://print",
  "devtools://devtools/bundled/inspector.html",
  "view-source:chrome://blob-internals",
  "about:version",
  "chrome-extension://mhjfbmdgcfjbbpaeojofohoefgiehjai/index.html",
];

let host: BrowserHost;
let site: Server;
let origin: string;
/** The paths of all that was asked for. */
const heard = new Set<string>();
/** Policy closes no address: nothing is judged here but by Chromium itself. */
const open = new Map([["managed/zzz.json", JSON.stringify({ URLBlocklist: [] })]]);
const { launch, killAll } = makeLauncher(() => ({ ...host, machinePolicies: open }));
beforeAll(async () => {
  host = await openTestHost();
  site = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? "/", "http://here");
    heard.add(pathname);
    const to = searchParams.get("to");
    if (to !== null) return response.writeHead(302, { location: to }).end();
    return response.setHeader("content-type", "text/html").end("<!doctype html><title>site</title>");
  });
  await new Promise<void>((resolve) => site.listen(0, "127.0.0.1", resolve));
  origin = `http://127.0.0.1:${(site.address() as AddressInfo).port}`;
});
afterAll(async () => {
  await killAll();
  site.closeAllConnections();
  site.close();
  await host.close();
});

interface FrameTree {
  readonly frame: { readonly id: string };
  readonly childFrames?: readonly FrameTree[];
}

/** A page of the web, which does what any may. */
class Page {
  private constructor(
    private readonly client: PipeClient,
    readonly session: string,
  ) {}

  static async open(client: PipeClient): Promise<Page> {
    const { targetId } = await client.send("Target.createTarget", { url: "about:blank" });
    const page = new Page(client, await client.attach(targetId as string));
    await client.open(`${origin}/`, page.session);
    return page;
  }

  evaluate(expression: string): Promise<unknown> {
    return this.client.evaluate(expression, this.session);
  }

  /** Each with a gesture of its own: Chromium opens one window for a gesture. */
  async evaluateForEach(urls: readonly string[], script: (url: string) => string): Promise<void> {
    for (const url of urls) await this.evaluate(`void ${script(JSON.stringify(url))}`);
  }

  async tree(): Promise<FrameTree> {
    return (await this.client.send("Page.getFrameTree", {}, this.session))["frameTree"] as FrameTree;
  }

  async setContent(html: string, frameId?: string): Promise<void> {
    const frame = frameId ?? (await this.tree()).frame.id;
    await this.client.send("Page.setDocumentContent", { frameId: frame, html }, this.session);
  }
}

interface World {
  readonly id: number;
  readonly auxData: { readonly isDefault: boolean };
}
const powers = `document.readyState === "complete" &&
  [location.protocol, typeof chrome === "object" && typeof chrome.send, typeof Mojo, location.href].join()`;

const framing = (urls: readonly string[]): string =>
  urls
    .map((url) => `<iframe src="${url}"></iframe><object data="${url}"></object><embed src="${url}">`)
    .join("");
const refreshing = (url: string): string => `<meta http-equiv=refresh content="0;url=${url}">`;

type Attempt = (page: Page, urls: readonly string[]) => Promise<unknown>;
const attempts: Readonly<Record<string, Attempt>> = {
  "frames, objects and embeds by Page.setDocumentContent": (page, urls) => page.setContent(framing(urls)),
  "the same by document.write, as page.setContent has it": (page, urls) =>
    page.evaluate(`document.open(); document.write(${JSON.stringify(framing(urls))}); document.close()`),
  "links by Page.setDocumentContent": async (page, urls) => {
    await page.setContent(urls.map((url) => `<a target=_blank href="${url}">a</a>`).join(""));
    await page.evaluateForEach(
      urls,
      (url) => `[...document.links].find((a) => a.getAttribute("href") === ${url}).click()`,
    );
  },
  "forms by Page.setDocumentContent": async (page, urls) => {
    await page.setContent(urls.map((url) => `<form target=_blank action="${url}"></form>`).join(""));
    await page.evaluateForEach(
      urls,
      (url) => `[...document.forms].find((f) => f.getAttribute("action") === ${url}).submit()`,
    );
  },
  "window.open": (page, urls) => page.evaluateForEach(urls, (url) => `open(${url})`),
  "a redirect of a window that it opens": (page, urls) =>
    page.evaluateForEach(urls, (url) => `open("/?to=" + encodeURIComponent(${url}))`),
  "a blank window that it sends there": (page, urls) =>
    page.evaluateForEach(urls, (url) => `(open("about:blank").location.href = ${url})`),
  "a blank window that it writes a refresh into": (page, urls) =>
    page.evaluateForEach(
      urls.map(refreshing),
      (html) => `((written) => { written.write(${html}); written.close(); })(open("about:blank").document)`,
    ),
  "a refresh of its frames by Page.setDocumentContent": async (page, urls) => {
    await page.setContent("<iframe></iframe>".repeat(urls.length));
    const { childFrames = [] } = await page.tree();
    for (const [at, url] of urls.entries()) await page.setContent(refreshing(url), childFrames[at]?.frame.id);
  },
};

// Past the gate, and without the policy that closes such pages.
describe.each(engines)("in %s no page of the web comes to a page of the browser's own by", (_name, given) => {
  let client: PipeClient;
  beforeAll(async () => {
    client = new PipeClient(await launch(given));
  });

  const targets = async (): Promise<readonly Target[]> =>
    ((await client.send("Target.getTargets", { filter: [{}] }))["targetInfos"] as Target[]).filter(
      ({ type }) => type !== "tab" && type !== "browser",
    );
  /** The main worlds of a page and of its frames in the same process; other frames are targets. */
  async function worldsOf(session: string): Promise<readonly number[]> {
    await client.send("Runtime.enable", {}, session);
    return client.events.flatMap(({ method, sessionId, params }) => {
      if (method !== "Runtime.executionContextCreated" || sessionId !== session) return [];
      const world = params?.["context"] as World | undefined;
      return world?.auxData.isDefault === true ? [world.id] : [];
    });
  }

  /** What the scripts of its frames have, once they are loaded; nothing of one that has gone. */
  async function powersOf({ targetId }: Target): Promise<readonly string[]> {
    return await until(`what ${targetId} can do`, async () => {
      if (!(await targets()).some((each) => each.targetId === targetId)) return [];
      const session = await client.attach(targetId);
      const asked = (await worldsOf(session)).map((contextId) =>
        client.send("Runtime.evaluate", { expression: powers, contextId, returnByValue: true }, session),
      );
      const said = (await Promise.all(asked)).map(({ result }) => (result as { value: unknown }).value);
      return said.length > 0 && said.every((each) => typeof each === "string") ? said : undefined;
    });
  }

  /** An error page in the place of one of the browser's own has none of its powers. */
  const isPowerful = (said: string): boolean =>
    /^(?:chrome|chrome-untrusted|devtools|chrome-extension):/.test(said) ||
    !/^[a-z-]+:,(?:undefined|false),undefined,/.test(said);

  async function powerfulOf(found: readonly Target[]): Promise<string[]> {
    return (await Promise.all(found.map(powersOf))).flat().filter(isPowerful);
  }

  test("(the control: over the pipe it is there, with powers)", async () => {
    const { targetId } = await client.send("Target.createTarget", { url: own[0] });
    const found = (await targets()).filter((target) => target.targetId === targetId);
    await until("its powers", async () => (await powerfulOf(found)).length > 0);
    await client.send("Target.closeTarget", { targetId });
  });

  test.each(Object.entries(attempts))("%s", async (_, attempt) => {
    const before = new Set((await targets()).map(({ targetId }) => targetId));
    const page = await Page.open(client);
    // What comes after all of them arrives: the attempt works, and has begun with every one of them.
    const last = `/last-${heard.size}`;
    await attempt(page, [...own, origin + last]);
    await until("the last", () => heard.has(last));
    const made = (await targets()).filter(({ targetId }) => !before.has(targetId));
    expect(await powerfulOf(made)).toEqual([]);
    for (const { targetId } of made) await client.send("Target.closeTarget", { targetId }).catch(() => {});
  });
});
