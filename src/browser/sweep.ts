import { chmod, readdir, readFile, rmdir } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import type { Clock } from "../base/clock.js";
import { within } from "../base/deadline.js";
import { textOf } from "../base/log.js";
import { cgroupsIn } from "./resources/cgroup.js";
import { daemonLeaf } from "./resources/cgroup-hierarchy.js";
import { isWorkspaceName, removeRoot } from "./directories.js";
import { sweepSharedSockets } from "./display/display-sockets.js";
import type { BrowserHost } from "./host.js";
import { hasPrivateRoot } from "./isolation/rungs.js";
import { isBubblewrap, killAll, processesOf, processTreeOf } from "./resources/processes.js";
import { holdNothing } from "./resources/open-scratch.js";
import {
  cgroupTopsOf,
  foreignIn,
  isOfDaemons,
  isOurs,
  keepCgroupTops,
  removeLock,
  removeScratch,
} from "./resources/scratch.js";
import { unmountBelow } from "./resources/mounts.js";
import { killStrayProcesses } from "./stray-processes.js";
import { removeCgroup } from "./resources/process-tree.js";

/**
 * Clears what a killed daemon has left of its browsers, and says how many directories there were. To be
 * called before the first launch. The scratch directory is this daemon's alone, which holds its lock, so all
 * browsers that are in it are left over; another daemon's browsers are in another directory and are never
 * looked at. Processes end with their daemon, by their process namespace; those that had none are
 * found by their cgroup or by their uid. Throws where one of them stays, since it has a uid that is to be
 * given again; a directory that cannot be removed keeps no browser from starting.
 */
export async function sweepLeftovers(host: BrowserHost): Promise<number> {
  await killStrayProcesses(host);
  if (host.uids === undefined) await killNamespaces(host);
  await sweepCgroups(host);
  if (!hasPrivateRoot(host.walls?.rung ?? "none")) {
    await sweepSharedSockets((uid) => host.uids?.owns(uid) ?? uid === process.getuid?.());
  }
  const { found, left } = await removeWorkspaces(host.scratchDirectory, host);
  for (const path of left) await putOff(path, host);
  return found;
}

/**
 * Closes a directory to browsers, one of which may have the uid of the former one, and goes on trying to
 * remove it. A mode that cannot be changed is somebody else's, as is the directory.
 */
async function putOff(path: string, { clock, failedEnds, log }: BrowserHost): Promise<void> {
  log.warn({ path }, "the directory of a leftover browser could not be removed yet");
  await chmod(path, 0o700).catch(() => {});
  failedEnds.add(() => removeInTime(path, clock));
}

/**
 * Clears scratch directories that earlier runs of this daemon have used, as far as their cgroups identify the
 * processes. It has to be called before one of them is chosen: what is left in memory takes the room by which
 * it is chosen. One that another daemon uses by now stays as it is.
 */
export async function sweepEarlier(
  paths: readonly string[],
  around: Pick<BrowserHost, "clock" | "log">,
  hold = holdNothing,
): Promise<void> {
  for (const scratchDirectory of paths) {
    if (!(await isOurs(scratchDirectory))) continue;
    try {
      const release = await hold(scratchDirectory);
      await clearEarlier(scratchDirectory, around).finally(release);
    } catch (error) {
      around.log.warn(
        { scratchDirectory, error: textOf(error) },
        "an earlier scratch directory could not be cleared",
      );
    }
  }
}

/**
 * A directory that a setting named may hold other people's files by now. Then only what nobody else would
 * call so is removed: `etc` may be theirs.
 */
async function clearEarlier(
  scratchDirectory: string,
  around: Pick<BrowserHost, "clock" | "log">,
): Promise<void> {
  await sweepCgroups({ ...around, scratchDirectory });
  const { left } = await removeWorkspaces(scratchDirectory, around);
  if (left.length > 0) throw new Error(`${left.length} directories of browsers could not be removed`);
  await ((await foreignIn(scratchDirectory)).length === 0 ? removeScratch : removeLock)(scratchDirectory);
}

interface Removed {
  /** How many directories of browsers there were. */
  readonly found: number;
  /** The paths of those that are still there. */
  readonly left: readonly string[];
}

const removalLimitMs = 15_000;

/** Waits for a removal so long, which goes on then and is joined by the next try. */
const removeInTime = (path: string, clock: Clock): Promise<void> =>
  within(clock, { what: `removing ${path}`, limitMs: removalLimitMs }, removeRoot(path));

async function removeWorkspaces(
  scratch: string,
  { clock, log }: Pick<BrowserHost, "clock" | "log">,
): Promise<Removed> {
  const names = (await readdir(scratch)).filter(isWorkspaceName);
  const isShared = (await foreignIn(scratch)).length > 0;
  await unmountBelow(scratch, isShared ? isWorkspaceName : isOfDaemons);
  const paths = names.map((name) => join(scratch, name));
  const removals = await Promise.allSettled(paths.map((path) => removeInTime(path, clock)));
  const left = paths.filter((_, at) => removals[at]?.status === "rejected");
  const directories = paths.length - left.length;
  if (directories > 0) log.info({ directories }, "leftover browsers swept");
  return { found: paths.length, left };
}

const limitMs = 10_000;

/**
 * bwrap 0.8.0 asks to end with its parent only after it has started: one whose daemon was killed within that
 * moment goes on. It is known by the path of a browser's directory on its command line.
 */
async function killNamespaces({ clock, scratchDirectory }: BrowserHost): Promise<void> {
  const find = async (): Promise<number[]> => {
    const own = await processesOf((uid) => uid === process.getuid?.());
    const found = await Promise.all(
      own.map(async (pid) => ((await isBubblewrapOf(pid, scratchDirectory)) ? await processTreeOf(pid) : [])),
    );
    return [...new Set(found.flat())];
  };
  await killAll(clock, find, limitMs);
}

const isBubblewrapOf = async (pid: number, scratch: string): Promise<boolean> =>
  (await isBubblewrap(pid)) &&
  (await readFile(`/proc/${pid}/cmdline`, "latin1").catch(() => "")).includes(`${scratch}/b-`);

/**
 * Removes the cgroup of a killed daemon and the daemon's own leaf in it. It stays while something lives in
 * it.
 */
async function removeTop(top: string): Promise<void> {
  for (const path of [join(dirname(top), daemonLeaf(basename(top))), top]) await rmdir(path).catch(() => {});
}

/** A restarted daemon may run in another cgroup than before, and then its browsers' are elsewhere too. */
async function sweepCgroups({
  cgroups,
  clock,
  scratchDirectory,
}: Pick<BrowserHost, "cgroups" | "clock" | "scratchDirectory">): Promise<void> {
  const own = cgroups?.tops ?? [];
  for (const top of await cgroupTopsOf(scratchDirectory)) {
    for (const cgroup of await cgroupsIn(top)) await removeCgroup(cgroup, clock);
    if (!own.includes(top)) await removeTop(top);
  }
  await keepCgroupTops(scratchDirectory, own);
}
