import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { PipeClient } from "../../support/browser/chromium-client.js";
import { engines } from "../../support/browser/chromium-kinds.js";
import { until } from "../../support/browser/chromium-until.js";
import { openPdfSite, type PdfSite } from "../../support/browser/sites/red-pdf.js";
import { type GatewayBrowser, openGatewayBrowser } from "../../support/gateway/gateway-browser.js";
import { connectRaw, type RawCdp, type RawReply } from "../../support/gateway/raw-cdp.js";

const viewer = "chrome-extension://mhjfbmdgcfjbbpaeojofohoefgiehjai/index.html";
/** Refused by its parser before anything is asked of the network. */
const unreachable = "http://127.0.0.1:1/";

/** Its script says where it is and what it has. */
const written = `<!doctype html><title>written</title><p>planted</p><script>
  globalThis.planted = [origin, typeof globalThis.chrome?.send, typeof Mojo].join();
</script>`;
const planted = "[document.title, globalThis.planted ?? 'no script'].join()";

let site: PdfSite;
beforeAll(async () => {
  site = await openPdfSite();
});
afterAll(() => site.close());

// It acts in the page of its session, and no client has one at a page of the browser's own.
describe.each(engines)("Page.setDocumentContent in %s", (_name, given) => {
  let browser: GatewayBrowser;
  /** Past the gate. */
  let pipe: PipeClient;
  let cdp: RawCdp;
  beforeAll(async () => {
    browser = await openGatewayBrowser(given);
    pipe = new PipeClient(browser.chromium, 1_000_000);
    cdp = await connectRaw(browser.url());
  });
  afterAll(async () => {
    await cdp.close();
    await browser.close();
  });

  /** A page of a client's, at rest. */
  async function openPage(url: string): Promise<{ target: string; session: string }> {
    const target = String((await cdp.send("Target.createTarget", { url: "about:blank" })).result?.targetId);
    const session = await cdp.attach(target);
    await cdp.send("Page.navigate", { url }, session);
    // A page that cannot be asked just now has no value.
    await until(`${url} to load`, async () => {
      const at = await cdp.evaluate("document.readyState + location.href", session);
      return /^complete(?!about:blank$)/.test(String(at));
    });
    return { target, session };
  }
  const write = (frameId: string, session: string): Promise<RawReply> =>
    cdp.send("Page.setDocumentContent", { frameId, html: written }, session);

  test.each([
    ["a page of the web", () => `${site.origin}/`, () => `written,${site.origin},undefined,undefined`],
    ["an error page", () => unreachable, () => "written,null,undefined,undefined"],
    [
      "a page that allows no script",
      () => `data:text/html,<meta http-equiv=Content-Security-Policy content="script-src 'none'">`,
      () => "written,no script",
    ],
  ])("in %s what is written is that page's, and no more", async (_, url, expected) => {
    const { target, session } = await openPage(url());
    expect(await write(target, session)).not.toHaveProperty("error");
    expect(await cdp.evaluate(planted, session)).toBe(expected());
    await cdp.send("Target.closeTarget", { targetId: target });
  });

  describe.runIf(given.engine === "chromium")("a PDF's viewer", () => {
    let shown: { target: string; session: string };
    let own: string;
    beforeAll(async () => {
      shown = await openPage(`${site.origin}/framed`);
      own = await until("the viewer", async () => {
        const { targetInfos } = await pipe.send("Target.getTargets", { filter: [{}] });
        return (targetInfos as { targetId: string; url: string }[]).find(({ url }) => url.startsWith(viewer))
          ?.targetId;
      });
    });
    /** What it shows and whether the script is there, once it is loaded. */
    const documentOf = async (session: string): Promise<unknown> =>
      await until("its document", () =>
        pipe.evaluate(`document.readyState === "complete" && ${planted}`, session),
      );

    test("is written to by no client, by its frame or by another's session", async () => {
      const session = await pipe.attach(own);
      expect(await write(own, shown.session)).toHaveProperty("error");
      expect(await write(own, session)).toHaveProperty("error");
      for (const { targetId } of await pipe.targets())
        expect(await write(own, await cdp.attach(targetId))).toHaveProperty("error");
      expect(await documentOf(session)).not.toContain("written");
    });

    test("(the control: past the gate it is written to)", async () => {
      const session = await pipe.attach(own);
      await pipe.send("Page.setDocumentContent", { frameId: own, html: written }, session);
      // Its content policy allows no script in the text of a document; all else of the text is there.
      expect(await documentOf(session)).toBe("written,no script");
    });
  });
});
