import { type Clock, type Millis, pause } from "../../base/clock.js";
import { type Cdp, ignoreRefusal } from "../cdp/cdp.js";
import type { Directories } from "../chromium.js";
import { emptyDirectory } from "../directories.js";
import type { Downloads } from "../downloads.js";
import { type AttachedPage, extensionsOf } from "./fingerprint.js";
import { cachedAnswersIn } from "./stored-data.js";

interface Clearable {
  readonly cdp: Cdp;
  readonly directories: Directories;
  readonly downloads: Downloads;
  readonly clock: Clock;
}

/**
 * Takes away everything that a client may have left but `page`, and every extension
 * (docs/chromium.md#clearing-a-used-browser). Says what could not be cleared and no fingerprint shows.
 */
export async function clearBrowser(
  browser: Clearable,
  { targetId, session }: AttachedPage,
): Promise<readonly string[]> {
  const { cdp, directories, downloads } = browser;
  await Promise.all([disposeContexts(cdp), uninstallAll(cdp)]);
  await closeOthers(browser, targetId);
  const [isClipboardEmpty] = await Promise.all([
    clearStorage(browser, session),
    forgetTlsSessions(cdp),
    cdp.send("Browser.resetPermissions", {}),
    downloads.allow(),
    emptyDirectory(directories.downloads),
    emptyDirectory(directories.uploads),
  ]);
  return [...downloads.differences(), ...(isClipboardEmpty ? [] : ["clipboard: it could not be emptied"])];
}

/**
 * Drops the tickets by which sites know the browser again, which Chromium does where memory is critically
 * short. While it is, none are kept, and only another level ends it; a client may have suppressed all of them
 * (docs/chromium.md#clearing-a-used-browser).
 */
async function forgetTlsSessions(cdp: Cdp): Promise<void> {
  await cdp.send("Memory.setPressureNotificationsSuppressed", { suppressed: false });
  await cdp.send("Memory.simulatePressureNotification", { level: "critical" });
  await cdp.send("Memory.simulatePressureNotification", { level: "moderate" });
}

const departureLimitMs: Millis = 2_000;
const pauseMs: Millis = 10;

/**
 * Closes every other target and waits until it has gone, at most 2 s. Repeated, because a page may open
 * another while it closes, and the worker of an uninstalled extension goes on until it is closed too
 * (Chromium 156, docs/chromium.md#extensions).
 */
export async function closeOthers({ cdp, clock }: Clearable, page: string): Promise<void> {
  const deadline = clock.monotonic() + departureLimitMs;
  while (clock.monotonic() < deadline) {
    const { targetInfos } = await cdp.send("Target.getTargets", {});
    const others = targetInfos.filter(({ targetId }) => targetId !== page);
    if (others.length === 0) return;
    await Promise.all(
      others.map(({ targetId }) => cdp.send("Target.closeTarget", { targetId }).catch(ignoreRefusal)),
    );
    await pause(clock, pauseMs);
  }
}

async function disposeContexts(cdp: Cdp): Promise<void> {
  const { browserContextIds } = await cdp.send("Target.getBrowserContexts", {});
  const disposals = browserContextIds.map((id) =>
    cdp.send("Target.disposeBrowserContext", { browserContextId: id }),
  );
  await Promise.all(disposals.map((disposal) => disposal.catch(ignoreRefusal)));
}

async function uninstallAll(cdp: Cdp): Promise<void> {
  const all = await extensionsOf(cdp);
  await Promise.all(all.map((id) => cdp.send("Extensions.uninstall", { id }).catch(ignoreRefusal)));
}

/**
 * Storage commands want a page's session; "*" stands for every origin. Says whether the clipboard, which
 * wants one too, is empty.
 */
async function clearStorage(browser: Clearable, session: string): Promise<boolean> {
  const { cdp } = browser;
  const [isClipboardEmpty] = await Promise.all([
    emptyClipboard(browser, session),
    cdp.send("Storage.clearDataForOrigin", { origin: "*", storageTypes: "all" }, { session }),
    cdp.send("Network.clearBrowserCookies", {}, { session }),
    clearCache(browser, session),
  ]);
  return isClipboardEmpty;
}

/** Copies nothing, as a key press would, which needs no permission. */
const copyNothing = `(() => {
  addEventListener("copy", (event) => {
    event.clipboardData.setData("text/plain", "");
    event.preventDefault();
  }, { once: true });
  return document.execCommand("copy");
})()`;

const clipboardLimitMs: Millis = 2_000;

/**
 * No command of CDP has the clipboard, and Chromium keeps one for all its pages. Repeated, because a page
 * that is just being opened may not have the focus yet, without which it copies nothing; where others are
 * opened all the time it may never have it.
 */
async function emptyClipboard({ cdp, clock }: Clearable, session: string): Promise<boolean> {
  const deadline = clock.monotonic() + clipboardLimitMs;
  await cdp.send("Emulation.setFocusEmulationEnabled", { enabled: true }, { session });
  const given = { expression: copyNothing, userGesture: true, returnByValue: true };
  while (clock.monotonic() < deadline) {
    const { result } = await cdp.send("Runtime.evaluate", given, { session });
    if (result.value === true) return true;
    await pause(clock, pauseMs);
  }
  return false;
}

const cacheLimitMs: Millis = 4_000;

/**
 * Empties the HTTP cache. Chromium does so at once but answers only when its network history is written to
 * disk too, and that waits until Chromium counts itself as started (`kNetworkHistory` of
 * BrowsingDataRemoverImpl, seen in a trace of Chromium 156). So what is on disk counts as an answer.
 */
async function clearCache({ cdp, directories, clock }: Clearable, session: string): Promise<void> {
  const answered = new AbortController();
  const answer = cdp.send("Network.clearBrowserCache", {}, { session }).finally(() => answered.abort());
  await Promise.race([answer, emptyCache(directories, clock, answered.signal)]);
  answer.catch(() => {});
}

async function emptyCache({ profile }: Directories, clock: Clock, answered: AbortSignal): Promise<void> {
  const deadline = clock.monotonic() + cacheLimitMs;
  while (!answered.aborted && (await cachedAnswersIn(profile)) > 0 && clock.monotonic() < deadline) {
    await pause(clock, pauseMs, answered);
  }
}
