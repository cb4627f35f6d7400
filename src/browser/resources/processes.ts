import { readdir, readFile, stat } from "node:fs/promises";
import type { Clock, Millis } from "../../base/clock.js";
import { pause } from "../../base/clock.js";
import { TimeLimitReached } from "../../base/deadline.js";

/** Sends SIGKILL; a process that has gone already is fine. */
export function killProcess(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // With ESRCH it has ended first.
  }
}

/**
 * The first process of the namespace that a spawned bwrap(1) has made: its end is the end of every process in
 * there, and bwrap itself, which stays outside, ends after it. Undefined where there is none, or not yet.
 */
export async function findFirstInside(pid: number): Promise<number | undefined> {
  return (await isBubblewrap(pid)) ? (await childrenOf(pid))[0] : undefined;
}

export const isBubblewrap = (pid: number): Promise<boolean> =>
  readFile(`/proc/${pid}/comm`, "latin1").then(
    (name) => name === "bwrap\n",
    () => false,
  );

async function childrenOf(pid: number): Promise<number[]> {
  const text = await readFile(`/proc/${pid}/task/${pid}/children`, "latin1").catch(() => "");
  return text
    .split(" ")
    .filter((word) => word !== "")
    .map(Number);
}

/** A process and all that descend from it, whatever namespace they are in. */
export async function processTreeOf(pid: number): Promise<number[]> {
  const trees = await Promise.all((await childrenOf(pid)).map(processTreeOf));
  return [pid, ...trees.flat()];
}

interface Process {
  readonly pid: number;
  readonly parent: number;
  readonly group: number;
}

/**
 * Finds the processes below each leader, however deep, and those of its group, which a process stays in when
 * it gets another parent.
 */
export async function processesByLeader(
  leaders: readonly number[],
): Promise<ReadonlyMap<number, readonly number[]>> {
  const all = await allProcesses();
  const byPid = new Map(all.map((process) => [process.pid, process]));
  const found = new Map<number, number[]>(leaders.map((leader) => [leader, []]));
  const owners = new Map<number, number | undefined>(leaders.map((leader) => [leader, leader]));
  for (const { pid } of all) {
    const line: number[] = [];
    let at = pid;
    // What has been seen stays so: numbers that were given anew while they were read may lead in a circle.
    while (!owners.has(at)) {
      owners.set(at, undefined);
      line.push(at);
      const { parent = 0, group = 0 } = byPid.get(at) ?? {};
      at = found.has(group) ? group : parent;
    }
    const owner = owners.get(at);
    for (const member of line) owners.set(member, owner);
    if (owner !== undefined) found.get(owner)?.push(pid);
  }
  return found;
}

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

/** The living processes of the users that are looked for. Zombies hold nothing and are left out. */
export async function processesOf(isWanted: (uid: number) => boolean): Promise<number[]> {
  const names = (await readdir("/proc").catch(() => [])).filter((name) => /^\d+$/.test(name));
  const found = await Promise.all(
    names.map(async (name) => {
      const uid = await stat(`/proc/${name}`).then(
        (entry) => entry.uid,
        () => undefined,
      );
      return uid !== undefined && isWanted(uid) && (await isLiving(name)) ? Number(name) : undefined;
    }),
  );
  return found.filter((pid) => pid !== undefined);
}

/** False for a process that has ended, even if its parent has not collected it yet. */
export async function isLiving(pid: number | string): Promise<boolean> {
  const text = await readFile(`/proc/${pid}/stat`, "latin1").catch(() => "");
  // The command's name, in parentheses, may itself hold spaces and parentheses (proc(5)).
  const state = text.slice(text.lastIndexOf(")") + 2, text.lastIndexOf(")") + 3);
  return state !== "" && state !== "Z" && state !== "X";
}

/**
 * True where only bubblewrap and processes of these users stand between a process and the first one. Then
 * whoever started it has ended: a browser of a living daemon has that daemon above it.
 */
export async function isOrphan(pid: number, isWanted: (uid: number) => boolean): Promise<boolean> {
  for (let above = await parentOf(pid); above > 1; above = await parentOf(above)) {
    const uid = await stat(`/proc/${above}`).then(
      (entry) => entry.uid,
      () => undefined,
    );
    if (uid !== undefined && !isWanted(uid) && !(await isBubblewrap(above))) return false;
  }
  return true;
}

async function parentOf(pid: number): Promise<number> {
  const text = await readFile(`/proc/${pid}/stat`, "latin1").catch(() => "");
  return Number(text.slice(text.lastIndexOf(")") + 2).split(" ")[1] ?? 0);
}

const firstPauseMs = 4;
const longestPauseMs = 50;

/**
 * Kills what `find` gives until it gives nothing. Throws `TimeLimitReached` when something outlives the
 * limit.
 */
export async function killAll(
  clock: Clock,
  find: () => Promise<readonly number[]>,
  limitMs: Millis,
): Promise<void> {
  const deadline = clock.monotonic() + limitMs;
  let pauseMs = firstPauseMs;
  for (let pids = await find(); pids.length > 0; pids = await find()) {
    if (clock.monotonic() > deadline)
      throw new TimeLimitReached(`ending processes ${pids.join(", ")}`, limitMs);
    for (const pid of pids) killProcess(pid);
    await pause(clock, pauseMs);
    pauseMs = Math.min(longestPauseMs, pauseMs * 2);
  }
}
