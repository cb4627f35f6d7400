import { existsSync } from "node:fs";
import { join } from "node:path";
import type { ClientAttempt, Work } from "./attempt.js";
import { extension } from "./extension.js";

/**
 * One download, then what the permission is for. A plain Chromium finds a stand-in for `xdg-open` on its
 * PATH, which notes that it was started: a program outside of the sandbox.
 */
const download = `const id = await chrome.downloads.download({ url: "data:text/plain,x", filename: "shown.txt" });
  await once([chrome.downloads.onChanged], async () => (await chrome.downloads.search({ id }))[0]?.state === "complete");`;
const openedBy = ({ machine, browser }: Work): boolean =>
  existsSync(machine.seen(join(browser.root, "tmp/opened")));
const sawOpened = async (work: Work): Promise<void> => {
  if (await work.shows(() => openedBy(work))) work.saw("xdg-open was started");
};

/** Has the extension's page call it with the rights of a click, which `downloads.open` wants. */
async function clickOpen(work: Work): Promise<unknown> {
  const { result } = await work.cdp.send("Target.getTargets");
  const infos = (result?.["targetInfos"] ?? []) as { targetId: string; url: string }[];
  const page = infos.find(({ url }) => /^chrome-extension:.*\/click\.html$/.test(url));
  if (page === undefined) return "no page of the extension";
  const session = await work.cdp.attach(page.targetId);
  // Where it asks somebody first, nobody answers.
  const expression =
    "Promise.race([chrome.downloads.search({}).then(([{ id }]) => chrome.downloads.open(id)).then(() => 'opened', String), new Promise((resolve) => setTimeout(resolve, 5000))])";
  const given = { expression, awaitPromise: true, returnByValue: true, userGesture: true };
  const called = (await work.cdp.send("Runtime.evaluate", given, session)).result;
  await sawOpened(work);
  return called;
}

const nobodyPicks = { because: "somebody has to click on the extension, or to pick what is shown" };
/** Permissions that start programs or take pictures of what is shown, each called. */
export const extensionCalls: readonly ClientAttempt[] = [
  extension(
    "downloads.open",
    {
      permissions: ["downloads", "downloads.open", "tabs"],
      worker: `${download} await opened("click.html");`,
      files: { "click.html": "<body>" },
    },
    { after: clickOpen, succeedsPlain: { because: "Chromium asks somebody before it opens a file" } },
  ),
  extension(
    "downloads.show and showDefaultFolder",
    {
      permissions: ["downloads"],
      worker: `${download} chrome.downloads.show(id); chrome.downloads.showDefaultFolder();`,
    },
    { after: sawOpened },
  ),
  extension(
    "tabCapture of files opened in tabs",
    {
      permissions: ["tabs", "tabCapture"],
      worker: `return await eachIn((tab) => chrome.tabCapture.getMediaStreamId({ targetTabId: tab.id }).then((id) => say("captured " + id)));`,
    },
    { after: capturedIn, succeedsPlain: nobodyPicks },
  ),
  extension(
    "desktopCapture of what the machine shows",
    {
      permissions: ["tabs", "desktopCapture"],
      worker: `const tab = await opened("about:blank"); return await soon(new Promise((resolve) =>
        chrome.desktopCapture.chooseDesktopMedia(["screen", "window"], { ...tab, url: "https://x.example/" }, (id) => resolve(id && say("captured " + id)))));`,
    },
    { after: capturedIn, succeedsPlain: nobodyPicks },
  ),
];

async function capturedIn(work: Work): Promise<void> {
  if (work.site.said(`/${work.nonce}/said`).some((each) => each.includes("captured ")))
    work.saw("a stream of what is shown");
}
