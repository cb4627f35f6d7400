import { readFile } from "node:fs/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { pause, systemClock } from "../../../src/base/clock.js";
import { newBrowserId, onDemandPartition } from "../../../src/base/ids.js";
import type { Chromium } from "../../../src/browser/chromium.js";
import { processesOf, processTreeOf } from "../../../src/browser/resources/processes.js";
import type { Egress } from "../../../src/egress/egress.js";
import { times } from "../support/runs.js";
import type { Tier } from "./ways.js";

/** What was closed before is gone by then, in the kernel too. */
const settleMs = 1000;

/**
 * What all processes of a browser take, shared pages divided among their users (PSS), in KiB; NaN where that
 * cannot be read. By its uid are found those that Chromium has let go of, such as its crash handlers: without
 * a private root they are no descendants of the browser.
 */
export async function treeKiB({ pid, isolation: { uid } }: Chromium): Promise<number> {
  const others = uid === null ? [] : await processesOf((owner) => owner === uid);
  const pids = new Set([...(await processTreeOf(pid)), ...others]);
  return sumOf(await Promise.all([...pids].map(processKiB)));
}

async function processKiB(pid: number): Promise<number> {
  const text = await readFile(`/proc/${pid}/smaps_rollup`, "latin1").catch(() => "");
  return Number(/^Pss:\s+(\d+) kB/m.exec(text)?.[1] ?? Number.NaN);
}

const sumOf = (sizes: readonly number[]): number =>
  sizes.length === 0 ? Number.NaN : sizes.reduce((sum, size) => sum + size);

/** What one open egress takes, in KiB. */
export interface EgressKiB {
  /** The memory of this process: the heap, and what belongs to it outside. */
  readonly daemon: number;
  /**
   * The memory of the kernel. It is known only for the whole machine, so whatever else went on there counts
   * too.
   */
  readonly kernel: number;
}

/** Opens so many egresses at once, and divides. */
export async function egressKiB({ openEgress }: Tier, count: number): Promise<EgressKiB> {
  const open: Egress[] = [];
  await pause(systemClock, settleMs);
  const [daemon, kernel] = [heapKiB(), await kernelKiB()];
  try {
    for (const _ of times(count)) open.push(await openEgress(newBrowserId(onDemandPartition)));
    return { daemon: (heapKiB() - daemon) / count, kernel: ((await kernelKiB()) - kernel) / count };
  } finally {
    await Promise.all(open.map((egress) => egress.close()));
  }
}

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

function heapKiB(): number {
  collectGarbage();
  const { heapUsed, external } = process.memoryUsage();
  return (heapUsed + external) / 1024;
}

async function kernelKiB(): Promise<number> {
  const text = await readFile("/proc/meminfo", "latin1").catch(() => "");
  return sumOf([...text.matchAll(/^(?:Slab|Percpu):\s+(\d+) kB/gm)].map(([, size]) => Number(size)));
}
