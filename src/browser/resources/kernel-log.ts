import { closeSync, constants, openSync, readSync } from "node:fs";

/** A process that the kernel has ended for want of memory, as its log tells. */
export interface KilledProcess {
  /** As the kernel counts, which is how a daemon does that has no process namespace of its own. */
  readonly pid: number;
  /** At most 15 characters of its program, unless it has called itself otherwise. */
  readonly name: string;
  readonly residentBytes: number;
  readonly constraint: (typeof constraints)[keyof typeof constraints];
}

/** Whose memory had run out (`oom_constraint_text` in Linux's mm/oom_kill.c). */
const constraints = {
  NONE: "none",
  CPUSET: "cpuset",
  MEMORY_POLICY: "memory_policy",
  MEMCG: "memcg",
} as const;

const device = "/dev/kmsg";
/** A shorter buffer is refused for records that are longer than it. */
const recordBytes = 8192;
/** Read in one look, so that a log that grows quickly holds nobody up; the rest is for the next. */
const mostRecords = 5000;
/** Cgroups of which something is kept that nobody has asked for yet. */
const mostCgroups = 1000;
const mostOfCgroup = 100;

/** The line before that of the kill, which says whose process it is. */
const choice = /;oom-kill:constraint=CONSTRAINT_([A-Z_]+),.*?,task_memcg=([^,]*),task=.*,pid=(\d+),uid=\d+$/;
const kill =
  / of memory: Killed process (\d+) \((.*)\) total-vm:\d+kB, anon-rss:(\d+)kB, file-rss:(\d+)kB, shmem-rss:(\d+)kB/;

interface Chosen {
  readonly pid: number;
  readonly cgroup: string;
  readonly constraint: KilledProcess["constraint"];
}

/**
 * Which processes of a daemon's cgroups the kernel has killed: cgroups only count them. Reading takes root
 * and a `/dev/kmsg`, which containers usually lack.
 */
export class KernelLog {
  readonly #killed = new Map<string, KilledProcess[]>();
  readonly #buffer = Buffer.alloc(recordBytes);
  #chosen: Chosen | undefined;
  #isClosed = false;

  private constructor(
    private readonly descriptor: number,
    /** The name of the cgroup below which those are that it reads of. */
    private readonly top: string,
  ) {}

  /** What was written before is passed over; undefined where the log cannot be read. */
  static open(top: string, path = device): KernelLog | undefined {
    try {
      const log = new KernelLog(openSync(path, constants.O_RDONLY | constants.O_NONBLOCK), top);
      log.#readOn(Infinity);
      log.#killed.clear();
      return log;
    } catch {
      return undefined;
    }
  }

  /** Those of a cgroup since it was last asked about, in the order of their ends. */
  take(cgroup: string): readonly KilledProcess[] {
    this.#readOn(mostRecords);
    const found = this.#killed.get(cgroup) ?? [];
    this.#killed.delete(cgroup);
    return found;
  }

  close(): void {
    this.#isClosed = true;
    closeSync(this.descriptor);
  }

  #readOn(most: number): void {
    for (let count = 0; count < most && !this.#isClosed; count += 1) {
      const text = this.#next();
      if (text === undefined) return;
      for (const line of text.split("\n")) this.#note(line);
    }
  }

  /** The device gives one record for each call; undefined where there is no more for now. */
  #next(): string | undefined {
    try {
      const bytes = readSync(this.descriptor, this.#buffer, 0, recordBytes, null);
      return bytes === 0 ? undefined : this.#buffer.toString("utf8", 0, bytes);
    } catch (error) {
      // Records that were overwritten before they were read are passed over by the kernel with this word.
      return (error as NodeJS.ErrnoException).code === "EPIPE" ? "" : undefined;
    }
  }

  #note(line: string): void {
    const [, constraint, path = "", chosen] = choice.exec(line) ?? [];
    if (constraint !== undefined) {
      const [top, cgroup] = path.split("/").slice(-2);
      this.#chosen =
        top === this.top && cgroup !== undefined && constraint in constraints
          ? { pid: Number(chosen), cgroup, constraint: constraints[constraint as keyof typeof constraints] }
          : undefined;
    }
    const [, pid, name = "", ...resident] = kill.exec(line) ?? [];
    if (!this.#chosen || Number(pid) !== this.#chosen.pid) return;
    const residentBytes = resident.reduce((sum, kilobytes) => sum + Number(kilobytes) * 1024, 0);
    this.#keep(this.#chosen.cgroup, {
      pid: Number(pid),
      name,
      residentBytes,
      constraint: this.#chosen.constraint,
    });
    this.#chosen = undefined;
  }

  #keep(cgroup: string, killed: KilledProcess): void {
    const known = this.#killed.get(cgroup) ?? [];
    if (known.length < mostOfCgroup) known.push(killed);
    this.#killed.set(cgroup, known);
    const [oldest] = this.#killed.keys();
    if (this.#killed.size > mostCgroups && oldest !== undefined) this.#killed.delete(oldest);
  }
}
