import { type Clock, type Millis, pause } from "../../base/clock.js";
import type { Cdp } from "../cdp/cdp.js";
import type { Directories, LaunchSpec } from "../chromium.js";
import { clearBrowser, closeOthers } from "./clear-browser.js";
import type { BrowserExtensions } from "../extensions/extensions.js";
import type { LaunchExtensions } from "../extensions/forced-extensions.js";
import type { Downloads } from "../downloads.js";
import {
  type AttachedPage,
  attachTo,
  differencesBetween,
  type Fingerprint,
  takeFingerprint,
} from "./fingerprint.js";
import type { Pages } from "../cdp/pages.js";
import { letsAcceptCertificates } from "../policy/managed-policy.js";
import { findTraces } from "./origin-traces.js";
import { placeWindow } from "../cdp/window.js";

interface Resettable {
  readonly cdp: Cdp;
  readonly pages: Pages;
  readonly spec: LaunchSpec;
  readonly directories: Directories;
  /**
   * The fingerprint from when the browser was launched, before it had its extensions; absent where it was
   * launched for one holder.
   */
  readonly baseline: Fingerprint | undefined;
  readonly extensions: BrowserExtensions;
  readonly downloads: Downloads;
  /** The extensions that the browser was launched with. */
  readonly given: readonly LaunchExtensions[];
  /** True where its directories had been used before its launch. */
  readonly isAdopted: boolean;
  readonly clock: Clock;
}

/** What is about to go has this long to do so. */
const settlingLimitMs: Millis = 2_000;
const settlingPauseMs: Millis = 20;

/**
 * Brings the browser back to its state after launch and says what still differs from the fingerprint taken
 * then, or from what a page would find at the site opened last. `takeFingerprint` says what no comparison
 * shows.
 */
export async function resetBrowser(browser: Resettable): Promise<readonly string[]> {
  if (browser.isAdopted) return ["profile: used before the launch"];
  const { baseline } = browser;
  if (baseline === undefined) return ["fingerprint: none was taken at the launch, which was for one holder"];
  // An extension that policy installed cannot be removed, and keeps what it has seen.
  if (browser.given.some(({ forced }) => forced)) return ["extensions: one is installed by policy"];
  // What an extension has kept of the pages that it saw goes only with the extension, and if it were loaded
  // again it could read files.
  if (browser.given.length > 0) return ["extensions: they cannot be loaded anew"];
  if (letsAcceptCertificates(browser.spec)) return ["policy: certificates that were accepted are remembered"];
  const unfinished = browser.downloads.differences();
  if (unfinished.length > 0) return unfinished;
  const page = await openFreshPage(browser);
  const differences = await clearUntilSame(browser, baseline, page);
  const found = differences.length === 0 ? await findTracesAtLastOrigin(browser, page.targetId) : differences;
  if (found.length > 0) return found;
  browser.extensions.forget();
  await browser.cdp.leave(page.session);
  return browser.downloads.differences();
}

async function findTracesAtLastOrigin(browser: Resettable, page: string): Promise<readonly string[]> {
  const { cdp, pages } = browser;
  const { lastOrigin } = pages;
  if (lastOrigin === undefined) return [];
  const traces = await findTraces(cdp, lastOrigin);
  await closeOthers(browser, page);
  pages.forgetOrigin();
  return traces.map((trace) => `last origin: ${trace}`);
}

/**
 * The page is opened before the others close, and in a window of its own: theirs may be moved, minimised or
 * full screen.
 */
async function openFreshPage({ cdp, spec }: Resettable): Promise<AttachedPage> {
  const { targetId } = await cdp.send("Target.createTarget", { url: "about:blank", newWindow: true });
  const [page] = await Promise.all([attachTo(cdp, targetId), placeWindow(cdp, targetId, spec)]);
  return page;
}

/**
 * Clears and compares until nothing differs, at most 2 s beyond the first time, which may itself be long
 * where the disk is slow. Once is not always enough: a worker may be just starting, and a page writes its
 * last words while it closes.
 */
async function clearUntilSame(
  browser: Resettable,
  baseline: Fingerprint,
  page: AttachedPage,
): Promise<readonly string[]> {
  const { clock } = browser;
  let differences = await clearAndCompare(browser, baseline, page);
  const deadline = clock.monotonic() + settlingLimitMs;
  while (differences.length > 0 && clock.monotonic() < deadline) {
    await pause(clock, settlingPauseMs);
    differences = await clearAndCompare(browser, baseline, page);
  }
  return differences;
}

async function clearAndCompare(
  browser: Resettable,
  baseline: Fingerprint,
  page: AttachedPage,
): Promise<readonly string[]> {
  const left = await clearBrowser(browser, page);
  return [...left, ...differencesBetween(baseline, await takeFingerprint(browser, page))];
}
