import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Millis } from "../../base/clock.js";
import type { Hierarchy } from "./cgroup-hierarchy.js";

/**
 * How a busy browser stands behind all others: in the scheduler's idle class (`cpu.idle`, Linux 5.15), so
 * that whoever else wakes up takes its processor at once; by the least weight there is; or not at all.
 */
export type LowPriorityKind = "idle" | "weight" | "none";

type Version = Hierarchy["version"];
type FileWrite = readonly [file: string, value: string];
interface PriorityWrites {
  readonly behind: FileWrite;
  readonly back: FileWrite;
}

/** An idle cgroup has no weight of its own; it has its usual one again when it comes back. */
const idleWrites: PriorityWrites = { behind: ["cpu.idle", "1"], back: ["cpu.idle", "0"] };
const priorityWrites: Readonly<
  Record<Exclude<LowPriorityKind, "none">, Readonly<Record<Version, PriorityWrites>>>
> = {
  idle: { 1: idleWrites, 2: idleWrites },
  weight: {
    1: { behind: ["cpu.shares", "2"], back: ["cpu.shares", "1024"] },
    2: { behind: ["cpu.weight", "1"], back: ["cpu.weight", "100"] },
  },
};

/** Finds the first kind that the cgroup at `path`, which exists for trials, takes. */
export function findLowPriorityKind(path: string, version: Version): LowPriorityKind {
  for (const kind of ["idle", "weight"] as const)
    if (move({ path, version, kind }, true) && move({ path, version, kind }, false)) return kind;
  return "none";
}

interface Moving {
  readonly path: string;
  readonly version: Version;
  readonly kind: LowPriorityKind;
}

/** Synchronous: the kernel only notes it, and thread pool and promises would cost ten times as much. */
function move({ path, version, kind }: Moving, isBehind: boolean): boolean {
  if (kind === "none") return false;
  const [file, value] = priorityWrites[kind][version][isBehind ? "behind" : "back"];
  try {
    // A file that the kernel does not have is not created.
    writeFileSync(join(path, file), value, { flag: "r+" });
    return true;
  } catch {
    return false;
  }
}

/** Processor time that was used below a cgroup, in ms; undefined where that cannot be read. */
export function usedMsAt(path: string, version: Version): Millis | undefined {
  try {
    if (version === 1) return Number(readFileSync(join(path, "cpuacct.usage"), "latin1")) / 1e6;
    const micros = /^usage_usec (\d+)$/m.exec(readFileSync(join(path, "cpu.stat"), "latin1"))?.[1];
    return micros === undefined ? undefined : Number(micros) / 1000;
  } catch {
    return undefined;
  }
}

export interface ProcessorUse {
  /** Percent of one core, the last period as much as all before it. */
  readonly average: number;
  readonly isBehind: boolean;
}

/**
 * A browser yields above `most`, and stops at half of it, so that it does not go to and fro; one that starves
 * stops as well.
 */
export function nextUse({ average, isBehind }: ProcessorUse, percent: number, most: number): ProcessorUse {
  const next = (average + percent) / 2;
  return { average: next, isBehind: next > (isBehind ? most / 2 : most) };
}

/** Where a browser's processor time is counted and shared out; in version 1 that may be two hierarchies. */
export interface ProcessorAccount {
  readonly weighed: string;
  readonly counted: string;
}
interface ProcessorReading {
  readonly usedMs: Millis;
  readonly at: Millis;
}
interface CountedCgroup {
  readonly account: ProcessorAccount;
  /** Absent until it was looked at. */
  readonly last?: ProcessorReading;
  readonly use: ProcessorUse;
}

/**
 * Puts busy browsers behind the daemon and all that are not busy, so that those need not wait for a busy
 * one's time slice to end. A processor that nobody else wants is theirs all the same, and among each other
 * they share equally.
 */
export class CpuPriority {
  readonly #counted = new Map<string, CountedCgroup>();
  #all: ProcessorReading | undefined;

  constructor(
    private readonly parts: {
      readonly kind: LowPriorityKind;
      readonly version: Version;
      /** All browsers below. */ readonly top: string;
    },
  ) {}

  get kind(): LowPriorityKind {
    return this.parts.kind;
  }

  add(account: ProcessorAccount): void {
    this.#counted.set(account.weighed, { account, use: { average: 0, isBehind: false } });
  }

  delete({ weighed }: ProcessorAccount): void {
    this.#counted.delete(weighed);
  }

  /**
   * Has to be called every few hundred ms; `most` is in percent of one core. Returns the browsers that yield
   * to the others.
   */
  look(now: Millis, most: number): readonly string[] {
    // Reading one total may show that no browser can be busy.
    if (this.#counted.size > 0 && !this.#areAllCalm(now, most))
      for (const counted of this.#counted.values()) this.#judge(counted, now, most);
    return [...this.#counted.values()]
      .filter(({ use }) => use.isBehind)
      .map(({ account }) => account.weighed);
  }

  #areAllCalm(now: Millis, most: number): boolean {
    const before = this.#all;
    const usedMs = usedMsAt(this.parts.top, this.parts.version);
    this.#all = usedMs === undefined ? undefined : { usedMs, at: now };
    if (!before || usedMs === undefined || percentOf(usedMs - before.usedMs, now - before.at) > most)
      return false;
    return [...this.#counted.values()].every(({ use }) => !use.isBehind);
  }

  #judge({ account, last, use: earlier }: CountedCgroup, now: Millis, most: number): void {
    const usedMs = usedMsAt(account.counted, this.parts.version);
    if (usedMs === undefined) return;
    const use = nextUse(earlier, last ? percentOf(usedMs - last.usedMs, now - last.at) : 0, most);
    const isMoved =
      use.isBehind !== earlier.isBehind && move({ ...this.parts, path: account.weighed }, use.isBehind);
    this.#counted.set(account.weighed, {
      account,
      last: { usedMs, at: now },
      use: isMoved ? use : { ...use, isBehind: earlier.isBehind },
    });
  }
}

const percentOf = (usedMs: Millis, inMs: Millis): number => (inMs > 0 ? (usedMs / inMs) * 100 : 0);
