import { type Clock, pause } from "../../base/clock.js";
import { TimeLimitReached } from "../../base/deadline.js";
import type { Cgroup } from "./cgroup.js";
import { findFirstInside, isLiving, killAll, killProcess } from "./processes.js";

const limitMs = 10_000;
const lookAgainMs = 10;

interface SpawnedTree {
  readonly pid: number | undefined;
  readonly exited: Promise<unknown>;
}

/**
 * Ends all processes of what was spawned: a process namespace with bwrap(1) before it, or without a private
 * root a process group. Resolves when the spawned process has ended, which in a namespace is the last to go.
 * A bwrap that was stopped by a signal cannot end by itself.
 */
export async function endProcessTree({ pid, exited }: SpawnedTree, clock: Clock): Promise<void> {
  if (pid === undefined) return;
  const deadline = clock.monotonic() + limitMs;
  const hasEnded = exited.then(() => true);
  const inside = await findFirstInside(pid);
  if (await Promise.race([hasEnded, Promise.resolve(false)])) return await endRest(pid);
  do {
    if (clock.monotonic() > deadline) throw new TimeLimitReached("ending Chromium", limitMs);
    if (inside !== undefined && (await isLiving(inside))) killProcess(inside);
    else killGroup(pid);
  } while (!(await Promise.race([hasEnded, pause(clock, lookAgainMs)])));
}

/** The number of a process that has ended may be another's by now, but not while its group has members. */
async function endRest(leader: number): Promise<void> {
  if (!(await isLiving(leader))) killProcess(-leader);
}

function killGroup(leader: number): void {
  killProcess(-leader);
  killProcess(leader);
}

const removalPauseMs = 5;
const removalTries = 400;

/**
 * Removes a browser's cgroup, with what is left in it where there was no process namespace. The kernel counts
 * a process as a cgroup's a moment longer than it lives.
 */
export async function removeCgroup(cgroup: Cgroup, clock: Clock): Promise<void> {
  await killAll(clock, () => cgroup.processes(), limitMs);
  for (let tries = 1; tries < removalTries; tries += 1) {
    const isGone = await cgroup.remove().then(
      () => true,
      () => false,
    );
    if (isGone) return;
    await pause(clock, removalPauseMs);
  }
  await cgroup.remove();
}
