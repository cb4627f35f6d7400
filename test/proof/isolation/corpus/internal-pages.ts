import { existsSync } from "node:fs";
import { mkdir, writeFile, chmod } from "node:fs/promises";
import { join } from "node:path";
import { systemClock } from "../../../../src/base/clock.js";
import { within } from "../../../../src/base/deadline.js";
import { internalPages } from "../../../support/browser/internal-pages.js";
import type { ClientAttempt, Work } from "./attempt.js";

/** The PDF viewer's, an extension that every Chromium carries; its pages have chrome.tabs and more. */
const viewer = "chrome-extension://mhjfbmdgcfjbbpaeojofohoefgiehjai/index.html";
const own = [
  "chrome://extensions",
  "chrome://settings",
  "chrome://downloads",
  "chrome://policy",
  "chrome://version",
  "chrome://inspect",
  "chrome://flags",
  "chrome://net-export",
  "chrome://tracing",
  "chrome://process-internals",
  "chrome://local-state",
  "chrome://tab-search.top-chrome",
  "chrome-untrusted://print",
  "devtools://devtools/bundled/inspector.html",
  "about:settings",
  "view-source:chrome://settings",
  "CHROME://DISCARDS",
  viewer,
];

interface Info {
  readonly targetId: string;
  readonly type: string;
  readonly url: string;
}
const isOwn = (url: string): boolean =>
  /^(?:view-source:)?(?:chrome|chrome-untrusted|chrome-search|devtools|chrome-extension):/i.test(url);
/** A new tab's page is where a browser begins; an error stands for what is refused. */
const isHarmless = (url: string): boolean =>
  /^chrome:\/\/(?:newtab|new-tab-page)/.test(url) || url.startsWith("chrome-error:");

/** Without a wall each window has one of these by itself, which shows nothing of what an attempt did. */
const isOfWindows = (url: string): boolean => url.startsWith("chrome://omnibox-popup.top-chrome/");

async function targetsOf({ cdp }: Work): Promise<Info[]> {
  const { result } = await cdp.send("Target.getTargets");
  return (result?.["targetInfos"] ?? []) as Info[];
}

/**
 * Attaches to every page of the browser's own that there is; each that obeys is one too many. Gives whether
 * the attempt has seen any.
 */
export async function lookForOwn(work: Work): Promise<boolean> {
  for (const { targetId, url } of await targetsOf(work)) {
    if (!isOwn(url) || isHarmless(url) || (work.browser.isPlain && isOfWindows(url))) continue;
    const session = await work.cdp.attach(targetId);
    // One that cannot be asked does not obey.
    const where = await work.cdp
      .evaluate(
        "typeof document === 'object' ? location.href + ' ' + Object.keys(globalThis.chrome ?? {}).join() : ''",
        session,
      )
      .catch(() => undefined);
    if (typeof where === "string" && isOwn(where)) work.saw(`scripts ${where.slice(0, 120)}`);
  }
  return work.hasSeen();
}

const visitLimitMs = 700;

/** Goes there, as far as it comes in that time, and looks whether it obeys. */
async function inTurn(work: Work, page: Awaited<ReturnType<Work["open"]>>, url: string): Promise<void> {
  const isLate = new Promise((resolve) => setTimeout(resolve, visitLimitMs));
  await Promise.race([page.command("Page.navigate", { url }), isLate]);
  const where = await Promise.race([page.evaluate("return location.href"), isLate]);
  if (typeof where === "string" && isOwn(where) && !isHarmless(where))
    work.saw(`scripts ${where.slice(0, 120)}`);
}

const ownPage = (
  name: string,
  run: (work: Work) => Promise<unknown>,
  other: Partial<ClientAttempt> = {},
): ClientAttempt => ({
  name: `own pages: ${name}`,
  vector: "CDP",
  needsChromium: true,
  isAlone: other.isQuick === true ? "own pages" : true,
  succeedsPlain: true,
  ...other,
  async run(work) {
    const got = await run(work);
    await work.shows(() => lookForOwn(work));
    return got;
  },
});

