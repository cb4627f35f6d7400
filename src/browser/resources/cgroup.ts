import { mkdir, readdir, readFile, rmdir } from "node:fs/promises";
import { join } from "node:path";
import { errnoOf } from "../../base/errno.js";
import { type CgroupLimits, applyLimits, cgroupSettingsOf, limitCpu } from "./cgroup-limits.js";
import {
  type Controller,
  controllers,
  findHierarchies,
  type Hierarchy,
  isDaemonLeaf,
  prepareTop,
} from "./cgroup-hierarchy.js";
import { CgroupMemory, type MemoryUse } from "./cgroup-memory.js";
import { moveDaemon } from "./cgroup-weights.js";
import { KernelLog, type KilledIn } from "./kernel-log.js";
import { type ProcessorAccount, findLowPriorityKind, usedMsAt, CpuPriority } from "./cpu-priority.js";

/** One browser's cgroup in every hierarchy: what bounds it, and the list of its processes. */
export interface Cgroup {
  /**
   * The head of a command line whose process enters the cgroup and then becomes the rest of it by exec. It
   * stands before whatever gives up the daemon's rights, and before bubblewrap: what is moved later leaves
   * its children behind.
   */
  readonly prefix: readonly string[];
  /**
   * Bounds its processor time, in percent of one core. Not before it is launched: that would take several
   * times as long.
   */
  throttle(cpuPercent: number): Promise<void>;
  processes(): Promise<number[]>;
  /** Undefined where it does not count memory. */
  memory(): Promise<MemoryUse | undefined>;
  /** Processes that the kernel has ended for want of memory; undefined where that is not counted. */
  outOfMemoryKills(): number | undefined;
  /** Works only when no process is left in it. */
  remove(): Promise<void>;
}

interface CgroupWanted extends CgroupLimits {
  /** The uid of its processes, where nobody else has it: the kernel's log names it with each kill. */
  readonly uid?: number | null;
}

export type CgroupKind = "cgroup-v2" | "cgroup-v1" | "none";

/** The daemon's own cgroup, under which each browser has one. */
export interface DaemonCgroup {
  /** The kind of cgroup by which each controller holds its browsers, if it does. */
  readonly holds: Readonly<Record<Controller, CgroupKind>>;
  /** The directories that hold all of them, of this daemon alone: one in each hierarchy. */
  readonly tops: readonly string[];
  /** Puts busy browsers behind the others; absent where the kernel offers no way. */
  readonly cpuPriority?: CpuPriority;
  make(name: string, wanted: CgroupWanted): Promise<Cgroup>;
  close(): Promise<void>;
}

/** A cgroup in one hierarchy: the daemon's own, or a browser's below it. */
interface Member {
  readonly version: Hierarchy["version"];
  readonly controllers: readonly Controller[];
  readonly path: string;
}

/**
 * Finds a place for cgroups, where the kernel and our rights allow one. No other daemon uses the same `name`.
 */
export async function findCgroups(name: string): Promise<DaemonCgroup | undefined> {
  const found: (Member | undefined)[] = [];
  const hierarchies = await findHierarchies();
  for (const hierarchy of hierarchies) found.push(await findTop(hierarchy, name));
  const tops = found.filter((top) => top !== undefined);
  if (tops.length === 0) return undefined;
  const weighed = hierarchies.find((_, at) => found[at]?.controllers.includes("cpu"));
  const moveBack = weighed && (await moveDaemon(weighed, name));
  const countsMemory = tops.some((top) => top.controllers.includes("memory"));
  const kernelLog = countsMemory ? KernelLog.open(name) : undefined;
  return await cgroupsUnder(tops, { moveBack: async () => (await moveBack?.()) ?? true, kernelLog });
}

async function findTop(hierarchy: Hierarchy, name: string): Promise<Member | undefined> {
  const { version, own } = hierarchy;
  const path = join(own, name);
  const proved = await prepareTop(hierarchy, name)
    .then((handed) => prove({ version, controllers: handed, path }))
    .catch(() => []);
  if (proved.length > 0) return { version, controllers: proved, path };
  await rmdir(path).catch(() => {});
  return undefined;
}

const trialLimits: CgroupLimits = { memoryBytes: 2 ** 30, tasks: 100 };

/** Finds the controllers whose limits a child really takes. */
async function prove(top: Member): Promise<readonly Controller[]> {
  const taken = await onTrial(top.path, (path) =>
    Promise.all(
      top.controllers.map(async (controller) => {
        const works = await applyLimits(path, cgroupSettingsOf(top.version, trialLimits)[controller]).then(
          () => true,
          () => false,
        );
        return works ? [controller] : [];
      }),
    ),
  );
  return taken.flat();
}

/** Makes a cgroup as a browser's would be, and removes it after the trial. */
async function onTrial<Found>(top: string, use: (path: string) => Promise<Found>): Promise<Found> {
  const path = join(top, "trial");
  // A daemon that was killed during its trial may have left the cgroup.
  await mkdir(path, { recursive: true });
  try {
    return await use(path);
  } finally {
    await rmdir(path);
  }
}

/**
 * In version 2 processor time is counted where it is shared out; in version 1 the counting may have a
 * hierarchy of its own.
 */
async function findCpuPriority(
  weighed: Member | undefined,
  counted: Member | undefined,
): Promise<CpuPriority | undefined> {
  if (!weighed || !counted || usedMsAt(counted.path, counted.version) === undefined) return undefined;
  const { path, version } = weighed;
  const kind = await onTrial(path, async (trial) => findLowPriorityKind(trial, version));
  return kind === "none" ? undefined : new CpuPriority({ kind, version, top: counted.path });
}

