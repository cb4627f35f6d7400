import { createHash } from "node:crypto";
import { readdir } from "node:fs/promises";
import { type Cdp, CdpRefused } from "../cdp/cdp.js";
import type { Directories } from "../chromium.js";
import { storedIn } from "./stored-data.js";

/**
 * What a browser shows of itself, part by part; each part is a list of things, so that a difference can be
 * named.
 */
export interface Fingerprint {
  readonly targets: readonly string[];
  readonly contexts: readonly string[];
  readonly cookies: readonly string[];
  readonly extensions: readonly string[];
  /** The position and size of the given page's window. */
  readonly window: readonly string[];
  /** Those of a headless browser, which clients may add, change and remove. */
  readonly screens: readonly string[];
  readonly files: readonly string[];
  readonly stored: readonly string[];
}

interface Fingerprinted {
  readonly cdp: Cdp;
  readonly directories: Directories;
}

/** A page, and our session on it. */
export interface AttachedPage {
  readonly targetId: string;
  readonly session: string;
}

/**
 * Takes the fingerprint of a browser that has `page` open. It shows what Chromium tells of itself or leaves
 * in its profile. Not shown, so no difference: the HTTP-auth cache, HSTS, TLS sessions, DNS and socket pools,
 * the history, what a person has allowed at a prompt, and what was changed on Chromium's settings pages.
 * Processes are not counted: the renderer of a closed page may stay for seconds (Chromium 156,
 * docs/chromium.md#clearing-a-used-browser).
 */
export async function takeFingerprint(
  { cdp, directories }: Fingerprinted,
  page: AttachedPage,
): Promise<Fingerprint> {
  const [targets, contexts, cookies, screens, extensions, window, files, stored] = await Promise.all([
    targetsOf(cdp),
    contextsOf(cdp),
    cookiesOf(cdp),
    screensOf(cdp, page),
    extensionsOf(cdp),
    windowOf(cdp, page),
    filesIn(directories),
    storedIn(directories.profile),
  ]);
  return { targets, contexts, cookies, screens, extensions, window, files, stored };
}

export async function attachTo(cdp: Cdp, targetId: string): Promise<AttachedPage> {
  const { sessionId: session } = await cdp.send("Target.attachToTarget", { targetId, flatten: true });
  return { targetId, session };
}

/** Lists what `now` has more than `before`, and what it lacks. */
export function differencesBetween(before: Fingerprint, now: Fingerprint): string[] {
  const parts = Object.keys(before) as (keyof Fingerprint)[];
  return parts.flatMap((part) => [
    ...beyond(now[part], before[part]).map((thing) => `${part}: ${thing}`),
    ...beyond(before[part], now[part]).map((thing) => `${part}: no ${thing}`),
  ]);
}

/** The things in `all` that are not in `some`; each stands there as often as it is too many. */
function beyond(all: readonly string[], some: readonly string[]): string[] {
  const left = [...some];
  return all.filter((thing) => {
    const at = left.indexOf(thing);
    if (at !== -1) left.splice(at, 1);
    return at === -1;
  });
}

async function targetsOf(cdp: Cdp): Promise<string[]> {
  const { targetInfos } = await cdp.send("Target.getTargets", {});
  // Only a page's address belongs to the state after launch; other targets' addresses show what a client did.
  return targetInfos.map(({ type, url }) => (type === "page" && url === "about:blank" ? "blank page" : type));
}

async function contextsOf(cdp: Cdp): Promise<string[]> {
  const { browserContextIds } = await cdp.send("Target.getBrowserContexts", {});
  return browserContextIds.map(() => "context of a client");
}

async function cookiesOf(cdp: Cdp): Promise<string[]> {
  const { cookies } = await cdp.send("Storage.getCookies", {});
  return cookies.map(({ domain }) => `cookie of ${domain}`);
}

export async function extensionsOf(cdp: Cdp): Promise<string[]> {
  try {
    const { extensions } = await cdp.send("Extensions.getExtensions", {});
    return extensions.map(({ id }) => id);
  } catch (error) {
    // headless-shell has no extensions, and says that it does not know the method.
    if (error instanceof CdpRefused) return [];
    throw error;
  }
}

/** The words of a client are not shown: they are not for logs. */
async function screensOf(cdp: Cdp, { session }: AttachedPage): Promise<string[]> {
  try {
    const { screenInfos } = await cdp.send("Emulation.getScreenInfos", {}, { session });
    return screenInfos.map((screen) => {
      const digest = createHash("sha256").update(JSON.stringify(screen)).digest("hex").slice(0, 8);
      return `${screen.width} × ${screen.height} at ${screen.left}, ${screen.top} (${digest})`;
    });
  } catch (error) {
    // A browser with windows has the display's, and says that it cannot tell.
    if (error instanceof CdpRefused) return [];
    throw error;
  }
}

async function windowOf(cdp: Cdp, { targetId }: AttachedPage): Promise<string[]> {
  const { bounds } = await cdp.send("Browser.getWindowForTarget", { targetId });
  const { left, top, width, height, windowState } = bounds;
  return [`${width} × ${height} at ${left}, ${top}, ${windowState}`];
}

async function filesIn({ downloads, uploads }: Directories): Promise<string[]> {
  const found = await Promise.all([downloads, uploads].map((path) => readdir(path)));
  return found.flatMap((names, at) => names.map(() => (at === 0 ? "downloaded file" : "uploaded file")));
}
