import { readFileSync } from "node:fs";
import { readdir, readFile, stat } from "node:fs/promises";
import { daemonLeaf, isDaemonLeaf } from "../../../src/browser/resources/cgroup-hierarchy.js";
import { cgroupNameOf, lockName } from "../../../src/browser/resources/scratch.js";

/** What exists of the browsers of one scratch directory, named so that a failing test says what leaked. */
export interface Census {
  readonly processes: readonly string[];
  readonly directories: readonly string[];
  readonly cgroups: readonly string[];
  readonly displays: readonly string[];
  readonly sharedMemory: readonly string[];
  readonly temporary: readonly string[];
}

export const nothing: Census = {
  processes: [],
  directories: [],
  cgroups: [],
  displays: [],
  sharedMemory: [],
  temporary: [],
};

/** Uids that browsers may have; files of theirs outside their directories are leaks. */
const browserUids = { from: 200_000, to: 1_200_000 };

/**
 * Counts what is left. `uids` narrows X displays and temporary files to those of these owners, for tests that
 * run beside others; without it every browser uid counts.
 */
export async function takeCensus(scratchDirectory: string, uids?: ReadonlySet<number>): Promise<Census> {
  const isTheirs = (uid: number): boolean =>
    uids?.has(uid) ?? (uid >= browserUids.from && uid < browserUids.to);
  const [processes, directories, cgroups, sharedMemory, temporary, sockets] = await Promise.all([
    processesOf(scratchDirectory),
    readdir(scratchDirectory).catch(() => []),
    cgroupsOf(cgroupNameOf(scratchDirectory)),
    ownedIn("/dev/shm", isTheirs),
    ownedIn("/tmp", isTheirs),
    ownedIn("/tmp/.X11-unix", isTheirs),
  ]);
  const isLock = (name: string): boolean => /^\.X\d+-lock$/.test(name);
  return {
    processes,
    directories: directories.filter((name) => !["etc", "cgroup-tops", lockName].includes(name)),
    cgroups,
    displays: [...sockets, ...temporary.filter(isLock)],
    sharedMemory,
    temporary: temporary.filter((name) => !isLock(name)),
  };
}

async function processesOf(scratchDirectory: string): Promise<string[]> {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid);
  const lines = pids.map((pid) => describe(pid, scratchDirectory));
  return lines.filter((line) => line !== undefined);
}

function describe(pid: string, scratchDirectory: string): string | undefined {
  const command = fileOfProcess(pid, "cmdline");
  const isTheirs =
    command.includes(`${scratchDirectory}/`) ||
    fileOfProcess(pid, "environ").includes(`HOME=${scratchDirectory}/`) ||
    isBrowserIn(fileOfProcess(pid, "cgroup"), cgroupNameOf(scratchDirectory));
  // A zombie has no command line, and nothing but its parent can remove it.
  return isTheirs && command ? `${pid} ${command.replaceAll("\0", " ").slice(0, 100)}` : undefined;
}

/** What the daemon itself has started, or a test in its place, stands in a cgroup beside its browsers'. */
const isBrowserIn = (memberships: string, name: string): boolean =>
  memberships.replaceAll(`/${daemonLeaf(name)}`, "").includes(`/${name}/`);

/** Looks in every hierarchy of either version in which the daemon's own cgroup is. */
async function cgroupsOf(name: string): Promise<string[]> {
  const memberships = await readFile("/proc/self/cgroup", "utf8").catch(() => "");
  const found = await Promise.all(
    memberships.split("\n").map(async (line) => {
      const [, controllers = "", path = ""] = line.split(":");
      const mounts =
        controllers === "" ? ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"] : [`/sys/fs/cgroup/${controllers}`];
      return (await Promise.all(mounts.map((mount) => directoriesIn(`${mount}${path}/${name}`)))).flat();
    }),
  );
  return [...new Set(found.flat())];
}

async function directoriesIn(path: string): Promise<string[]> {
  const entries = await readdir(path, { withFileTypes: true }).catch(() => []);
  return entries
    .filter((entry) => entry.isDirectory() && !isDaemonLeaf(entry.name))
    .map((entry) => entry.name);
}

/**
 * A daemon that has stopped gives its uids to the next one on this machine, which may run in a test beside
 * this one: what the owner of a living process has is that one's, and what has gone by a second look was that
 * one's.
 */
async function ownedIn(directory: string, isTheirs: (uid: number) => boolean): Promise<string[]> {
  const found = [...(await ownersIn(directory))].filter(([, uid]) => isTheirs(uid));
  // Most often there is nothing, and no need to look at every process.
  if (found.length === 0) return [];
  const living = await livingUids();
  const still = await ownersIn(directory);
  return found.filter(([name, uid]) => !living.has(uid) && still.get(name) === uid).map(([name]) => name);
}

async function ownersIn(directory: string): Promise<Map<string, number>> {
  const names = await readdir(directory).catch(() => []);
  const owners = await Promise.all(
    names.map((name) =>
      stat(`${directory}/${name}`).then(
        ({ uid }) => uid,
        () => -1,
      ),
    ),
  );
  return new Map(names.map((name, at) => [name, owners[at] ?? -1]));
}

/** The uids of living processes. Zombies keep their uid, but hold nothing. */
async function livingUids(): Promise<ReadonlySet<number>> {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const states = pids.map((pid) => fileOfProcess(pid, "status"));
  return new Set(
    states
      .filter((text) => !/^State:\tZ/m.test(text))
      .map((text) => Number(/^Uid:\t(\d+)/m.exec(text)?.[1] ?? -1)),
  );
}

/**
 * Empty where the process is gone. Read at once: a machine has a thousand processes, and as many files open
 * at the same time, for each of the browsers that are looked at, are more than a process may have.
 */
function fileOfProcess(pid: string, name: string): string {
  try {
    return readFileSync(`/proc/${pid}/${name}`, "latin1");
  } catch {
    return "";
  }
}
