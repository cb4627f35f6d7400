import { access } from "node:fs/promises";
import { join } from "node:path";
import { type Clock, type Millis, pause } from "../../base/clock.js";
import type { Cdp } from "../cdp/cdp.js";
import type { ForcedExtension } from "./forced-extensions.js";

const pauseMs: Millis = 25;

interface InstallWait {
  readonly cdp: Cdp;
  readonly clock: Clock;
  readonly profile: string;
  readonly limitMs: Millis;
}

/**
 * True where Chromium installs the extension within the limit. Chromium does not report extensions that
 * policy installs, and lets nobody attach to one: a page of the extension ends the session that opens it
 * (Chromium 156, docs/chromium.md#extensions). What can be seen is the start of its worker, which follows
 * each install; or its files in the profile, where it has no worker.
 */
export async function isInstalled(
  forced: ForcedExtension,
  { cdp, clock, profile, limitMs }: InstallWait,
): Promise<boolean> {
  const deadline = clock.monotonic() + limitMs;
  const shows = (): Promise<boolean> =>
    forced.hasWorker ? hasStarted(cdp, forced) : hasFiles(profile, forced);
  while (!(await shows())) {
    if (clock.monotonic() > deadline) return false;
    await pause(clock, pauseMs);
  }
  return true;
}

async function hasStarted(cdp: Cdp, { id }: ForcedExtension): Promise<boolean> {
  const { targetInfos } = await cdp.send("Target.getTargets", {});
  return targetInfos.some(
    ({ type, url }) => type === "service_worker" && url.startsWith(`chrome-extension://${id}/`),
  );
}

const hasFiles = (profile: string, { id }: ForcedExtension): Promise<boolean> =>
  access(join(profile, "Default", "Extensions", id)).then(
    () => true,
    () => false,
  );
