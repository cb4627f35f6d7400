import { type Clock, type Millis, pause } from "../base/clock.js";
import { TimeLimitReached } from "../base/deadline.js";
import { type Cdp, CdpRefused } from "./cdp.js";

/** The extensions that a browser has, by their ids. */
export type Installed = ReadonlyMap<string, { readonly path: string; readonly isEnabled: boolean }>;

export async function installedIn(cdp: Cdp, within: { limitMs?: Millis } = {}): Promise<Installed> {
  const { extensions } = await cdp.send("Extensions.getExtensions", {}, within);
  return new Map(extensions.map(({ id, path, enabled }) => [id, { path, isEnabled: enabled }]));
}

const limitMs: Millis = 5_000;
const pauseMs: Millis = 10;
/** The worker of an uninstalled extension may still be starting, and goes on until it is closed too (measured, 156). */
const quietMs: Millis = 150;

/**
 * Brings a browser's extensions back to those it had: uninstalls what came since, closes its workers and pages, and loads
 * again what was replaced. Throws `TimeLimitReached` where that does not come to rest within 5 s.
 */
export async function restore(cdp: Cdp, clock: Clock, before: Installed): Promise<void> {
  const deadline = clock.monotonic() + limitMs;
  const strangers = new Set<string>();
  for (let quietSince = clock.monotonic(); clock.monotonic() - quietSince < quietMs;) {
    if (clock.monotonic() > deadline) throw new TimeLimitReached("taking extensions back", limitMs);
    const changes = await Promise.all([restoreExtensions(cdp, before, strangers), closeTargets(cdp, strangers)]);
    if (changes.some((count) => count > 0)) quietSince = clock.monotonic();
    await pause(clock, pauseMs);
  }
}

/** How many were not as before. */
async function restoreExtensions(cdp: Cdp, before: Installed, strangers: Set<string>): Promise<number> {
  const now = await installedIn(cdp);
  const added = [...now.keys()].filter((id) => !before.has(id));
  const changed = [...before].filter(([id, { path, isEnabled }]) => isEnabled && now.get(id)?.path !== path);
  for (const id of added) strangers.add(id);
  await Promise.all([
    ...added.map((id) => cdp.send("Extensions.uninstall", { id }).catch(ignoreRefusal)),
    ...changed.map(([, { path }]) => cdp.send("Extensions.loadUnpacked", { path, enableInIncognito: true })),
  ]);
  return added.length + changed.length;
}

async function closeTargets(cdp: Cdp, strangers: ReadonlySet<string>): Promise<number> {
  const { targetInfos } = await cdp.send("Target.getTargets", {});
  const theirs = targetInfos.filter(({ url }) => [...strangers].some((id) => url.startsWith(`chrome-extension://${id}/`)));
  await Promise.all(theirs.map(({ targetId }) => cdp.send("Target.closeTarget", { targetId }).catch(ignoreRefusal)));
  return theirs.length;
}

const ignoreRefusal = (error: unknown): void => {
  if (!(error instanceof CdpRefused)) throw error;
};
