import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { PipeClient } from "../../support/browser/chromium-client.js";
import { engines } from "../../support/browser/chromium-kinds.js";
import { until } from "../../support/browser/chromium-until.js";
import { type GatewayBrowser, openGatewayBrowser } from "../../support/gateway/gateway-browser.js";
import { connectRaw, type RawCdp, type RawReply } from "../../support/gateway/raw-cdp.js";
import { openPdfSite, type PdfSite } from "../../support/browser/sites/red-pdf.js";

const viewer = "chrome-extension://mhjfbmdgcfjbbpaeojofohoefgiehjai/index.html";
/**
 * All but those that end the client or its page, which would end the attempt, and those that open further
 * tabs, to which it would be made again.
 */
const commands = readFileSync(join(import.meta.dirname, "judged-commands.txt"), "utf8")
  .split("\n")
  .flatMap((line) => (/^[A-Z]/.test(line) ? [line.split(" ")[0] ?? ""] : []))
  .filter(
    (name) =>
      ![
        "Browser.close",
        "Target.createTarget",
        "Target.openDevTools",
        "Target.closeTarget",
        "Target.disposeBrowserContext",
        "Target.detachFromTarget",
      ].includes(name),
  );

/**
 * What Chromium 156 answers on a tab: of the window and of the whole browser, which a client's own root
 * answers too.
 */
const ofEveryTab = new Set([
  "Browser.getWindowForTarget",
  "Browser.setDockTile",
  "Emulation.getScreenInfos",
  "Runtime.runIfWaitingForDebugger",
  "Tracing.getCategories",
  "Tracing.getTrackEventDescriptor",
  "Tracing.start",
  "Tracing.end",
  "Tracing.recordClockSyncMarker",
  "Tracing.requestMemoryDump",
]);

let site: PdfSite;
beforeAll(async () => {
  site = await openPdfSite();
});
afterAll(() => site.close());

interface Info {
  readonly targetId: string;
  readonly type: string;
  readonly url: string;
}
interface Attached {
  readonly session: string;
  readonly info: Info;
}

describe.each(engines.filter(([, { engine }]) => engine === "chromium"))("tabs of %s", (_, given) => {
  let browser: GatewayBrowser;
  /** Past the gate. */
  let pipe: PipeClient;
  beforeAll(async () => {
    browser = await openGatewayBrowser(given);
    pipe = new PipeClient(browser.chromium, 1_000_000);
  });
  afterAll(() => browser.close());

  const targets = async (): Promise<readonly Info[]> =>
    (await pipe.send("Target.getTargets", { filter: [{}] })).targetInfos as Info[];

  /** Told of every tab in its first moment, as Puppeteer is. */
  async function watchTabs(
    onTab: (cdp: RawCdp, tab: Attached) => void,
  ): Promise<{ cdp: RawCdp; attached: Attached[]; detached: string[] }> {
    const cdp = await connectRaw(browser.url());
    const [attached, detached]: [Attached[], string[]] = [[], []];
    cdp.socket.on("message", (data: Buffer) => {
      const { method, params = {} } = JSON.parse(data.toString()) as RawReply;
      if (method === "Target.detachedFromTarget") detached.push(String(params["sessionId"]));
      if (method !== "Target.attachedToTarget") return;
      const tab = { session: String(params["sessionId"]), info: params["targetInfo"] as Info };
      attached.push(tab);
      if (tab.info.type === "tab") onTab(cdp, tab);
      void cdp.send("Runtime.runIfWaitingForDebugger", {}, tab.session);
    });
    await cdp.send("Target.setAutoAttach", {
      autoAttach: true,
      waitForDebuggerOnStart: true,
      flatten: true,
      filter: [{ type: "page", exclude: true }, {}],
    });
    return { cdp, attached, detached };
  }

  async function openPdf(cdp: RawCdp): Promise<{ page: string; viewerTab: string; own: string }> {
    const { result } = await cdp.send("Target.createTarget", { url: "about:blank" });
    const page = String(result?.["targetId"]);
    await cdp.send("Page.navigate", { url: `${site.origin}/red.pdf` }, await cdp.attach(page));
    const ofViewer = (type: string) => async (): Promise<string | undefined> =>
      (await targets()).find((info) => info.type === type && info.url.startsWith(viewer))?.targetId;
    return {
      page,
      viewerTab: await until("its tab", ofViewer("tab")),
      own: await until("the viewer", ofViewer("webview")),
    };
  }

  test("a client that was given a session on the tab of a PDF's viewer, while it had no address, loses it, and gets no other", async () => {
    const { cdp, attached, detached } = await watchTabs(() => {});
    const { page, viewerTab } = await openPdf(cdp);
    const sessions = attached.filter(({ info }) => info.targetId === viewerTab).map(({ session }) => session);
    await until("they are over", () => sessions.every((session) => detached.includes(session)));
    for (const session of sessions)
      expect((await cdp.send("Target.getTargets", {}, session)).error?.message).toBe(
        "Session with given id not found.",
      );
    for (const flatten of [true, false]) {
      expect((await cdp.send("Target.attachToTarget", { targetId: viewerTab, flatten })).error?.message).toBe(
        "The browser's own pages are not open to clients",
      );
    }
    await cdp.send("Target.closeTarget", { targetId: page });
    await cdp.close();
  });

  test("every command of the protocol, sent to each tab in its first moment, brings no session on the viewer and nothing into it", async () => {
    const answers: string[] = [];
    const { cdp, attached } = await watchTabs((client, { session, info }) => {
      const params = {
        targetId: info.targetId,
        autoAttach: true,
        waitForDebuggerOnStart: true,
        flatten: true,
        filter: [{}],
        source: "globalThis.planted = true",
        expression: "globalThis.planted = true",
        url: "about:blank",
      };
      for (const name of commands) {
        const chosen = Object.fromEntries(
          Object.entries(params).filter(
            ([key]) => name.startsWith("Target.") || key === "source" || key === "expression",
          ),
        );
        void client.send(name, chosen, session).then(({ result }) => result && answers.push(name));
      }
    });
    const { page, own } = await openPdf(cdp);
    expect(attached.map(({ info }) => info.targetId)).not.toContain(own);
    expect(
      await pipe.evaluate("[typeof chrome.tabs, globalThis.planted ?? false]", await pipe.attach(own)),
    ).toEqual(["object", false]);
    expect(
      [...new Set(answers)].filter((name) => !ofEveryTab.has(name) && !name.startsWith("Target.")),
    ).toEqual([]);
    await cdp.send("Target.closeTarget", { targetId: page });
    await cdp.close();
  });
});
