import { closeSync, constants, openSync, readSync } from "node:fs";

/** A process that the kernel has ended for want of memory, as its log tells. */
export interface KilledProcess {
  /** As the kernel counts, which is how a daemon does that has no process namespace of its own. */
  readonly pid: number;
  /** At most 15 characters of its program, unless it has called itself otherwise. */
  readonly name: string;
  readonly residentBytes: number;
  /** Absent where the kernel has kept it to itself. */
  readonly constraint?: (typeof constraints)[keyof typeof constraints];
}

/** The browser whose kills are asked for. */
export interface KilledIn {
  readonly cgroup: string;
  /** The uid that no other process of the machine has; null where the cgroup has none. */
  readonly uid: number | null;
}

/** What the memory that had run out belongs to (`oom_constraint_text` in Linux's mm/oom_kill.c). */
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
/** Cgroups and uids of which something is kept that nobody has asked for yet. */
const mostCgroups = 1000;
const mostOfCgroup = 100;

/**
 * The line before that of the kill, which says whose process it is. The kernel leaves it out beyond ten kills
 * of the whole machine in five seconds, and where it ends all of a cgroup together (`oom_kill_process` in
 * Linux's mm/oom_kill.c); that of the kill is always there.
 */
const choice = /;oom-kill:constraint=CONSTRAINT_([A-Z_]+),.*?,task_memcg=([^,]*),task=.*,pid=(\d+),uid=\d+$/;
const kill =
  /;(Memory cgroup out|Out) of memory: Killed process (\d+) \((.*)\) total-vm:\d+kB, anon-rss:(\d+)kB, file-rss:(\d+)kB, shmem-rss:(\d+)kB(?:, UID:(\d+))?/;

interface Chosen {
  readonly pid: number;
  /** Undefined where it is none of the daemon's. */
  readonly cgroup: string | undefined;
  readonly constraint: KilledProcess["constraint"];
}

/**
 * Which processes of a daemon's cgroups the kernel has killed: cgroups only count them. Reading takes root
 * and a `/dev/kmsg`, which containers usually lack.
 */
export class KernelLog {
  readonly #killed = new Map<string, KilledProcess[]>();
  readonly #buffer = Buffer.alloc(recordBytes);
  readonly #uids = new Set<number>();
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

  /** Begins with a cgroup. What was killed under its uid before was of another browser, and is forgotten. */
  begin({ uid }: KilledIn): void {
    if (uid === null) return;
    this.#readOn(mostRecords);
    this.#killed.delete(keyOfUid(uid));
    this.#uids.add(uid);
  }

  /** Those of a cgroup since it was last asked about, first those that the log names the cgroup of. */
  take({ cgroup, uid }: KilledIn): readonly KilledProcess[] {
    this.#readOn(mostRecords);
    const keys = [cgroup, ...(uid === null ? [] : [keyOfUid(uid)])];
    const found = keys.flatMap((key) => this.#killed.get(key) ?? []);
    for (const key of keys) this.#killed.delete(key);
    return found;
  }

  /** Nothing is kept for a uid that no browser has. */
  end({ uid }: KilledIn): void {
    if (uid !== null) this.#uids.delete(uid);
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
    this.#chosen = this.#chosenIn(line) ?? this.#chosen;
    const [, beginning, pid, name = "", anonymous, file, shared, uid] = kill.exec(line) ?? [];
    if (beginning === undefined) return;
    const resident = [anonymous, file, shared];
    const chosen = this.#chosen?.pid === Number(pid) ? this.#chosen : undefined;
    this.#chosen = undefined;
    const key = chosen ? chosen.cgroup : this.#uids.has(Number(uid)) ? keyOfUid(Number(uid)) : undefined;
    if (key === undefined) return;
    const residentBytes = resident.reduce((sum, kilobytes) => sum + Number(kilobytes) * 1024, 0);
    const constraint = chosen?.constraint ?? (beginning.startsWith("Memory") ? "memcg" : undefined);
    this.#keep(key, { pid: Number(pid), name, residentBytes, ...(constraint && { constraint }) });
  }

  #chosenIn(line: string): Chosen | undefined {
    const [, word, path = "", pid] = choice.exec(line) ?? [];
    if (word === undefined) return undefined;
    const [top, cgroup] = path.split("/").slice(-2);
    const isOwn = top === this.top && word in constraints;
    return {
      pid: Number(pid),
      cgroup: isOwn ? cgroup : undefined,
      constraint: constraints[word as keyof typeof constraints],
    };
  }

  #keep(key: string, killed: KilledProcess): void {
    const known = this.#killed.get(key) ?? [];
    if (known.length < mostOfCgroup) known.push(killed);
    this.#killed.set(key, known);
    const [oldest] = this.#killed.keys();
    if (this.#killed.size > mostCgroups && oldest !== undefined) this.#killed.delete(oldest);
  }
}

/** No browser's cgroup is called so. */
const keyOfUid = (uid: number): string => `uid ${uid}`;
