import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Controller, Hierarchy } from "./cgroup-hierarchy.js";

/** What the cgroup of one browser lets it have. */
export interface CgroupLimits {
  readonly memoryBytes: number;
  /** The most processes and threads together, as the kernel counts. */
  readonly tasks: number;
}

interface Write {
  readonly file: string;
  readonly value: string;
  /** True where a kernel without this file has nothing to bound. */
  readonly isOptional?: boolean;
}

/**
 * The settings have to be written in this order. Processors and disks are shared out equally among browsers.
 */
export const cgroupSettingsOf = (
  version: Hierarchy["version"],
  { memoryBytes, tasks }: CgroupLimits,
): Record<Controller, readonly Write[]> => ({
  memory:
    version === 2
      ? [
          { file: "memory.max", value: `${memoryBytes}` },
          { file: "memory.swap.max", value: "0", isOptional: true },
        ]
      : [
          { file: "memory.limit_in_bytes", value: `${memoryBytes}` },
          { file: "memory.memsw.limit_in_bytes", value: `${memoryBytes}`, isOptional: true },
        ],
  pids: [{ file: "pids.max", value: `${tasks}` }],
  cpu: version === 2 ? [{ file: "cpu.weight", value: "100" }] : [{ file: "cpu.shares", value: "1024" }],
  // Version 1 shares a disk out only by the scheduler BFQ.
  cpuacct: [],
  io: version === 2 ? [{ file: "io.weight", value: "100" }] : [{ file: "blkio.bfq.weight", value: "100" }],
});

export async function applyLimits(path: string, writes: readonly Write[]): Promise<void> {
  for (const { file, value, isOptional } of writes) {
    const written = writeFile(join(path, file), value);
    await (isOptional ? written.catch(() => {}) : written);
  }
}

/** This is the kernel's own default. */
const periodMicros = 100_000;

/** Limits a browser's processor time. The limit is in percent of one core. */
export async function limitCpu(
  { version, path }: Pick<Hierarchy, "version"> & { readonly path: string },
  percent: number,
): Promise<void> {
  const quota = Math.round((periodMicros * percent) / 100);
  const write =
    version === 2
      ? { file: "cpu.max", value: `${quota} ${periodMicros}` }
      : { file: "cpu.cfs_quota_us", value: `${quota}` };
  await applyLimits(path, [write]);
}
