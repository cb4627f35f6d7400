import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Hierarchy } from "./cgroup-hierarchy.js";
import type { KernelLog, KilledIn, KilledProcess } from "./kernel-log.js";

/** What the kernel tells of the memory of a browser's processes together. */
export interface MemoryUse {
  readonly bytes: number;
  readonly peakBytes?: number;
  /** Processes that it ended for want of memory. */
  readonly outOfMemoryKills?: number;
  /** Those of them that are known, from the first on. */
  readonly killed?: readonly KilledProcess[];
  /** So many may be known a moment later, when the kernel's log has their lines; absent without a log. */
  readonly knowable?: number;
}

const files = {
  1: { bytes: "memory.usage_in_bytes", peak: "memory.max_usage_in_bytes", events: "memory.oom_control" },
  2: { bytes: "memory.current", peak: "memory.peak", events: "memory.events" },
} as const;

/** So many processes that were killed are known of one browser. */
const mostKilled = 1000;

interface MemoryParts {
  readonly path: string;
  readonly version: Hierarchy["version"];
  readonly kernelLog?: Pick<KernelLog, "take"> | undefined;
  readonly killedIn: KilledIn;
}

/** The memory of one cgroup. */
export class CgroupMemory {
  readonly #killed: KilledProcess[] = [];

  constructor(private readonly parts: MemoryParts) {}

  /** Undefined where the cgroup has gone. */
  read(): MemoryUse | undefined {
    const { path, version } = this.parts;
    const [bytes, peakBytes] = [files[version].bytes, files[version].peak]
      .map((name) => readCounters(join(path, name)))
      .map((text) => (text === "" ? undefined : Number(text)));
    if (bytes === undefined) return undefined;
    const kills = this.outOfMemoryKills();
    return {
      bytes,
      ...(peakBytes !== undefined && { peakBytes }),
      ...(kills !== undefined && { outOfMemoryKills: kills, killed: this.#lookForKilled(kills) }),
      ...(kills !== undefined && this.parts.kernelLog && { knowable: Math.min(kills, mostKilled) }),
    };
  }

  /** The same count alone, which takes a third of the time. Undefined where the cgroup has gone. */
  outOfMemoryKills(): number | undefined {
    const { path, version } = this.parts;
    const count = /^oom_kill (\d+)$/m.exec(readCounters(join(path, files[version].events)))?.[1];
    return count === undefined ? undefined : Number(count);
  }

  /** The count may be there a moment before the line in the log: who is missing is looked for again. */
  #lookForKilled(kills: number): readonly KilledProcess[] {
    const { killedIn, kernelLog } = this.parts;
    const missing = Math.min(kills, mostKilled) - this.#killed.length;
    if (missing > 0) this.#killed.push(...(kernelLog?.take(killedIn) ?? []).slice(0, missing));
    return this.#killed;
  }
}

/**
 * Empty where there is no such file. The kernel writes the text out of numbers that it has at hand: reading
 * it here costs some 10 us, and by jobs in the thread pool ten times that.
 */
function readCounters(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
