import { chmod, lstat, mkdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CannotStart } from "../../base/cannot-start.js";
import type { Log } from "../../base/log.js";
import { settledPath } from "../../base/files/paths.js";
import { filterPath, makeFilter } from "../isolation/syscall-filter.js";
import { foreignIn, isOurs, lockName, onDisk, rememberTops, removeScratch, sharedMemory } from "./scratch.js";

/**
 * Chromium makes a socket at `<scratch>/<workspace, 14
 * bytes>/tmp/org.chromium.Chromium.XXXXXX/SingletonSocket` and aborts where that is longer than a socket's
 * path may be: 107 bytes on Linux, 103 on macOS (unix(7)).
 */
const mostPathBytes = (process.platform === "linux" ? 107 : 103) - 70;

/** Keeps other daemons off a directory until what it gives is called. Throws where one has it. */
export type HoldDirectory = (path: string) => Promise<() => Promise<void>>;
export const holdNothing: HoldDirectory = async () => async () => {};

/** A scratch directory that this daemon has, and gives up by either of these. */
interface HeldScratch {
  /** Removes all that daemons have put there, unless the directory is no longer the one that is held. */
  remove(): Promise<void>;
  /** Leaves it to the next start as it is. */
  leave(): Promise<void>;
  /** False where somebody has removed it or its lock, whatever lies there by now. */
  isHeld(): Promise<boolean>;
  /** Makes it anew, and holds it, where it is no longer held. Refuses what `openScratch` does. */
  renew(): Promise<void>;
}

const refused = (path: string, why: string): CannotStart =>
  new CannotStart(`node.scratch_dir: ${path} ${why}`);

/**
 * Makes the scratch directory, in which browsers can reach their own directory and list no other. Refuses one
 * that is not ours, since everybody may write to `/dev/shm` and another user might have made it first, and
 * one with files of others, who could no longer list them.
 */
export async function openScratch(path: string, hold = holdNothing): Promise<HeldScratch> {
  const why = await whyUnusable(path);
  if (why !== undefined) throw refused(path, why);
  await makeOurs(path);
  let release = await hold(path);
  let held = await marksOf(path);
  const isHeld = async (): Promise<boolean> => {
    const { directory, lock } = await marksOf(path);
    return (await isOurs(path)) && directory === held.directory && lock === held.lock;
  };
  const leave = (): Promise<void> => release();
  try {
    await chmod(path, 0o711);
  } catch (error) {
    await leave();
    throw error;
  }
  return {
    leave,
    isHeld,
    async remove() {
      try {
        if (await isHeld()) await removeScratch(path);
      } finally {
        await leave();
      }
    },
    async renew() {
      if (!(await isHeld())) {
        await makeOurs(path);
        // Where the lock is in another directory by now it is still this daemon's, and cannot be taken twice.
        const isLocked = (await marksOf(path)).lock === held.lock;
        const earlier = isLocked ? undefined : release;
        if (earlier) release = await hold(path);
        held = await marksOf(path);
        await earlier?.();
      }
      await chmod(path, 0o711);
    },
  };
}

/** Anybody may have made a directory of that name, and any program of ours may have put files there. */
async function makeOurs(path: string): Promise<void> {
  await mkdir(path, { recursive: true });
  if (!(await isOurs(path))) throw refused(path, "belongs to somebody else");
  const foreign = await foreignIn(path);
  if (foreign.length === 0) return;
  const named = foreign.slice(0, 3).join(", ");
  throw refused(path, `holds what is no browser's (${named}): name a directory that has nothing else in it`);
}

/**
 * Tells one file from another that has its path by now. An inode may be used again once its file is removed,
 * but not that of the lock, which this process has open.
 */
const markOf = (path: string): Promise<string> =>
  lstat(path).then(
    ({ dev, ino }) => `${dev}:${ino}`,
    () => "none",
  );

async function marksOf(path: string): Promise<{ readonly directory: string; readonly lock: string }> {
  const [directory, lock] = await Promise.all([markOf(path), markOf(join(path, lockName))]);
  return { directory, lock };
}

/**
 * Kernel file systems hold no files of others; recursive mkdir(2) of Node.js 20 never returns below /proc.
 */
const ofKernel = ["/proc", "/sys", "/dev"];
const isBelow = (path: string, place: string): boolean => path === place || path.startsWith(`${place}/`);
/** They may be empty, and every program of the machine needs them as they are. */
const ofEverybody = ["/tmp", onDisk, tmpdir()];

async function whyUnusable(path: string): Promise<string | undefined> {
  if (Buffer.byteLength(path) > mostPathBytes)
    return `has a path of more than ${mostPathBytes} bytes, which Chromium cannot use`;
  const real = await settledPath(path);
  if ((await Promise.all(ofEverybody.map(settledPath))).includes(real))
    return "is for files of all programs: name a directory in it";
  const place = ofKernel.find((each) => isBelow(real, each));
  const isInMemory = real !== sharedMemory && isBelow(real, sharedMemory);
  return place === undefined || isInMemory ? undefined : `is in ${place}, where browsers can keep no files`;
}

interface MendedScratch {
  readonly scratchDirectory: string;
  readonly cgroups?: { readonly tops: readonly string[] };
  readonly log: Log;
}

/**
 * To be called when all that browsers need is in the directory. Launches that find it removed at once wait
 * for one mend. Nothing that lies there says that it is whole, for somebody else may have put it there, and a
 * mend may have failed halfway.
 */
export async function makeMendScratch(
  scratch: HeldScratch,
  { scratchDirectory, cgroups, log }: MendedScratch,
): Promise<() => Promise<void>> {
  const filterMark = (): Promise<string> => markOf(filterPath(scratchDirectory));
  let whole: string | undefined = await filterMark();
  let mending: Promise<void> | undefined;
  const mend = async (): Promise<void> => {
    whole = undefined;
    await scratch.renew();
    if (cgroups) await rememberTops(scratchDirectory, cgroups.tops);
    await makeFilter(scratchDirectory);
    whole = await filterMark();
    log.warn({ scratchDirectory }, "scratch directory was removed by somebody, and is made anew");
  };
  return async () => {
    const [isHeld, mark] = await Promise.all([scratch.isHeld(), filterMark()]);
    if (isHeld && mark === whole) return;
    await (mending ??= mend().finally(() => (mending = undefined)));
  };
}