/**
 * Packs a directory of the host by chrome.developerPrivate, from the page that has it; the packed file
 * outlives the session.
 */
async function packFromViewer(work: Work): Promise<unknown> {
  const directory = join(work.machine.directory, `pack-${work.nonce}`);
  const seen = work.machine.seen(directory);
  await mkdir(seen, { recursive: true });
  await chmod(seen, 0o777);
  await writeFile(
    join(seen, "manifest.json"),
    JSON.stringify({ manifest_version: 3, name: "packed", version: "1" }),
  );
  const { result } = await work.cdp.send("Target.createTarget", { url: viewer });
  if (result === undefined) return "refused";
  const session = await work.cdp.attach(String(result["targetId"]));
  let manager: Info | undefined;
  await work.shows(async () => {
    // The viewer has chrome.tabs once it has loaded.
    const ask = "globalThis.asked ??= chrome.tabs?.create({ url: 'chrome://extensions' })";
    await work.cdp.evaluate(ask, session).catch(() => undefined);
    manager = (await targetsOf(work)).find(({ url }) => url.startsWith("chrome://extensions"));
    return manager !== undefined;
  });
  if (manager === undefined) return "no manager";
  const inner = await work.cdp.attach(manager.targetId);
  const pack = `new Promise((resolve) => chrome.developerPrivate.packDirectory(${JSON.stringify(directory)}, "", 0, (answer) => resolve(JSON.stringify(answer))))`;
  let said: unknown;
  const isPacked = await work.shows(async () => {
    said = await work.cdp.evaluate(pack, inner).catch(String);
    return existsSync(`${seen}.crx`);
  });
  if (isPacked) work.saw("packed a directory of the host and wrote beside it");
  return said;
}

const commandIds = [
  "openTabSearch",
  "closeTabSearch",
  "openGlic",
  "noOpCommand",
  "startDataSharingTour",
  "showSavedTabGroupsWebUI",
  "openPasswordManager",
  "openPrivacyGuide",
  "openSafetyCheck",
  "openNewTabPage",
  "openSettings",
  "openFeedback",
];

/** Its worker says that it is done where each was refused too. */
const doneLimitMs = 60_000;

/** Has an extension of the holder's open them, by `chrome.tabs` as any may that has the permission. */
async function openByExtension(work: Work, urls: readonly string[]): Promise<void> {
  const isLoaded = await work.browser.extend({
    "manifest.json": JSON.stringify({
      manifest_version: 3,
      name: work.nonce,
      version: "1",
      permissions: ["tabs", "bookmarks", "history", "management"],
      background: { service_worker: "worker.js" },
    }),
    "worker.js": `(async () => { for (const url of ${JSON.stringify(urls)}) await chrome.tabs.create({ url, active: false }).catch(() => {}); })().finally(() => fetch(${JSON.stringify(`${work.site.origin}/${work.nonce}/done`)}))`,
  });
  if (!isLoaded) return;
  const limit = { what: "the extension's last word", limitMs: doneLimitMs };
  await within(systemClock, limit, work.site.heard(`/${work.nonce}/done`)).catch(() => {});
}

const closedPages = internalPages.flatMap(({ url, how }) => (how === "closed" ? [url] : []));
const pagesAtOnce = 34;
/** Enough to show that they open without the walls: each then stays open, on a machine that may be busy. */
const pagesOfControl = 10;
/** Past the gate all that Chromium lists, so many at a time. */
const everyPage: readonly ClientAttempt[] = Array.from(
  { length: Math.ceil(closedPages.length / pagesAtOnce) },
  (_, at) =>
    ownPage(`chrome.tabs of an extension, every page of Chromium's, part ${at + 1}`, (work) =>
      openByExtension(
        work,
        closedPages
          .slice(at * pagesAtOnce, (at + 1) * pagesAtOnce)
          .slice(0, work.browser.isPlain ? pagesOfControl : pagesAtOnce),
      ),
    ),
);

