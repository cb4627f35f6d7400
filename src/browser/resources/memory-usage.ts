import { readFile } from "node:fs/promises";
import { totalmem } from "node:os";
import { yieldTurn } from "../../base/yield-turn.js";
import { processesByLeader } from "./processes.js";
import { heldBytes, kilobytes, mountedBytes, unseenBytes } from "./shared-memory.js";

/**
 * Measures the bytes that each browser's processes hold, by the pid of its first one. What many looks would
 * cost too much is asked for only of a browser that may be above `limitOf`: the shares of memory that several
 * processes map (the PSS: 20 ms a browser), and shared memory that nobody maps (some 5 ms). Below it such
 * memory is counted once for each process that maps it.
 */
type MeasureMemory = (
  leaders: readonly number[],
  limitOf: (leader: number) => number,
) => Promise<ReadonlyMap<number, number>>;

/**
 * The most browsers that are looked at closely in one look. Where others of the machine keep much shared
 * memory, any browser may seem to hold it.
 */
const closeLooks = 10;

/**
 * A browser whose processes map so many times its limit is above it, however they share: to look at each
 * page's share takes the kernel as long as there are pages mapped.
 */
const mostSharers = 8;

export function makeMeasureMemory(): MeasureMemory {
  let waiting: readonly number[] = [];
  return async (leaders, limitOf) => {
    const trees = await processesByLeader(leaders);
    const unseen = unseenBytes();
    const counted = new Map<number, number>();
    const doubtful: number[] = [];
    for (const [leader, pids] of trees) {
      const bytes = (await sum(pids, residentBytes)) + (await mountedBytes(pids));
      counted.set(leader, bytes);
      if (bytes <= limitOf(leader) && bytes + unseen > limitOf(leader)) doubtful.push(leader);
    }
    // Those that have waited longest come first.
    const inTurn = [...waiting.filter((leader) => doubtful.includes(leader)), ...doubtful];
    const looked = [...new Set(inTurn)].slice(0, closeLooks);
    waiting = doubtful.filter((leader) => !looked.includes(leader));
    const isAbove = (bytes: number, limit: number): boolean => bytes > limit && bytes <= limit * mostSharers;
    const above = leaders.filter((leader) => isAbove(counted.get(leader) ?? 0, limitOf(leader)));
    for (const leader of [...looked, ...above]) {
      counted.set(leader, await exactBytes(trees.get(leader) ?? []));
      await yieldTurn();
    }
    return counted;
  };
}

/**
 * What is held by descriptors may be what is mapped, so that the larger of both is taken; where maps show
 * their files the first has it all. It is looked at first: shares take the kernel as long as there are
 * mappings. Whoever has more than that look may go through has all the memory there is.
 */
async function exactBytes(pids: readonly number[]): Promise<number> {
  const held = await heldBytes(pids);
  if (held === undefined) return totalmem();
  const [own, mapped] = await Promise.all([sum(pids, ownBytes), sum(pids, mappedBytes)]);
  return own + Math.max(mapped, held) + (await mountedBytes(pids));
}

async function sum(pids: readonly number[], bytesOf: (pid: number) => Promise<number>): Promise<number> {
  const all = await Promise.all(pids.map(bytesOf));
  return all.reduce((total, bytes) => total + bytes, 0);
}

/**
 * A process's own memory and the shared memory that it maps, without what is read from files. Anybody may
 * read this.
 */
async function residentBytes(pid: number): Promise<number> {
  const text = await statusOf(pid);
  return kilobytes(text, "RssAnon") + kilobytes(text, "RssShmem");
}

const statusOf = (pid: number): Promise<string> => readFile(`/proc/${pid}/status`, "latin1").catch(() => "");

/** Root may read shares of every process, others not of Chromium's sandboxed ones. */
async function shareOf(pid: number, [share, resident]: readonly [string, string]): Promise<number> {
  const text = await readFile(`/proc/${pid}/smaps_rollup`, "latin1").catch(() => "");
  const isTold = kilobytes(text, "Pss") > 0;
  return isTold ? kilobytes(text, share) : kilobytes(await statusOf(pid), resident);
}
const ownBytes = (pid: number): Promise<number> => shareOf(pid, ["Pss_Anon", "RssAnon"]);
const mappedBytes = (pid: number): Promise<number> => shareOf(pid, ["Pss_Shmem", "RssShmem"]);
