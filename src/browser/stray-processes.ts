import type { Clock } from "../base/clock.js";
import type { Log } from "../base/log.js";
import { isOrphan, killAll, processesOf } from "./resources/processes.js";
import type { Uids } from "./resources/uids.js";

interface StrayProcessParts {
  readonly clock: Clock;
  readonly log: Log;
  /** Absent where the daemon may not give uids: then no process can be told from another. */
  readonly uids?: Uids;
}

const limitMs = 20_000;

/**
 * Ends processes whose uid is this daemon's to give, which no browser holds now and whose starter has ended.
 * There should be none. Those of a living daemon are left, which in another network namespace may have been
 * given the same uids.
 */
export async function killStrayProcesses({ clock, log, uids }: StrayProcessParts): Promise<void> {
  if (uids === undefined) return;
  const isOurs = (uid: number): boolean => uids.owns(uid) && !uids.isTaken(uid);
  const find = async (): Promise<number[]> => {
    const all = await processesOf(isOurs);
    const orphans = await Promise.all(all.map((pid) => isOrphan(pid, uids.owns)));
    return all.filter((_, at) => orphans[at]);
  };
  const strays = await find();
  if (strays.length === 0) return;
  log.warn({ processes: strays.length }, "processes without a browser ended");
  await killAll(clock, find, limitMs);
}
