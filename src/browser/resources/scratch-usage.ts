import { statfsSync, statSync } from "node:fs";
import { statfs } from "node:fs/promises";
import type { Millis } from "../../base/clock.js";
import { yieldTurn } from "../../base/yield-turn.js";
import { findTool } from "../executable.js";
import { runProgram } from "../run-program.js";
import { BoundedLook } from "./bounded-look.js";
import { bytesOnDisk, mostCalls, openFiles } from "./open-files.js";
import { processesByLeader } from "./processes.js";

/** How much lies in the directories of one browser. */
export interface StorageUse {
  readonly bytes: number;
  readonly files: number;
}

/**
 * Measures a file system in memory that belongs to one browser. The kernel keeps its totals, so that asking
 * costs some 3 us; a job in the thread pool would cost ten times that.
 */
export function measureMount(root: string): StorageUse {
  const { bsize, blocks, bfree, files, ffree } = statfsSync(root);
  return { bytes: (blocks - bfree) * bsize, files: files - ffree };
}

/** The directory of a browser, and the pid of its first process. */
export interface StoringBrowser {
  readonly root: string;
  readonly pid: number;
}

/** The time that counting one browser's files may take: du(1) counts half a million in a second. */
const limitMs: Millis = 5_000;

/**
 * Counts the files of each browser, one after the other, in a process of the least priority: many files cost
 * the machine a little and the daemon nothing. Files that have no name any more, and are open still, are
 * added. Null for a browser whose files were not counted in time, or not all; empty where du(1) is missing.
 */
export async function measureStorage(
  browsers: readonly StoringBrowser[],
): Promise<ReadonlyMap<string, StorageUse | null>> {
  const [du, nice] = await Promise.all([findTool("du"), findTool("nice")]);
  const counted = new Map<string, StorageUse | null>();
  if (du === undefined) return counted;
  const head = nice === undefined ? [du] : [nice, "-n", "19", du];
  const unnamed = await measureUnnamed(browsers);
  for (const { root } of browsers) {
    const open = unnamed.get(root);
    const named = open && (await count(head, root));
    counted.set(root, named ? { bytes: named.bytes + open.bytes, files: named.files + open.files } : null);
  }
  return counted;
}

async function count(head: readonly string[], root: string): Promise<StorageUse | null> {
  const [program = "", ...args] = head;
  const asked = async (what: string): Promise<number> => {
    const asking = [...args, "-s", "-x", what, "--", root];
    const { output, complaint } = await runProgram(program, asking, { limitMs });
    // What vanishes while it is counted makes du complain, not stop. A directory that is closed to an
    // ordinary user's daemon is left out of the sum, so that any number of files could lie in it.
    return complaint.includes("Permission denied") ? Number.NaN : Number.parseInt(output, 10);
  };
  const kilobytes = await asked("-k");
  const files = await asked("--inodes");
  return Number.isNaN(kilobytes) || Number.isNaN(files) ? null : { bytes: kilobytes * 1024, files };
}

/**
 * Measures the files that browsers have open on the file system of their directories and that have no name
 * there; a browser that has more open than a look may go through is left out.
 */
async function measureUnnamed(browsers: readonly StoringBrowser[]): Promise<ReadonlyMap<string, StorageUse>> {
  const processes = await processesByLeader(browsers.map(({ pid }) => pid));
  const measured = new Map<string, StorageUse>();
  for (const { root, pid } of browsers) {
    const look = new BoundedLook(mostCalls);
    const device = await look.ask(() => statSync(root).dev);
    const unnamed = await openFiles(look, processes.get(pid) ?? [], mayBeUnnamed);
    const files = unnamed.filter(({ dev, nlink }) => dev === device && nlink === 0);
    if (!look.isOver) measured.set(root, { bytes: bytesOnDisk(files), files: files.length });
    await yieldTurn();
  }
  return measured;
}

const mayBeUnnamed = (path: string | undefined): boolean => path?.endsWith(" (deleted)") ?? true;

/**
 * Measures how full the file system of all browsers is; what lies in mounts below it is counted as if it lay
 * in it, too.
 */
export async function fullness(scratch: string, inMounts: readonly StorageUse[]): Promise<number> {
  const { bsize, blocks, bavail } = await statfs(scratch);
  const mounted = inMounts.reduce((total, { bytes }) => total + bytes, 0);
  return blocks === 0 ? 0 : 1 - (bavail * bsize - mounted) / (blocks * bsize);
}
