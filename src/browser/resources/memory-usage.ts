import { readdir, readFile } from "node:fs/promises";

interface Process {
  readonly pid: number;
  readonly parent: number;
  readonly group: number;
}

/**
 * Measures the bytes that each browser's processes hold, by the pid of its first one. Memory that several
 * processes map is counted once where the kernel tells their shares (the PSS): that takes 20 ms a browser, so
 * it is asked for only above `limitOf`. Elsewhere such memory is counted once for each process. Shared memory
 * that nobody maps is not seen.
 */
export async function memoryOf(
  leaders: readonly number[],
  limitOf: (leader: number) => number,
): Promise<ReadonlyMap<number, number>> {
  const trees = treesOf(leaders, await allProcesses());
  const counted = await Promise.all(
    [...trees].map(async ([leader, pids]) => {
      const roughly = await sum(pids, residentBytes);
      return [leader, roughly <= limitOf(leader) ? roughly : await sum(pids, shareBytes)] as const;
    }),
  );
  return new Map(counted);
}

/**
 * Finds the processes below each leader, and those of its group, which a process stays in when it gets
 * another parent.
 */
function treesOf(
  leaders: readonly number[],
  all: readonly Process[],
): ReadonlyMap<number, readonly number[]> {
  const owners = new Map(leaders.map((leader) => [leader, leader]));
  const parents = new Map(all.map((process) => [process.pid, process]));
  const ownerOf = (pid: number, depth: number): number | undefined => {
    const process = parents.get(pid);
    const known = owners.get(pid) ?? (process && owners.get(process.group));
    if (known !== undefined || process === undefined || depth > mostDepth) return known;
    return ownerOf(process.parent, depth + 1);
  };
  const trees = new Map<number, number[]>(leaders.map((leader) => [leader, []]));
  for (const { pid } of all) trees.get(ownerOf(pid, 0) ?? 0)?.push(pid);
  return trees;
}

/** The most processes between a browser's first one and its last. */
const mostDepth = 20;

async function allProcesses(): Promise<Process[]> {
  const names = (await readdir("/proc").catch(() => [])).filter((name) => /^\d+$/.test(name));
  const all = await Promise.all(
    names.map(async (pid) => {
      const text = await readFile(`/proc/${pid}/stat`, "latin1").catch(() => "");
      // The command's name, in parentheses, may itself hold spaces and parentheses (proc(5)).
      const [, parent, group] = text.slice(text.lastIndexOf(")") + 2).split(" ");
      return group === undefined
        ? undefined
        : { pid: Number(pid), parent: Number(parent), group: Number(group) };
    }),
  );
  return all.filter((process) => process !== undefined);
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
  const text = await readFile(`/proc/${pid}/status`, "latin1").catch(() => "");
  return kilobytesOf(text, "RssAnon") + kilobytesOf(text, "RssShmem");
}

/** Root may read this of every process, others not of Chromium's sandboxed ones. */
async function shareBytes(pid: number): Promise<number> {
  const text = await readFile(`/proc/${pid}/smaps_rollup`, "latin1").catch(() => "");
  const told = kilobytesOf(text, "Pss_Anon") + kilobytesOf(text, "Pss_Shmem");
  return told > 0 ? told : await residentBytes(pid);
}

const kilobytesOf = (text: string, field: string): number =>
  Number(new RegExp(`^${field}:\\s+(\\d+) kB`, "m").exec(text)?.[1] ?? 0) * 1024;
