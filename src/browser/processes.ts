import { readdir, readFile } from "node:fs/promises";
import type { Clock, Millis } from "../base/clock.js";
import { pause } from "../base/clock.js";
import { TimeLimitReached } from "../base/deadline.js";

interface Process {
  readonly pid: number;
  readonly group: number;
}

/**
 * The living processes that belong to browsers' directories: those that name one in their command line or environment,
 * and all of their process groups. Chromium's crash handlers reparent to pid 1, and its zygotes overwrite what they were
 * started with, so neither the parent nor the command line alone finds them all. Zombies are not living.
 */
export async function findProcesses(roots: readonly string[]): Promise<number[]> {
  const all = await livingProcesses();
  const named = await Promise.all(all.map(async ({ pid, group }) => ((await mentions(pid, roots)) ? group : 0)));
  const groups = new Set(named.filter((group) => group > 1 && group !== ownGroup(all)));
  return all.filter(({ group }) => groups.has(group)).map(({ pid }) => pid);
}

const ownGroup = (all: readonly Process[]): number => all.find(({ pid }) => pid === process.pid)?.group ?? 0;

/** The living processes of a group that has just started, by its leader. */
export async function findGroup(leader: number): Promise<number[]> {
  // Pids rise until they wrap, so the leader's children are above it; after a wrap they may be anywhere.
  const latest = Number((await readFile("/proc/loadavg", "latin1")).trim().split(" ").at(-1));
  const all = await livingProcesses(latest >= leader ? leader : 0);
  return all.filter(({ group }) => group === leader).map(({ pid }) => pid);
}

async function livingProcesses(fromPid = 0): Promise<Process[]> {
  const entries = await readdir("/proc").catch(() => []);
  const wanted = entries.filter((name) => /^\d+$/.test(name) && Number(name) >= fromPid);
  const all = await Promise.all(wanted.map(findProcess));
  return all.filter((process) => process !== undefined);
}

async function findProcess(pid: string): Promise<Process | undefined> {
  const text = await readFile(`/proc/${pid}/stat`, "latin1").catch(() => "");
  // The command's name, in parentheses, may itself hold spaces and parentheses (proc(5)).
  const [state, , group] = text.slice(text.lastIndexOf(")") + 2).split(" ");
  if (state === undefined || state === "" || state === "Z" || state === "X") return undefined;
  return { pid: Number(pid), group: Number(group) };
}

async function mentions(pid: number, roots: readonly string[]): Promise<boolean> {
  const places = [`/proc/${pid}/cmdline`, `/proc/${pid}/environ`];
  const texts = await Promise.all(places.map((place) => readFile(place, "latin1").catch(() => "")));
  return roots.some((root) => texts.some((text) => text.includes(`${root}/`) || text.includes(`${root}\0`)));
}

/** Sends SIGKILL; a process that has gone already is fine. */
export function killProcess(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // ESRCH: it ended first.
  }
}

const firstPauseMs = 4;
const longestPauseMs = 50;

/** Kills what `find` gives until it gives nothing. Throws `TimeLimitReached` when something outlives the limit. */
export async function killAll(clock: Clock, find: () => Promise<readonly number[]>, limitMs: Millis): Promise<void> {
  const deadline = clock.monotonic() + limitMs;
  let pauseMs = firstPauseMs;
  for (let pids = await find(); pids.length > 0; pids = await find()) {
    if (clock.monotonic() > deadline) throw new TimeLimitReached(`ending processes ${pids.join(", ")}`, limitMs);
    for (const pid of pids) killProcess(pid);
    await pause(clock, pauseMs);
    pauseMs = Math.min(longestPauseMs, pauseMs * 2);
  }
}