interface CgroupParts {
  /** False where others than the daemon are in its cgroup. */
  moveBack(): Promise<boolean>;
  readonly kernelLog: KernelLog | undefined;
}

async function cgroupsUnder(
  tops: readonly Member[],
  { moveBack, kernelLog }: CgroupParts,
): Promise<DaemonCgroup> {
  const having = (controller: Controller): Member | undefined =>
    tops.find((top) => top.controllers.includes(controller));
  const held = (controller: Controller): CgroupKind => {
    const version = having(controller)?.version;
    return version === undefined ? "none" : `cgroup-v${version}`;
  };
  const weighed = having("cpu");
  const counted = weighed?.version === 2 ? weighed : having("cpuacct");
  const cpuPriority = await findCpuPriority(weighed, counted);
  return {
    holds: Object.fromEntries(controllers.map((each) => [each, held(each)])) as Record<
      Controller,
      CgroupKind
    >,
    tops: tops.map(({ path }) => path),
    ...(cpuPriority && { cpuPriority }),
    async make(name, { uid = null, ...limits }) {
      const killedIn = { cgroup: name, uid };
      const cgroup = cgroupAt(await makeCgroup(tops, name, limits), { killedIn, kernelLog });
      kernelLog?.begin(killedIn);
      const account: ProcessorAccount = {
        weighed: join(weighed?.path ?? "", name),
        counted: join(counted?.path ?? "", name),
      };
      cpuPriority?.add(account);
      const remove = async (): Promise<void> => {
        await cgroup.remove();
        kernelLog?.end(killedIn);
        cpuPriority?.delete(account);
      };
      return { ...cgroup, remove };
    },
    async close() {
      kernelLog?.close();
      const isAlone = await moveBack();
      await Promise.all(tops.filter((top) => isAlone || top !== weighed).map(({ path }) => rmdir(path)));
    },
  };
}

/** Every browser's cgroup under a daemon's top directory in one hierarchy. */
export async function cgroupsIn(top: string): Promise<Cgroup[]> {
  const entries = await readdir(top, { withFileTypes: true }).catch(() => []);
  return entries
    .filter((entry) => entry.isDirectory() && !isDaemonLeaf(entry.name))
    .map(({ name }) => cgroupAt([{ path: join(top, name), version: 2, controllers: [] }]));
}

async function makeCgroup(
  tops: readonly Member[],
  name: string,
  limits: CgroupLimits,
): Promise<readonly Member[]> {
  const made = tops.map((top) => ({ ...top, path: join(top.path, name) }));
  const outcomes = await Promise.allSettled(made.map((member) => makeIn(member, limits)));
  const failed = outcomes.find((outcome) => outcome.status === "rejected");
  if (failed === undefined) return made;
  await Promise.all(made.map(({ path }) => rmdir(path).catch(() => {})));
  throw failed.reason;
}

async function makeIn({ version, controllers: handed, path }: Member, limits: CgroupLimits): Promise<void> {
  await mkdir(path);
  await Promise.all(
    handed.map((controller) => applyLimits(path, cgroupSettingsOf(version, limits)[controller])),
  );
}

interface MemoryWatch {
  readonly killedIn: KilledIn;
  readonly kernelLog: KernelLog | undefined;
}

function cgroupAt(members: readonly Member[], watch?: MemoryWatch): Cgroup {
  const [first] = members;
  const counted = members.find(({ controllers: handed }) => handed.includes("memory"));
  const memory = counted && watch && new CgroupMemory({ ...counted, ...watch });
  const paths = members.map(({ path }) => path);
  return {
    prefix: prefixOf(members),
    throttle: async (cpuPercent) => {
      const member = members.find(({ controllers: handed }) => handed.includes("cpu"));
      if (member) await limitCpu(member, cpuPercent);
    },
    memory: async () => memory?.read(),
    outOfMemoryKills: () => memory?.outOfMemoryKills(),
    processes: () => (first ? membersOf(first.path) : Promise.resolve([])),
    remove: async () => void (await Promise.all(paths.map(removeCgroupAt))),
  };
}

/**
 * A thread that names itself (0) in `tasks` moves at once. For a whole process, by `cgroup.procs`, the kernel
 * waits for a grace period, 6 to 20 ms on Linux 6.18, though sh has one thread only; version 2 has nothing
 * but that.
 */
const entranceOf = ({ path, version }: Member): string =>
  join(path, version === 1 ? "tasks" : "cgroup.procs");

/** sh says on stderr which cgroup it could not enter, and ends. */
const enterAll = 'while [ "$1" != -- ]; do echo 0 > "$1" || exit 125; shift; done; shift; exec "$@"';

const prefixOf = (members: readonly Member[]): readonly string[] => [
  "/bin/sh",
  "-c",
  enterAll,
  "sh",
  ...members.map(entranceOf),
  "--",
];

async function membersOf(path: string): Promise<number[]> {
  const text = await readFile(join(path, "cgroup.procs"), "utf8").catch(() => "");
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map(Number);
}

/** A cgroup that has gone already is not a fault. */
const removeCgroupAt = (path: string): Promise<void> =>
  rmdir(path).catch((error: unknown) => {
    if (errnoOf(error) !== "ENOENT") throw error;
  });
