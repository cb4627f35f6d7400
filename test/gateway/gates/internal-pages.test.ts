import { chromium as playwright } from "playwright-core";
import { connect as connectPuppeteer } from "puppeteer-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { until } from "../../support/browser/chromium-until.js";
import { PipeClient } from "../../support/browser/chromium-client.js";
import { engines } from "../../support/browser/chromium-kinds.js";
import { type GatewayBrowser, openGatewayBrowser } from "../../support/gateway/gateway-browser.js";
import { connectRaw, type RawCdp, type RawReply } from "../../support/gateway/raw-cdp.js";
import { countRed, openPdfSite, type PdfSite } from "../../support/browser/sites/red-pdf.js";

const viewer = "chrome-extension://mhjfbmdgcfjbbpaeojofohoefgiehjai/index.html";
const enoughRed = 50_000;
const planted = "globalThis.planted = true";

let site: PdfSite;
beforeAll(async () => {
  site = await openPdfSite();
});
afterAll(() => site.close());

describe.each(engines.filter(([, { engine }]) => engine === "chromium"))("clients of %s", (_, given) => {
  let browser: GatewayBrowser;
  /** Past the gate. */
  let pipe: PipeClient;
  beforeAll(async () => {
    browser = await openGatewayBrowser(given);
    pipe = new PipeClient(browser.chromium, 1_000_000);
  });
  afterAll(() => browser.close());

  const redIn = async (cdp: RawCdp, session: string, counting: string): Promise<number> => {
    const { result } = await cdp.send("Page.captureScreenshot", { format: "png" }, session);
    return await countRed(cdp, String(result?.data), counting);
  };
  const openPage = async (cdp: RawCdp, url = "about:blank"): Promise<{ target: string; session: string }> => {
    const target = String((await cdp.send("Target.createTarget", { url })).result?.targetId);
    return { target, session: await cdp.attach(target) };
  };
  const targets = async (): Promise<readonly { targetId: string; type: string; url: string }[]> =>
    (await pipe.send("Target.getTargets", { filter: [{}] })).targetInfos as {
      targetId: string;
      type: string;
      url: string;
    }[];
  const viewers = async (): Promise<readonly string[]> =>
    (await targets())
      .filter(({ type, url }) => type !== "tab" && url.startsWith(viewer))
      .map(({ targetId }) => targetId);

  test.each(["/red.pdf", "/embedded", "/framed"])(
    "%s: a PDF shows, and its viewer is nobody's, though a client attaches to all that comes and plants scripts first",
    async (path) => {
      const cdp = await connectRaw(browser.url());
      const told: RawReply[] = [];
      cdp.socket.on("message", (data: Buffer) => {
        const event = JSON.parse(data.toString()) as RawReply;
        if (event.method !== "Target.attachedToTarget") return;
        told.push(event);
        const session = String(event.params?.sessionId);
        void cdp.send("Page.enable", {}, session);
        void cdp.send("Page.addScriptToEvaluateOnNewDocument", { source: planted }, session);
        void cdp.send(
          "Target.setAutoAttach",
          { autoAttach: true, waitForDebuggerOnStart: true, flatten: true, filter: [{}] },
          session,
        );
        void cdp.send("Runtime.runIfWaitingForDebugger", {}, session);
      });
      await cdp.send("Target.setAutoAttach", {
        autoAttach: true,
        waitForDebuggerOnStart: true,
        flatten: true,
      });
      const counting = await openPage(cdp);
      const shown = await openPage(cdp);
      await cdp.send("Page.navigate", { url: site.origin + path }, shown.session);
      await until("the PDF", async () => (await redIn(cdp, shown.session, counting.session)) > enoughRed);
      const [own] = await viewers();
      expect(own).toBeDefined();
      expect(
        told.map(({ params = {} }) => (params["targetInfo"] as { targetId: string }).targetId),
      ).not.toContain(own);
      const session = await pipe.attach(own);
      // The control: what is planted nowhere, and that the page could do harm.
      expect(await pipe.evaluate("[typeof chrome.tabs, globalThis.planted ?? false]", session)).toEqual([
        "object",
        false,
      ]);
      for (const flatten of [true, false])
        expect(await cdp.send("Target.attachToTarget", { targetId: own, flatten })).toHaveProperty("error");
      await cdp.send("Target.closeTarget", { targetId: shown.target });
      await cdp.close();
    },
  );

  test("Playwright and Puppeteer open a PDF", async () => {
    const counter = await connectRaw(browser.url());
    const counting = await openPage(counter);
    const client = await playwright.connectOverCDP(browser.url());
    const page = await (await client.newContext()).newPage();
    await page.goto(`${site.origin}/red.pdf`);
    await until(
      "the PDF",
      async () =>
        (await countRed(counter, (await page.screenshot()).toString("base64"), counting.session)) > enoughRed,
    );
    expect(page.url()).toBe(`${site.origin}/red.pdf`);
    await page.goto(`${site.origin}/`);
    expect(await page.title()).toBe("site");
    await client.close();
    const other = await connectPuppeteer({ browserWSEndpoint: browser.url() });
    const tab = await (await other.createBrowserContext()).newPage();
    await tab.goto(`${site.origin}/framed`);
    await until(
      "the PDF",
      async () =>
        (await countRed(counter, await tab.screenshot({ encoding: "base64" }), counting.session)) > enoughRed,
    );
    await tab.browserContext().close();
    await other.disconnect();
    await counter.close();
  });

  // The pages are opened as an extension opens them: chrome.tabs.create and chrome.tabs.update pass no gate.
  test.each([viewer, "devtools://devtools/bundled/inspector.html", "chrome://settings/"])(
    "%s, opened past the gate, is nobody's",
    async (url) => {
      const cdp = await connectRaw(browser.url());
      await cdp.send("Target.setAutoAttach", {
        autoAttach: true,
        waitForDebuggerOnStart: true,
        flatten: true,
      });
      const { targetId } = await pipe.send("Target.createTarget", { url });
      await until("its address", async () =>
        (await targets()).some((target) => target.targetId === targetId && target.url === url),
      );
      for (const flatten of [true, false]) {
        const { error, result } = await cdp.send("Target.attachToTarget", { targetId, flatten });
        expect([error?.message, result]).toEqual([
          "The browser's own pages are not open to clients",
          undefined,
        ]);
      }
      await expect(connectRaw(browser.url(`/devtools/page/${targetId as string}`))).rejects.toThrow();
      await pipe.send("Target.closeTarget", { targetId });
      await cdp.close();
    },
  );

  test("the viewer under an address of almost 2 MiB is nobody's", async () => {
    const cdp = await connectRaw(browser.url());
    const { targetId } = await pipe.send("Target.createTarget", { url: `${viewer}#`.padEnd(2_097_000, "a") });
    await until("its address", async () => (await viewers()).includes(String(targetId)));
    expect(await cdp.send("Target.attachToTarget", { targetId, flatten: true })).toHaveProperty("error");
    await pipe.send("Target.closeTarget", { targetId });
    await until("its end", async () => (await viewers()).length === 0);
    await cdp.close();
  });

  test("a PDF's viewer is not reached through the tab that it is in, by a message in advance of the session", async () => {
    const cdp = await connectRaw(browser.url());
    const tabs = new Set<string>();
    cdp.socket.on("message", (data: Buffer) => {
      const { method, params = {} } = JSON.parse(data.toString()) as RawReply;
      if (method === "Target.attachedToTarget" && (params["targetInfo"] as { type: string }).type === "tab")
        tabs.add(String(params["sessionId"]));
    });
    await cdp.send("Target.setAutoAttach", {
      autoAttach: true,
      waitForDebuggerOnStart: false,
      flatten: true,
      filter: [{ type: "tab" }, { exclude: true }],
    });
    const shown = await openPage(cdp);
    await cdp.send("Page.navigate", { url: `${site.origin}/red.pdf` }, shown.session);
    const own = await until(
      "the viewer",
      async () =>
        (await targets()).find(({ type, url }) => type === "webview" && url.startsWith(viewer))?.targetId,
    );
    expect(tabs.size).toBeGreaterThan(0);
    const message = JSON.stringify({ id: 1, method: "Runtime.evaluate", params: { expression: planted } });
    for (const tab of tabs) {
      void cdp.send(
        "Target.setAutoAttach",
        { autoAttach: true, waitForDebuggerOnStart: false, flatten: false, filter: [{}] },
        tab,
      );
      expect(await cdp.send("Target.sendMessageToTarget", { targetId: own, message }, tab)).toHaveProperty(
        "error",
      );
    }
    expect(
      await pipe.evaluate("[typeof chrome.tabs, globalThis.planted ?? false]", await pipe.attach(own)),
    ).toEqual(["object", false]);
    await cdp.send("Target.closeTarget", { targetId: shown.target });
    await cdp.close();
  });

  test.each([viewer, "devtools://devtools/bundled/inspector.html"])(
    "a page that becomes %s is its client's no more",
    async (url) => {
      const cdp = await connectRaw(browser.url());
      const { target, session } = await openPage(cdp);
      const carrying = String(
        (await cdp.send("Target.attachToTarget", { targetId: target, flatten: false })).result?.sessionId,
      );
      const root = await connectRaw(browser.url().replace(/\/cdp/, `/cdp/devtools/page/${target}`));
      await pipe.send("Page.navigate", { url }, await pipe.attach(target));
      await cdp.message(
        ({ method, params }) => method === "Target.detachedFromTarget" && params?.sessionId === session,
      );
      expect(await cdp.send("Runtime.evaluate", { expression: "1" }, session)).toHaveProperty("error");
      const message = JSON.stringify({ id: 1, method: "Runtime.evaluate", params: { expression: "1" } });
      expect(await cdp.send("Target.sendMessageToTarget", { sessionId: carrying, message })).toHaveProperty(
        "error",
      );
      expect((await root.closed).reason).toBe("target_closed");
      // It is one again as soon as it is something else.
      await pipe.send("Page.navigate", { url: `${site.origin}/` }, await pipe.attach(target));
      await until("the page", async () =>
        (await targets()).some(({ targetId, url: at }) => targetId === target && at === `${site.origin}/`),
      );
      // The address is there before the document is read.
      await until(
        "its title",
        async () => (await cdp.evaluate("document.title", await cdp.attach(target))) === "site",
      );
      await cdp.send("Target.closeTarget", { targetId: target });
      await cdp.close();
    },
  );

  test("a new tab of the browser's own kind is a page like others", async () => {
    const { targetId } = await pipe.send("Target.createTarget", { url: "chrome://newtab/" });
    const cdp = await connectRaw(browser.url());
    expect(
      await cdp.evaluate("[location.href, typeof chrome.send].join()", await cdp.attach(targetId as string)),
    ).toBe("about:blank,undefined");
    await cdp.send("Target.closeTarget", { targetId });
    await cdp.close();
  });
});
