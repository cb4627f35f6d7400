import { mkdir, readdir, readFile, rmdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Isolation } from "./chromium.js";
import { findGroup } from "./processes.js";

/** One browser's cgroup: its memory cap, and the list of its processes. */
export interface Cgroup {
  /** Takes in a process group that has just started. */
  enter(leader: number): Promise<void>;
  processes(): Promise<number[]>;
  /** Only when no process is left in it. */
  remove(): Promise<void>;
}

/** The daemon's own cgroup, under which each browser has one. */
export interface Cgroups {
  readonly kind: Exclude<Isolation["memoryCap"], "none">;
  /** The directory that holds all of them, of this daemon alone. */
  readonly top: string;
  make(name: string, memoryBytes: number): Promise<Cgroup>;
  close(): Promise<void>;
}

interface Mount {
  readonly kind: Cgroups["kind"];
  /** The directory of the cgroup this process runs in, or of the mount where that cannot be seen. */
  readonly own: string;
}

/** A place for cgroups with a memory cap, where the kernel and our rights allow one. `name` is this daemon's alone. */
export async function findCgroups(name: string): Promise<Cgroups | undefined> {
  for (const mount of await memoryMounts()) {
    const top = join(mount.own, name);
    try {
      await prepare(mount, top);
      return cgroupsUnder(mount.kind, top);
    } catch {
      await rmdir(top).catch(() => {});
    }
  }
  return undefined;
}

/** Lets `top` give its children a memory cap, and proves it with a child. */
async function prepare({ kind, own }: Mount, top: string): Promise<void> {
  if (kind === "cgroup-v2") await delegate(own);
  await mkdir(top, { recursive: true });
  if (kind === "cgroup-v2") await writeFile(join(top, "cgroup.subtree_control"), "+memory");
  const trial = await makeCgroup(kind, join(top, "trial"), 2 ** 30);
  await trial.remove();
}

/** A v2 cgroup that hands controllers down may hold no process itself, so the daemon moves into a leaf (cgroups(7)). */
async function delegate(own: string): Promise<void> {
  const control = join(own, "cgroup.subtree_control");
  if ((await readFile(control, "utf8")).split(/\s/).includes("memory")) return;
  const leaf = join(own, "remuda-daemon");
  const moved = await writeFile(control, "+memory").then(() => false, () => true);
  if (!moved) return;
  await mkdir(leaf, { recursive: true });
  await writeFile(join(leaf, "cgroup.procs"), `${process.pid}`);
  await writeFile(control, "+memory").catch(async (error: unknown) => {
    await writeFile(join(own, "cgroup.procs"), `${process.pid}`);
    await rmdir(leaf);
    throw error;
  });
}

const cgroupsUnder = (kind: Cgroups["kind"], top: string): Cgroups => ({
  kind,
  top,
  make: (name, memoryBytes) => makeCgroup(kind, join(top, name), memoryBytes),
  close: () => rmdir(top),
});

/** Every browser's cgroup under a daemon's top directory. */
export async function cgroupsIn(top: string): Promise<Cgroup[]> {
  const entries = await readdir(top, { withFileTypes: true }).catch(() => []);
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => cgroupAt(join(top, name)));
}

async function makeCgroup(kind: Cgroups["kind"], path: string, memoryBytes: number): Promise<Cgroup> {
  await mkdir(path);
  const limits = kind === "cgroup-v2" ? ["memory.max", "memory.swap.max"] : ["memory.limit_in_bytes", "memory.memsw.limit_in_bytes"];
  const [memory = "", swap = ""] = limits;
  try {
    await writeFile(join(path, memory), `${memoryBytes}`);
  } catch (error) {
    await rmdir(path);
    throw error;
  }
  // Absent where the kernel accounts no swap; without swap there is nothing to cap.
  await writeFile(join(path, swap), kind === "cgroup-v2" ? "0" : `${memoryBytes}`).catch(() => {});
  return cgroupAt(path);
}

const cgroupAt = (path: string): Cgroup => ({
  enter: (leader) => enter(path, leader),
  processes: () => membersOf(path),
  remove: () => rmdir(path),
});

async function membersOf(path: string): Promise<number[]> {
  const text = await readFile(join(path, "cgroup.procs"), "utf8").catch(() => "");
  return text.split("\n").filter((line) => line !== "").map(Number);
}

/**
 * The kernel takes 10 ms and more to move a process (a grace period, no work), which the process itself need not wait for:
 * it is moved while it starts, and what it has forked meanwhile is moved after it.
 */
async function enter(path: string, leader: number): Promise<void> {
  await move(path, leader);
  for (let outside = await strays(path, leader); outside.length > 0; outside = await strays(path, leader)) {
    await Promise.all(outside.map((pid) => move(path, pid)));
  }
}

async function strays(path: string, leader: number): Promise<number[]> {
  const [group, members] = [await findGroup(leader), new Set(await membersOf(path))];
  return group.filter((pid) => !members.has(pid));
}

const move = (path: string, pid: number): Promise<void> =>
  writeFile(join(path, "cgroup.procs"), `${pid}`).catch((error: NodeJS.ErrnoException) => {
    // It has ended, which others notice.
    if (error.code !== "ESRCH") throw error;
  });

async function memoryMounts(): Promise<Mount[]> {
  const [mounts, memberships] = await Promise.all(
    ["/proc/self/mountinfo", "/proc/self/cgroup"].map((path) => readFile(path, "utf8").catch(() => "")),
  );
  const found = (mounts ?? "").split("\n").map((line) => findMount(line, memberships ?? ""));
  const visible = await Promise.all(found.filter((mount) => mount !== undefined).map(seen));
  return visible.filter((mount) => mount !== undefined);
}

interface Place extends Omit<Mount, "own"> {
  readonly point: string;
  readonly below: string;
}

/** Reads one line of mountinfo (proc(5)): `… root point … - type source options`. */
function findMount(line: string, memberships: string): Place | undefined {
  const [before = "", after = ""] = line.split(" - ");
  const [, , , root = "/", point = ""] = before.split(" ");
  const [type, , options = ""] = after.split(" ");
  const isMemoryV1 = type === "cgroup" && options.split(",").includes("memory");
  if (type !== "cgroup2" && !isMemoryV1) return undefined;
  const pattern = isMemoryV1 ? /^\d+:(?:[^:]*,)?memory(?:,[^:]*)?:(.*)$/m : /^0::(.*)$/m;
  const path = pattern.exec(memberships)?.[1] ?? "/";
  const below = root !== "/" && path.startsWith(root) ? path.slice(root.length) : path;
  return { kind: isMemoryV1 ? "cgroup-v1" : "cgroup-v2", point, below };
}

async function seen({ kind, point, below }: Place): Promise<Mount | undefined> {
  const own = join(point, below);
  const place = await readdir(own).then(() => own, () => point);
  if (kind === "cgroup-v1") return { kind, own: place };
  const controllers = await readFile(join(place, "cgroup.controllers"), "utf8").catch(() => "");
  return controllers.split(/\s/).includes("memory") ? { kind, own: place } : undefined;
}
