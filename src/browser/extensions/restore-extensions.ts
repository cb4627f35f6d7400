import { join } from "node:path";
import { type Clock, type Millis, pause } from "../../base/clock.js";
import { TimeLimitReached } from "../../base/deadline.js";
import { type Cdp, CdpRefused, ignoreRefusal } from "../cdp/cdp.js";
import { findForeignText } from "../foreign-file.js";

/** The extensions that a browser has, by their ids. */
export type InstalledExtensions = ReadonlyMap<string, { readonly path: string; readonly isEnabled: boolean }>;

export async function installedIn(cdp: Cdp, within: { limitMs?: Millis } = {}): Promise<InstalledExtensions> {
  const { extensions } = await cdp.send("Extensions.getExtensions", {}, within);
  return new Map(extensions.map(({ id, path, enabled }) => [id, { path, isEnabled: enabled }]));
}

const limitMs: Millis = 30_000;
/** More for each extension that is taken back: Chromium starts the workers of all of them first. */
const limitOfEachMs: Millis = 2_000;
const pauseMs: Millis = 10;
/**
 * The worker of an uninstalled extension may still be starting, and goes on until it is closed too (Chromium
 * 156, docs/chromium.md#extensions).
 */
const quietMs: Millis = 150;

/**
 * Brings a browser's extensions back to those it had: uninstalls what came since, closes its workers and
 * pages, and loads again what was replaced. Throws `TimeLimitReached` where that does not come to rest within
 * 30 s and 2 s for each.
 */
export async function restoreInstalled(cdp: Cdp, clock: Clock, before: InstalledExtensions): Promise<void> {
  const startedAt = clock.monotonic();
  const strangers = new Set<string>();
  const mostMs = (): Millis => limitMs + limitOfEachMs * strangers.size;
  const leftMs = (): Millis => startedAt + mostMs() - clock.monotonic();
  for (let quietSince = clock.monotonic(); clock.monotonic() - quietSince < quietMs;) {
    if (leftMs() <= 0) throw new TimeLimitReached("taking extensions back", mostMs());
    const changes = await Promise.all([
      restoreExtensions({ cdp, clock, before, strangers, leftMs }),
      closeTargets(cdp, strangers),
    ]);
    if (changes.some((count) => count > 0)) quietSince = clock.monotonic();
    await pause(clock, pauseMs);
  }
}

interface Restoring {
  readonly cdp: Cdp;
  readonly clock: Clock;
  readonly before: InstalledExtensions;
  /** Those that came since, as far as they are known. */
  readonly strangers: Set<string>;
  /** Chromium answers one uninstalling after the other, so each may take as long as all of them. */
  readonly leftMs: () => Millis;
}

/** Restores them once, and gives how many were not as before. */
async function restoreExtensions(restoring: Restoring): Promise<number> {
  const { cdp, before, strangers } = restoring;
  const now = await installedIn(cdp);
  const added = [...now].filter(([id]) => !before.has(id));
  const changed = [...before].filter(([id, { path, isEnabled }]) => isEnabled && now.get(id)?.path !== path);
  for (const [id] of added) strangers.add(id);
  // So many that look at once would keep Chromium from starting the workers that they wait for.
  const looksEveryMs = pauseMs * added.length;
  await Promise.all([
    ...added.map(([id, { path }]) => uninstall(restoring, { id, path, looksEveryMs })),
    ...changed.map(([, { path }]) => cdp.send("Extensions.loadUnpacked", { path, enableInIncognito: true })),
  ]);
  return added.length + changed.length;
}

/** A worker that does not answer within this is looked for once more: it may have ended meanwhile. */
const answerLimitMs: Millis = 1_000;
const mostManifestBytes = 2 ** 20;

/**
 * Uninstalls an extension after its worker, if it has one, has started, or was seen and is gone. A worker
 * that is still starting would leave a target behind that stays in every list, cannot be closed and is
 * nowhere else (Chromium 156, docs/chromium.md#extensions).
 */
async function uninstall(
  { cdp, clock, leftMs }: Restoring,
  { id, path, looksEveryMs }: { id: string; path: string; looksEveryMs: Millis },
): Promise<void> {
  // The browser has said this path, so the file there is not trusted.
  const manifest = (await findForeignText(join(path, "manifest.json"), mostManifestBytes)) ?? "";
  const deadline = clock.monotonic() + leftMs() / 2;
  let isAwaited = manifest.includes('"service_worker"');
  for (let wasSeen = false; isAwaited && clock.monotonic() < deadline;) {
    const state = await findWorkerState(cdp, id);
    isAwaited = state === "silent" || (state === "none" && !wasSeen);
    wasSeen ||= state === "silent";
    if (isAwaited) await pause(clock, looksEveryMs);
  }
  const limit = { limitMs: Math.max(1, leftMs()) };
  await cdp.send("Extensions.uninstall", { id }, limit).catch(ignoreRefusal);
}

/** Whether an extension has a worker, and whether that answers: it does not while it is still starting. */
async function findWorkerState(cdp: Cdp, id: string): Promise<"none" | "silent" | "running"> {
  const { targetInfos } = await cdp.send("Target.getTargets", {});
  const worker = targetInfos.find(
    ({ type, url }) => type === "service_worker" && url.startsWith(`chrome-extension://${id}/`),
  );
  if (worker === undefined) return "none";
  try {
    const { sessionId } = await cdp.send("Target.attachToTarget", {
      targetId: worker.targetId,
      flatten: true,
    });
    const within = { session: sessionId, limitMs: answerLimitMs };
    await cdp
      .send("Runtime.evaluate", { expression: "0" }, within)
      .finally(() => cdp.send("Target.detachFromTarget", { sessionId }).catch(ignoreRefusal));
    return "running";
  } catch (error) {
    if (error instanceof CdpRefused || error instanceof TimeLimitReached) return "silent";
    throw error;
  }
}

async function closeTargets(cdp: Cdp, strangers: ReadonlySet<string>): Promise<number> {
  const { targetInfos } = await cdp.send("Target.getTargets", {});
  const theirs = targetInfos.filter(({ url }) =>
    [...strangers].some((id) => url.startsWith(`chrome-extension://${id}/`)),
  );
  await Promise.all(
    theirs.map(({ targetId }) => cdp.send("Target.closeTarget", { targetId }).catch(ignoreRefusal)),
  );
  return theirs.length;
}
