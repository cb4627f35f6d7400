import { readdir, rmdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { type BrowserId, findBrowserId } from "../base/ids.js";
import { cgroupsIn } from "./cgroup.js";
import { removeDirectory } from "./directories.js";
import { sweepDisplays } from "./display-traces.js";
import type { Host } from "./host.js";
import { findProcesses, killAll } from "./processes.js";
import { cgroupTopsOf, keepCgroupTops } from "./scratch.js";
import { removeCgroup } from "./tree.js";

const limitMs = 20_000;

/**
 * Clears what a killed daemon has left of its browsers, and says which. To be called before the first launch. The scratch
 * directory is this daemon's alone (one per data directory, whose lock it holds), so all that is in it is left over;
 * another daemon's browsers are in another directory and are never looked at. Displays are swept by owner, too: a daemon
 * that was killed may have had another data directory, and the same uids.
 */
export async function sweepLeftovers(host: Host): Promise<readonly BrowserId[]> {
  const entries = await readdir(host.scratchDirectory);
  const browsers = entries.map(findBrowserId).filter((id) => id !== undefined);
  const roots = browsers.map((id) => join(host.scratchDirectory, id));
  // A root is of its browser's group, and else ours (directories.ts).
  const owners = new Set(await Promise.all(roots.map(async (root) => (await stat(root))[host.uids ? "gid" : "uid"])));
  if (roots.length > 0) await killAll(host.clock, () => findProcesses(roots), limitMs);
  await sweepCgroups(host);
  await sweepDisplays((uid) => owners.has(uid) || host.uids?.owns(uid) === true);
  await Promise.all(roots.map(removeDirectory));
  if (browsers.length > 0) host.log.info({ browsers }, "leftover browsers swept");
  return browsers;
}

/** A restarted daemon may run in another cgroup than before, and then its browsers' are elsewhere too. */
async function sweepCgroups({ cgroups, clock, scratchDirectory }: Host): Promise<void> {
  const own = cgroups?.top;
  for (const top of await cgroupTopsOf(scratchDirectory)) {
    for (const cgroup of await cgroupsIn(top)) {
      await killAll(clock, () => cgroup.processes(), limitMs);
      await removeCgroup(cgroup, clock);
    }
    if (top !== own) await rmdir(top).catch(() => {});
  }
  await keepCgroupTops(scratchDirectory, own === undefined ? [] : [own]);
}
