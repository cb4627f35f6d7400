import { mkdir, readFile, rmdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { daemonLeaf, type Hierarchy } from "./cgroup-hierarchy.js";

/** The weight that every cgroup has by default (cgroups(7)). */
const weights = { 1: { file: "cpu.shares", usual: 1024 }, 2: { file: "cpu.weight", usual: 100 } } as const;

/** The daemon relays for all its browsers, so it goes before them; it wants little. */
const daemonPrograms = 8;

/**
 * Moves this process, and what it has started so far (its private Redis), into a cgroup that weighs as much
 * as several browsers. The returned function moves them out again, and says whether that cgroup is gone.
 */
export async function moveDaemon({ version, own }: Hierarchy, name: string): Promise<() => Promise<boolean>> {
  const path = join(own, daemonLeaf(name));
  try {
    await mkdir(path, { recursive: true });
    await move(path, process.pid);
  } catch {
    return () => isRemoved(path);
  }
  await Promise.all((await startedSoFar()).map((pid) => move(path, pid).catch(() => {})));
  const { file, usual } = weights[version];
  // A cgroup without a weight gets the same share as a browser, which harms nobody.
  await writeFile(join(path, file), `${usual * daemonPrograms}`).catch(() => {});
  return async () => {
    // Version 2 takes no process back where it hands controllers down; the next daemon of this directory
    // finds the cgroup.
    await Promise.all(
      (await pidsIn(join(path, "cgroup.procs"))).map((pid) => move(own, pid).catch(() => {})),
    );
    return await isRemoved(path);
  };
}

const isRemoved = (path: string): Promise<boolean> =>
  rmdir(path).then(
    () => true,
    () => false,
  );

const move = (cgroup: string, pid: number): Promise<void> =>
  writeFile(join(cgroup, "cgroup.procs"), `${pid}`);

/** The children of this process (proc(5)); none where the kernel does not list them. */
const startedSoFar = (): Promise<number[]> => pidsIn(`/proc/self/task/${process.pid}/children`);

const pidsIn = async (path: string): Promise<number[]> =>
  (await readFile(path, "utf8").catch(() => ""))
    .split(/\s+/)
    .filter((text) => text !== "")
    .map(Number);
