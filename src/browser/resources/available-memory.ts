import { readFile } from "node:fs/promises";
import { totalmem } from "node:os";
import { dirname, join } from "node:path";
import { findHierarchies, type Hierarchy } from "./cgroup-hierarchy.js";

/** What processes here may have together, and how much of that is left. */
interface AvailableMemory {
  readonly bytes: number;
  readonly leftBytes: number;
}

type MemoryGroup = Pick<Hierarchy, "version" | "own">;

/** What the kernel would have to take from whoever reads files again and again is not left. */
const files = {
  1: {
    limit: "memory.limit_in_bytes",
    used: "memory.usage_in_bytes",
    reclaimed: /^total_inactive_file (\d+)$/m,
  },
  2: { limit: "memory.max", used: "memory.current", reclaimed: /^inactive_file (\d+)$/m },
} as const;

/**
 * Makes what reads how much memory is left: of this machine, or of a cgroup that this process is in, its
 * container's among them, whichever has the smaller part left.
 */
export async function makeReadMemory(): Promise<() => Promise<AvailableMemory>> {
  const group = (await findHierarchies()).find(({ controllers }) => controllers.includes("memory"));
  return async () => tightest([await ofMachine(), ...(group ? await readGroupMemory(group) : [])]);
}

function tightest(all: readonly AvailableMemory[]): AvailableMemory {
  const partOf = ({ bytes, leftBytes }: AvailableMemory): number => leftBytes / bytes;
  return all.reduce((least, one) => (partOf(one) < partOf(least) ? one : least));
}

/** `MemAvailable` is what may be taken without swapping (proc(5)). */
async function ofMachine(): Promise<AvailableMemory> {
  const text = await readFile("/proc/meminfo", "utf8").catch(() => "");
  const kibibytes = (name: string): number =>
    Number(new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(text)?.[1]);
  const [total, left] = [kibibytes("MemTotal"), kibibytes("MemAvailable")];
  const isTold = total > 0 && left >= 0;
  return isTold
    ? { bytes: total * 1024, leftBytes: left * 1024 }
    : { bytes: totalmem(), leftBytes: totalmem() };
}

/** Reads a cgroup and those above it, as far as they are seen here: what one lets in another may refuse. */
export async function readGroupMemory({ version, own }: MemoryGroup): Promise<readonly AvailableMemory[]> {
  const found: AvailableMemory[] = [];
  for (let path = own; path !== dirname(path); path = dirname(path)) {
    const read = await ofGroup(path, version);
    if (!read) break;
    if (read !== "unlimited") found.push(read);
  }
  return found;
}

/**
 * Undefined where that is no cgroup. What was read of files and not again is left, as a kubelet reckons
 * (kubernetes.io, Node-pressure Eviction).
 */
async function ofGroup(
  path: string,
  version: Hierarchy["version"],
): Promise<AvailableMemory | "unlimited" | undefined> {
  const { limit, used, reclaimed } = files[version];
  const [most, usage, stat] = await Promise.all(
    [limit, used, "memory.stat"].map((name) => readFile(join(path, name), "utf8").catch(() => undefined)),
  );
  if (stat === undefined) return undefined;
  const bytes = Number(most ?? Number.NaN);
  // In version 1 the highest number of pages stands for no limit (kernel.org, memory.txt), else "max".
  if (!(bytes < totalmem())) return "unlimited";
  const held = Number(usage) - Number(reclaimed.exec(stat)?.[1] ?? 0);
  return { bytes, leftBytes: Math.max(0, bytes - held) };
}
