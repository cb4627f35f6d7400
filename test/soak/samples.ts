import { readdirSync, readFileSync } from "node:fs";
import type { DaemonProcess } from "../support/daemon/daemon-process.js";

/** One look at a daemon. */
interface Sample {
  readonly residentMiB: number;
  readonly heapMiB: number;
  readonly descriptors: number;
}
/** What is compared: the first half of the time after the start, and the second. */
interface Halves {
  readonly what: string;
  readonly before: number;
  readonly after: number;
  /** More than this is growth. */
  readonly most: number;
}

const mebi = 2 ** 20;
/** Caches fill and code is compiled in the first fifth. */
const warmUp = 1 / 5;

async function lookAt(daemon: DaemonProcess): Promise<Sample> {
  const status = readFileSync(`/proc/${daemon.pid}/status`, "utf8");
  const metrics = (await daemon.call("GET /metrics")).text;
  return {
    residentMiB: Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1]) / 1024,
    heapMiB: Number(/^nodejs_heap_size_used_bytes (\S+)/m.exec(metrics)?.[1]) / mebi,
    descriptors: readdirSync(`/proc/${daemon.pid}/fd`).length,
  };
}

const sorted = (values: readonly number[]): number[] => values.toSorted((one, other) => one - other);
export const quantile = (values: readonly number[], part: number): number =>
  sorted(values)[Math.min(values.length - 1, Math.floor(values.length * part))] ?? Number.NaN;

/** Both halves of what was seen after the warm-up, each as one number. */
export function halvesOf(
  values: readonly number[],
  sum: (half: readonly number[]) => number,
): Pick<Halves, "before" | "after"> {
  const steady = values.slice(Math.floor(values.length * warmUp));
  const middle = Math.floor(steady.length / 2);
  return { before: sum(steady.slice(0, middle)), after: sum(steady.slice(middle)) };
}

/** Samples of one daemon. */
export class Samples {
  readonly #seen: Sample[] = [];

  constructor(
    readonly name: string,
    private readonly daemon: DaemonProcess,
  ) {}

  async take(): Promise<void> {
    this.#seen.push(await lookAt(this.daemon));
  }

  /** The least heap is what is left after a collection; memory that the system has lent once it may keep. */
  compare(): readonly Halves[] {
    const of = (field: keyof Sample): number[] => this.#seen.map((sample) => sample[field]);
    const heap = halvesOf(of("heapMiB"), (half) => Math.min(...half));
    const resident = halvesOf(of("residentMiB"), (half) => quantile(half, 0.5));
    const descriptors = halvesOf(of("descriptors"), (half) => quantile(half, 0.5));
    return [
      { what: `${this.name}: least heap, MiB`, ...heap, most: heap.before * 1.1 + 8 },
      { what: `${this.name}: resident, MiB`, ...resident, most: resident.before * 1.15 + 16 },
      { what: `${this.name}: descriptors`, ...descriptors, most: descriptors.before * 1.1 + 16 },
    ];
  }
}

export const lineOf = ({ what, before, after, most }: Halves): string =>
  `${what.padEnd(44)} ${before.toFixed(1).padStart(8)} ${after.toFixed(1).padStart(8)}   at most ${most.toFixed(1)}`;
export const hasGrown = ({ after, most }: Halves): boolean => !(after <= most);
