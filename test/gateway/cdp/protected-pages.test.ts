import { chromium as playwright, type Page } from "playwright-core";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { summarize } from "../../../src/browser/cdp/frame.js";
import type { FillSite } from "../../support/browser/fill/fill-bed.js";
import { login } from "../../support/browser/fill/fill-case.js";
import { kinds } from "../../support/browser/chromium-kinds.js";
import { until } from "../../support/browser/chromium-until.js";
import type { GatewayBrowser } from "../../support/gateway/gateway-browser.js";
import { openPageBesideSite, type PageBesideSite } from "../../support/gateway/page-beside-site.js";
import { connectBidi } from "../../support/gateway/raw-bidi.js";
import type { RawCdp, RawReply } from "../../support/gateway/raw-cdp.js";

const moving = `<p id="moving">0</p><script>
  const move = () => { moving.textContent = Number(moving.textContent) + 1; requestAnimationFrame(move); };
  move();
</script>`;
const why = /is refused until the page's next navigation/;

describe.each(kinds)("a page of %s that is protected", (_, spec) => {
  let bed: PageBesideSite;
  let browser: GatewayBrowser;
  let site: FillSite;
  let client: RawCdp;
  let target: string;
  beforeAll(async () => {
    bed = await openPageBesideSite(spec);
    ({ browser, site, client, page: target } = bed);
  });
  afterAll(() => bed.close());
  beforeEach(() => {
    site.serve({
      body: `${login}<script>onclick = () => history.pushState(0, "", "/step-2")</script>`,
      others: { "/submitted": "welcome", "/next": login },
    });
  });

  /** As a node does before it fills a page. */
  async function protect(): Promise<{ isOver(): boolean }> {
    const { filled, holds } = browser.bed.local(browser.chromium.id).bridge;
    let isOver = false;
    const over = (): void => {
      isOver = true;
      filled.remove(target);
    };
    const hold = (): (() => void) => holds.hold([target]);
    await browser.chromium.watchNavigation({ page: target, hasClients: () => true, hold, over });
    filled.add(target, [target], {});
    return { isOver: () => isOver };
  }
  const withPage = async (use: (page: Page) => Promise<void>): Promise<void> => {
    const connected = await playwright.connectOverCDP(browser.url());
    const page = connected.contexts()[0]?.pages()[0];
    if (!page) throw new Error("no page");
    await page.goto(`${site.here}/`);
    await use(page);
    await connected.close();
  };

  test("is not read by an unmodified Playwright, which submits by the keyboard and reads the next page", () =>
    withPage(async (page) => {
      await page.locator("#password").focus();
      const { isOver } = await protect();
      await expect(page.evaluate("password.value")).rejects.toThrow(why);
      await expect(page.locator("#password").inputValue({ timeout: 2000 })).rejects.toThrow();
      await expect(page.content()).rejects.toThrow(why);
      await expect(page.screenshot({ timeout: 2000 })).rejects.toThrow();
      expect(isOver()).toBe(false);
      await page.keyboard.press("Enter");
      await page.waitForURL(/\/submitted/);
      expect(await page.evaluate("document.body.textContent")).toContain("welcome");
      expect(isOver()).toBe(true);
    }));

  test("stays so while it only changes its address, and is one no more when it is loaded anew", () =>
    withPage(async (page) => {
      const { isOver } = await protect();
      // Chromium drops what is clicked before a page's first frame.
      await until("its address has changed", async () => {
        await page.mouse.click(300, 300);
        return page.url().endsWith("/step-2");
      });
      await expect(page.evaluate("1")).rejects.toThrow(why);
      expect(isOver()).toBe(false);
      site.serve({ body: login, others: { "/step-2": login } });
      await page.reload();
      expect(await page.evaluate("1 + 1")).toBe(2);
    }));

  test("is not read by any client; each refusal says why, and other pages are read as before", () =>
    withPage(async (page) => {
      await protect();
      const session = await client.attach(target);
      for (const [method, params] of [
        ["Runtime.getProperties", { objectId: "1" }],
        ["DOM.getDocument", { depth: -1, pierce: true }],
        ["Accessibility.getFullAXTree", {}],
        ["DOMSnapshot.captureSnapshot", { computedStyles: [] }],
        ["Page.captureScreenshot", {}],
        ["Page.navigate", { url: "javascript:document.write(password.value)" }],
      ] as const)
        expect((await client.send(method, params, session)).error?.message).toMatch(why);
      const { result } = await client.send("Runtime.evaluate", { expression: "password.value" }, session);
      expect(JSON.stringify(result?.["exceptionDetails"])).toMatch(why);
      const other = await page.context().newPage();
      expect(await other.evaluate("1 + 1")).toBe(2);
      await other.close();
      await page.goto(`${site.here}/next`);
      expect(await client.evaluate("password.value", session)).toBe("");
    }));

  test("stays so, and the daemon with it, whatever a client sends in the place of a text", () =>
    withPage(async (page) => {
      await protect();
      const session = await client.attach(target);
      const noText = { toString: 1 };
      expect((await client.send("Page.navigate", { url: noText }, session)).error?.message).toBe(
        "Invalid parameters",
      );
      const planted = await client.send("Page.addScriptToEvaluateOnNewDocument", { source: noText }, session);
      expect(planted.error?.message).toMatch(why);
      await page.goto(`${site.here}/next`);
    }));

  test("has a screencast that was begun before go on with the next page, and is not seen in it", () =>
    withPage(async (page) => {
      site.serve({ body: `${login}${moving}`, others: { "/next": moving } });
      await page.goto(`${site.here}/`);
      const session = await client.attach(target);
      const seen = countPictures(client, session);
      await client.send("Page.startScreencast", { format: "jpeg", quality: 10 }, session);
      await until("it has begun", () => seen.pictures > 3);
      await protect();
      // What was sent before is seen before the answer.
      await client.send("Browser.getVersion");
      const before = seen.pictures;
      let kept = 0;
      const stop = browser.chromium.pipe.onFrame((frame) => {
        if (summarize(frame).method === "Page.screencastFrame") kept += 1;
      });
      await until("pictures are kept back, and more come", () => kept > 10);
      stop();
      expect(seen.pictures).toBe(before);
      await page.goto(`${site.here}/next`);
      await until("it goes on", () => seen.pictures > before + 3);
      await client.send("Page.stopScreencast", {}, session);
      seen.stop();
    }));

  const testOfChromium = spec.engine === "chromium" ? test : () => {};
  testOfChromium("is not read by a client of BiDi either", () =>
    withPage(async (page) => {
      const bidi = await connectBidi(browser.bidi());
      const context = await bidi.begin();
      await protect();
      const read = () =>
        bidi.send("script.evaluate", { expression: "1 + 1", target: { context }, awaitPromise: false });
      expect(JSON.stringify(await read())).toMatch(why);
      await page.goto(`${site.here}/next`);
      await until("it is read again", async () => JSON.stringify(await read()).includes('"value":2'));
      bidi.close();
    }),
  );
});

/** Counts the pictures of a screencast, and acknowledges each. */
function countPictures(client: RawCdp, session: string): { readonly pictures: number; stop(): void } {
  let pictures = 0;
  const take = (data: Buffer): void => {
    const { method, params, sessionId } = JSON.parse(data.toString()) as RawReply;
    if (method !== "Page.screencastFrame" || sessionId !== session) return;
    pictures += 1;
    void client.send("Page.screencastFrameAck", { sessionId: params?.["sessionId"] }, session);
  };
  client.socket.on("message", take);
  return {
    get pictures() {
      return pictures;
    },
    stop: () => void client.socket.off("message", take),
  };
}
