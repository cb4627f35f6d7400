import { type Clock, pause } from "../base/clock.js";
import type { Cgroup } from "./cgroup.js";
import { findProcesses, killAll, killProcess } from "./processes.js";

/** All processes of one browser, its display's excepted. */
export interface Tree {
  readonly root: string;
  /** The main process and leader of the group; undefined when it could not be started. */
  readonly pid: number | undefined;
  readonly exited: Promise<unknown>;
  /** Those that are ended otherwise. */
  readonly spared: ReadonlySet<number>;
  readonly cgroup?: Cgroup;
}

const limitMs = 10_000;

/** Kills the main process first, which the others mostly follow, then whatever is left. */
export async function endTree({ root, pid, exited, spared, cgroup }: Tree, clock: Clock): Promise<void> {
  if (pid !== undefined) killProcess(-pid);
  await exited;
  const find = cgroup ? () => cgroup.processes() : () => findProcesses([root]);
  await killAll(clock, async () => (await find()).filter((each) => !spared.has(each)), limitMs);
}

const removalPauseMs = 5;
const removalTries = 400;

/** The kernel counts a process as a cgroup's a moment longer than it lives. */
export async function removeCgroup(cgroup: Cgroup, clock: Clock): Promise<void> {
  for (let tries = 1; tries < removalTries; tries += 1) {
    const isGone = await cgroup.remove().then(() => true, () => false);
    if (isGone) return;
    await pause(clock, removalPauseMs);
  }
  await cgroup.remove();
}
