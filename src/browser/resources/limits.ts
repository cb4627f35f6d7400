import { access, constants, readFile } from "node:fs/promises";
import type { DaemonCgroup, CgroupKind } from "./cgroup.js";
import type { LowPriorityKind } from "./cpu-priority.js";
import type { ScratchLimits, SizedScratch } from "./sized-scratch.js";

/** What one browser may have of the machine, beside the memory of its class. */
export interface BrowserLimits extends ScratchLimits {
  /** The most processes and threads together, as the kernel counts them. */
  readonly maxTasks: number;
  /** Percent of one core; null where a browser may use whatever is free. */
  readonly maxCpuPercent: number | null;
  /**
   * In percent of one core: a browser that uses more for a while stands behind all that do not; null where
   * none does.
   */
  readonly busyCpuPercent: number | null;
  /** How many files one process may have open. */
  readonly maxOpenFiles: number;
}

/**
 * Chromium 156 has 80 threads with one page and 220 with ten, and below 400 ten pages fail now and then. With
 * fewer than 1024 open files it opens few pages. A profile that is loaded may have 2 GiB
 * (`profiles.max_bytes`).
 */
export const usualLimits: BrowserLimits = {
  maxTasks: 1024,
  maxCpuPercent: null,
  busyCpuPercent: 25,
  maxOpenFiles: 4096,
  maxScratchBytes: 3 * 2 ** 30,
  maxScratchFiles: 300_000,
};

/**
 * What really holds a browser to each of its limits. `watch` means that the node looks now and then, and
 * retires a browser that has more, so that it may have more for a moment.
 */
export interface LimitsInForce {
  readonly memory: Exclude<CgroupKind, "none"> | "watch";
  readonly tasks: Exclude<CgroupKind, "none"> | "rlimit" | "none";
  /** Browsers get equal shares; without a cgroup the scheduler shares among threads. */
  readonly cpu: CgroupKind;
  /** How busy browsers yield to others. */
  readonly busy: LowPriorityKind;
  /** `mount`: a file system of its own that is as large as it may be. */
  readonly scratch: "mount" | "watch";
}

interface LimitTools {
  readonly cgroups?: DaemonCgroup;
  readonly prlimit?: Prlimit;
  readonly sizedScratch?: SizedScratch;
  readonly limits?: Pick<BrowserLimits, "busyCpuPercent">;
  /**
   * False where others in the same user namespace have the browser's uid too: RLIMIT_NPROC would count their
   * processes.
   */
  readonly countsAlone: boolean;
}

export function limitsInForce({
  cgroups,
  prlimit,
  sizedScratch,
  countsAlone,
  limits,
}: LimitTools): LimitsInForce {
  const { memory = "none", pids = "none", cpu = "none" } = cgroups?.holds ?? {};
  return {
    memory: memory === "none" ? "watch" : memory,
    tasks: pids === "none" && prlimit !== undefined && countsAlone ? "rlimit" : pids,
    cpu,
    busy: limits?.busyCpuPercent === null ? "none" : (cgroups?.cpuPriority?.kind ?? "none"),
    scratch: sizedScratch === undefined ? "watch" : "mount",
  };
}

/** The program that sets limits of a process, and how far its own hard limits let it go. */
export interface Prlimit {
  readonly path: string;
  readonly hard: { readonly files: number; readonly tasks: number; readonly dataBytes: number };
}

/** A program of util-linux. It lies below /usr, which a browser's own root has. */
const prlimitPath = "/usr/bin/prlimit";

export async function findPrlimit(): Promise<Prlimit | undefined> {
  try {
    await access(prlimitPath, constants.X_OK);
    return { path: prlimitPath, hard: parseHardLimits(await readFile("/proc/self/limits", "utf8")) };
  } catch {
    return undefined;
  }
}

/** Reads /proc/self/limits (proc(5)): `Max open files   1024   1048576   files`. */
export function parseHardLimits(text: string): Prlimit["hard"] {
  const hard = (name: string): number => {
    const found = new RegExp(`^Max ${name} +\\S+ +(\\d+)`, "m").exec(text)?.[1];
    return found === undefined ? Number.MAX_SAFE_INTEGER : Number(found);
  };
  return { files: hard("open files"), tasks: hard("processes"), dataBytes: hard("data size") };
}

/**
 * Chromium maps so much to be written that it never touches, and RLIMIT_DATA counts it (Chromium 156, Linux
 * 6.18).
 */
const untouchedBytes = 2 ** 29;

interface LimitedCommand extends Omit<LimitTools, "sizedScratch" | "limits"> {
  readonly limits: BrowserLimits;
  /** The memory of the browser's class. */
  readonly memoryBytes: number;
}

/**
 * The head of a command line that bounds what no cgroup bounds, and becomes the rest of it by exec. It stands
 * last before Chromium, inside its namespaces: the kernel counts RLIMIT_NPROC by uid and user namespace.
 * RLIMIT_DATA is each process's own: a page that takes too much is refused memory, and what many processes
 * take together is the watch's to see. RLIMIT_FSIZE is left alone, for Chromium ends at the first file that
 * is larger; core files would show what pages hold.
 */
export function limitsInside({
  cgroups,
  prlimit,
  limits,
  memoryBytes,
  countsAlone,
}: LimitedCommand): readonly string[] {
  if (prlimit === undefined) return [];
  const { hard } = prlimit;
  const hasMemoryCap = cgroups !== undefined && cgroups.holds.memory !== "none";
  return [
    prlimit.path,
    "--core=0:0",
    both("nofile", limits.maxOpenFiles, hard.files),
    ...(countsAlone ? [both("nproc", limits.maxTasks, hard.tasks)] : []),
    ...(hasMemoryCap ? [] : [both("data", memoryBytes + untouchedBytes, hard.dataBytes)]),
    "--",
  ];
}

/** Node.js itself needs some thirty. */
const sidecarFiles = 256;

/** The same for a program that works for clients of a browser; its memory is bounded beside its cgroup's. */
export function sidecarLimits(prlimit: Prlimit | undefined, memoryBytes: number): readonly string[] {
  if (prlimit === undefined) return [];
  const { hard, path } = prlimit;
  return [
    path,
    "--core=0:0",
    both("nofile", sidecarFiles, hard.files),
    both("data", memoryBytes, hard.dataBytes),
    "--",
  ];
}

/** Never raises a hard limit, which even root may not do everywhere. */
const both = (name: string, wanted: number, hard: number): string =>
  `--${name}=${Math.min(wanted, hard)}:${Math.min(wanted, hard)}`;
