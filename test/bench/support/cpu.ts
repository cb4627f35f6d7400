import { access, mkdir, readFile, rmdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pause, systemClock } from "../../../src/base/clock.js";

/**
 * A cgroup in which one side of a comparison runs, with all it starts: also what nobody waits for is counted.
 */
export interface CpuGroup {
  /** The file that says how much processor time was used. */
  readonly usageFile: string;
  /** What starts a program inside. */
  within(command: readonly string[]): string[];
  /** When nothing runs in it any more. */
  close(): Promise<void>;
}

/** Microseconds in cgroup v2's cpu.stat, nanoseconds in v1's cpuacct.usage. */
const kinds = [
  {
    mount: "/sys/fs/cgroup/cpuacct",
    membership: /^\d+:(?:[^:]*,)?cpuacct(?:,[^:]*)?:(.*)$/m,
    file: "cpuacct.usage",
  },
  { mount: "/sys/fs/cgroup", membership: /^0::(.*)$/m, file: "cpu.stat" },
] as const;

/** Undefined where this process may make none. */
export async function openCpuGroup(name: string): Promise<CpuGroup | undefined> {
  const memberships = await readFile("/proc/self/cgroup", "utf8").catch(() => "");
  for (const { mount, membership, file } of kinds) {
    const path = join(mount, membership.exec(memberships)?.[1] ?? "/", `remuda-bench-${process.pid}-${name}`);
    const usageFile = join(path, file);
    const isMade = await mkdir(path)
      .then(() => access(usageFile))
      .then(
        () => true,
        () => false,
      );
    if (isMade) return groupAt(path, usageFile);
    await rmdir(path).catch(() => {});
  }
  return undefined;
}

const weighing = [
  {
    mount: "/sys/fs/cgroup/cpu",
    membership: /^\d+:(?:[^:]*,)?cpu(?:,[^:]*)?:(.*)$/m,
    most: ["cpu.shares", "262144"],
  },
  { mount: "/sys/fs/cgroup", membership: /^0::(.*)$/m, most: ["cpu.weight", "10000"] },
] as const;

/**
 * Where this process was at its start: what is made in a cgroup that goes first goes before all others with
 * it, also what is in the idle class there.
 */
const membershipsAtStart = readFile("/proc/self/cgroup", "utf8").catch(() => "");

/** Where this process may make one: its directory. */
async function makeWeighed(
  name: string,
  written: (kind: (typeof weighing)[number]) => readonly [file: string, value: string],
): Promise<string | undefined> {
  const memberships = await membershipsAtStart;
  for (const kind of weighing) {
    const own = kind.membership.exec(memberships)?.[1] ?? "/";
    const path = join(kind.mount, own, `remuda-bench-${process.pid}-${name}`);
    const [file, value] = written(kind);
    const isMade = await mkdir(path)
      .then(() => writeFile(join(path, file), value, { flag: "r+" }))
      .then(
        () => true,
        () => false,
      );
    if (isMade) return path;
    await rmdir(path).catch(() => {});
  }
  return undefined;
}

/**
 * This process goes before all others, which a priority does only within its session's group (sched(7),
 * autogroup). Gives the way back.
 */
export async function goFirst(): Promise<() => Promise<void>> {
  const path = await makeWeighed("first", ({ most }) => most);
  if (path === undefined) return async () => {};
  const enterIt = (procs: string): Promise<void> => writeFile(procs, `${process.pid}`).catch(() => {});
  await enterIt(join(path, "cgroup.procs"));
  return async () => {
    await enterIt(join(path, "../cgroup.procs"));
    await rmdir(path).catch(() => {});
  };
}

/**
 * A cgroup that gets what nobody else wants (`cpu.idle`, Linux 5.15), for what stands for another machine.
 * The scheduler's idle class by itself does not do: where sessions have groups of their own (sched(7),
 * autogroup), a program of that class takes as much as any as soon as it is alone in its session's.
 */
export async function openIdleGroup(name: string): Promise<CpuGroup | undefined> {
  const path = await makeWeighed(name, () => ["cpu.idle", "1"]);
  return path === undefined ? undefined : groupAt(path, join(path, "cpu.stat"));
}

const enter = 'echo $$ > "$0/cgroup.procs" && exec "$@"';
const removalTries = 200;

const groupAt = (path: string, usageFile: string): CpuGroup => ({
  usageFile,
  within: (command) => ["/bin/sh", "-c", enter, path, ...command],
  async close() {
    // A process is counted as the group's a moment longer than it lives.
    for (let tries = 1; tries < removalTries; tries += 1) {
      if (
        await rmdir(path).then(
          () => true,
          () => false,
        )
      )
        return;
      await pause(systemClock, 10);
    }
    await rmdir(path);
  },
});

/** Seconds of processor time that a group has used so far. */
export async function groupSeconds(usageFile: string): Promise<number> {
  const text = await readFile(usageFile, "utf8");
  const micros = /^usage_usec (\d+)$/m.exec(text)?.[1];
  return micros === undefined ? Number(text) / 1e9 : Number(micros) / 1e6;
}

/** The rate of the kernel's clock (proc(5)); it is 100 on every architecture that Node.js runs on. */
const ticksPerSecond = 100;

/** Seconds that one process has used so far, without its children. */
export async function processSeconds(pid: number): Promise<number> {
  const text = await readFile(`/proc/${pid}/stat`, "latin1");
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
}

/** Per piece of work, in µs, whatever else the daemon did meanwhile included. */
export interface ProcessorTime {
  readonly daemon: number;
  readonly redis: number;
}

/** What some work has cost a daemon and its Redis for each of the `count` pieces that it says it had. */
export async function costOf<Work>(
  { pid, redisPid }: { readonly pid: number; readonly redisPid: number },
  work: () => Promise<Work>,
  count: (done: Work) => number,
): Promise<{ readonly done: Work; readonly used: ProcessorTime }> {
  const read = (): Promise<number[]> => Promise.all([pid, redisPid].map(processSeconds));
  const before = await read();
  const done = await work();
  const [daemon = 0, redis = 0] = (await read()).map(
    (seconds, at) => ((seconds - (before[at] ?? 0)) * 1e6) / count(done),
  );
  return { done, used: { daemon, redis } };
}