/** Also those that do something to the browser at once, which must still be the same one then. */
async function askTheGate(work: Work): Promise<void> {
  const before = await work.browser.mainPid();
  const isAsked = ({ how }: (typeof internalPages)[number]): boolean =>
    !work.browser.isPlain || how === "closed";
  const asked = internalPages.filter(isAsked);
  for (const { url } of work.browser.isPlain ? asked.slice(0, pagesOfControl) : asked) {
    const { error, result } = await work.cdp.send("Target.createTarget", { url });
    if (error === undefined) work.saw(`opened ${url}`);
    if (result !== undefined) await work.cdp.send("Target.closeTarget", result);
  }
  if ((await work.browser.mainPid().catch(() => 0)) !== before) work.saw("the browser ended");
}

export const ownPages: readonly ClientAttempt[] = [
  ...everyPage,
  ownPage("Target.createTarget of every page of Chromium's", askTheGate),
  ownPage(
    "Target.createTarget",
    async (work) => {
      for (const url of own) await work.cdp.send("Target.createTarget", { url });
    },
    { isQuick: true },
  ),
  ownPage("Page.navigate", async (work) => {
    const page = await work.open();
    for (const url of own) await inTurn(work, page, url);
  }),
  ownPage(
    "window.open and links of pages",
    async (work) => {
      const page = await work.open();
      await page.evaluate(
        `for (const url of ${JSON.stringify(own)}) { try { window.open(url); } catch {} Object.assign(document.createElement("a"), { href: url, target: "_blank" }).click(); }`,
      );
    },
    { succeedsPlain: { because: "Chromium opens none of them for a page of the web" } },
  ),
  ownPage(
    "redirects of the web",
    async (work) => {
      const page = await work.open();
      for (const [at, location] of own.entries())
        await inTurn(work, page, work.serve(`/own-${at}`, { status: 302, headers: { location } }));
    },
    { succeedsPlain: { because: "Chromium follows no redirect there" } },
  ),
  ownPage(
    "Page.setDocumentContent with frames of them",
    async (work) => {
      const page = await work.open();
      const { result } = await page.command("Page.getFrameTree");
      const frameId = (result?.["frameTree"] as { frame: { id: string } } | undefined)?.frame.id;
      await page.command("Page.setDocumentContent", {
        frameId,
        html: own.map((url) => `<iframe src="${url}"></iframe>`).join(""),
      });
    },
    { succeedsPlain: { because: "Chromium frames none of them in a page of the web" } },
  ),
  ownPage(
    "Browser.executeBrowserCommand",
    async (work) => {
      for (const commandId of commandIds) {
        const { error } = await work.cdp.send("Browser.executeBrowserCommand", { commandId });
        // One that Chromium does not know is refused by Chromium, as unknown.
        if (error === undefined && commandId !== "noOpCommand")
          work.saw(`the command ${commandId} was carried out`);
      }
    },
    { isQuick: true },
  ),
  ownPage("chrome.tabs of the PDF viewer, and a directory of the host packed", packFromViewer, {
    isQuick: true,
  }),
  ownPage("chrome.tabs of an extension of the holder's", (work) => openByExtension(work, own)),
  ownPage("a new tab and the PDF viewer's frame in a page", async (work) => {
    const pdf =
      "%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj 2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj 3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]>>endobj\ntrailer<</Root 1 0 R>>";
    await work.open(work.serve("/shown.pdf", { body: pdf, headers: { "content-type": "application/pdf" } }));
    await work.cdp.send("Target.setAutoAttach", {
      autoAttach: true,
      waitForDebuggerOnStart: false,
      flatten: true,
    });
  }),
];
