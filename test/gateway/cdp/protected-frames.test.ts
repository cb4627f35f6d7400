import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { engines } from "../../support/browser/chromium-kinds.js";
import { until } from "../../support/browser/chromium-until.js";
import type { FillSite } from "../../support/browser/fill/fill-bed.js";
import type { GatewayBrowser } from "../../support/gateway/gateway-browser.js";
import { openPageBesideSite, type PageBesideSite } from "../../support/gateway/page-beside-site.js";
import type { RawCdp } from "../../support/gateway/raw-cdp.js";

const why = /is refused until the page's next navigation/;
const goesBack = `<script>if (!sessionStorage.went) { sessionStorage.went = 1; history.back(); }</script>`;
const body = `<form action="/next"><input id="user"></form><p id="echo"></p><iframe src="/frame"></iframe>`;

// Frames and history are the document's, not its window's.
describe.each(engines)("a page of %s that is protected", (_, spec) => {
  let bed: PageBesideSite;
  let browser: GatewayBrowser;
  let site: FillSite;
  let client: RawCdp;
  let page: string;
  let session: string;
  beforeAll(async () => {
    bed = await openPageBesideSite(spec);
    ({ browser, site, client, page } = bed);
    site.serve({ body, others: { "/frame": "a frame", "/next": "next", "/back": goesBack } });
    session = await client.attach(page);
    await client.send("Page.enable", {}, session);
  });
  afterAll(() => bed.close());
  beforeEach(() => open("/"));

  async function open(path: string): Promise<void> {
    await client.send("Page.navigate", { url: `${site.here}${path}` }, session);
    await until("it is loaded", async () => {
      const at = await client.evaluate("document.readyState + location.pathname", session);
      return at === `complete${path}`;
    });
  }

  /** As a node does once it has filled the page. */
  async function protect(): Promise<void> {
    const { filled, holds } = browser.bed.local(browser.chromium.id).bridge;
    const over = (): void => filled.remove(page);
    const hold = (): (() => void) => holds.hold([page]);
    await browser.chromium.watchNavigation({ page, hasClients: () => true, hold, over });
    filled.add(page, [page], {});
  }

  test("has no frame of it navigated, and no script planted, which would read the page around them", async () => {
    const { result } = await client.send("Page.getFrameTree", {}, session);
    const tree = result?.["frameTree"] as { childFrames?: { frame: { id: string } }[] } | undefined;
    const frameId = tree?.childFrames?.[0]?.frame.id;
    await protect();
    for (const [method, params] of [
      ["Page.addScriptToEvaluateOnNewDocument", { source: "leak(parent.user.value)" }],
      ["Page.navigate", { url: `${site.here}/next`, frameId }],
    ] as const)
      expect((await client.send(method, params, session)).error?.message).toMatch(why);
    await open("/next");
  });

  test("is not gone back to: neither what it was nor what stood in its fields is shown again", async () => {
    await client.evaluate(`user.value = "secret-1"`, session);
    await protect();
    await open("/next");
    const { result } = await client.send("Page.getNavigationHistory", {}, session);
    expect(result?.["entries"]).toHaveLength(1);
    await client.evaluate("history.back()", session);
    await client.evaluate("new Promise((resolve) => requestAnimationFrame(resolve))", session);
    expect(await client.evaluate("location.pathname", session)).toBe("/next");
  });

  test("is not read where the next document goes back at once", async () => {
    await client.evaluate(`user.value = "secret-1"`, session);
    await protect();
    await client.send("Page.navigate", { url: `${site.here}/back` }, session);
    // Chromium with windows has no time for it; else the page is back, and what asks waits for the history.
    const read = "location.pathname + (self.user?.value ?? '')";
    expect([undefined, "/back"]).toContain(await client.evaluate(read, session));
    await until("the next is read", async () => {
      // One that is on its way back does not go on.
      await client.send("Page.navigate", { url: `${site.here}/next` }, session);
      return (await client.evaluate(read, session)) === "/next";
    });
  });
});
