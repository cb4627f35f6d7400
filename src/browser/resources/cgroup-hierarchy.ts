import { mkdir, readdir, readFile, rmdir, writeFile } from "node:fs/promises";
import { join } from "node:path";

/**
 * The resources that the kernel can bound, share out or count for a group of processes. Version 2 counts
 * processor time with `cpu`.
 */
export type Controller = "memory" | "pids" | "cpu" | "io" | "cpuacct";
export const controllers: readonly Controller[] = ["memory", "pids", "cpu", "io", "cpuacct"];

/**
 * A tree of cgroups that this process is in. A machine has one of version 2, several of version 1, or both
 * (cgroups(7)).
 */
export interface Hierarchy {
  readonly version: 1 | 2;
  readonly controllers: readonly Controller[];
  /** The directory of the cgroup this process runs in, or of the mount where that cannot be seen. */
  readonly own: string;
}

/**
 * Finds the hierarchies that carry one of our controllers, the one with memory first: it also answers which
 * processes a browser has.
 */
export async function findHierarchies(): Promise<Hierarchy[]> {
  const [mounts = "", memberships = ""] = await Promise.all(
    ["/proc/self/mountinfo", "/proc/self/cgroup"].map((path) => readFile(path, "utf8").catch(() => "")),
  );
  const places = parseMounts(mounts, memberships);
  const found = (await Promise.all(places.map(look))).filter((hierarchy) => hierarchy.controllers.length > 0);
  return found.sort(
    (a, b) => Number(b.controllers.includes("memory")) - Number(a.controllers.includes("memory")),
  );
}

interface CgroupMount extends Omit<Hierarchy, "own"> {
  readonly point: string;
  readonly below: string;
}

/** Reads /proc/self/mountinfo (`… root point … - type source options`, proc(5)) and /proc/self/cgroup. */
export const parseMounts = (mounts: string, memberships: string): CgroupMount[] =>
  mounts
    .split("\n")
    .map((line) => parseMount(line, memberships))
    .filter((place) => place !== undefined);

function parseMount(line: string, memberships: string): CgroupMount | undefined {
  const [before = "", after = ""] = line.split(" - ");
  const [, , , root = "/", point = ""] = before.split(" ");
  const [type, , options = ""] = after.split(" ");
  if (type !== "cgroup" && type !== "cgroup2") return undefined;
  const version = type === "cgroup" ? 1 : 2;
  const carried =
    version === 1 ? controllers.filter((each) => options.split(",").includes(nameInVersion1(each))) : [];
  const [first] = carried;
  if (version === 1 && first === undefined) return undefined;
  const pattern =
    first === undefined
      ? /^0::(.*)$/m
      : new RegExp(`^\\d+:(?:[^:]*,)?${nameInVersion1(first)}(?:,[^:]*)?:(.*)$`, "m");
  const path = (pattern.exec(memberships)?.[1] ?? "/").replace(leafPattern, "") || "/";
  const below = root !== "/" && path.startsWith(root) ? path.slice(root.length) : path;
  return { version, controllers: carried, point, below };
}

const nameInVersion1 = (controller: Controller): string => (controller === "io" ? "blkio" : controller);

async function look({ version, controllers: carried, point, below }: CgroupMount): Promise<Hierarchy> {
  const path = join(point, below);
  const own = await readdir(path).then(
    () => path,
    () => point,
  );
  if (version === 1) return { version, controllers: carried, own };
  const available = await readFile(join(own, "cgroup.controllers"), "utf8").catch(() => "");
  return { version, controllers: controllers.filter((each) => available.split(/\s/).includes(each)), own };
}

/**
 * Names the cgroup of the daemon itself, which lies beside its browsers' in the one that it made: the
 * scheduler compares neighbours, and in version 2 a cgroup that hands controllers down may hold no process.
 */
export const daemonLeaf = (name: string): string => join(name, `${leafPrefix}${name}`);
const leafPrefix = "remuda-daemon-";
export const isDaemonLeaf = (name: string): boolean => name.startsWith(leafPrefix);
/** Earlier releases put the daemon's cgroup beside the one that holds the browsers. */
const leafPattern = /\/([^/]+)\/remuda-daemon-\1$|\/remuda-daemon-[^/]*$/;

/**
 * Makes `name` below our own cgroup and lets it hand controllers down to its children; says which it does.
 * Throws where no cgroup may be made.
 */
export async function prepareTop(
  { version, controllers: wanted, own }: Hierarchy,
  name: string,
): Promise<readonly Controller[]> {
  const top = join(own, name);
  const handed = version === 1 ? wanted : await handDown(own, name, wanted);
  await mkdir(top, { recursive: true });
  if (version === 1) return handed;
  const enabled = await enable(top, handed);
  if (enabled.length === 0) throw new Error("it hands no controller down");
  return enabled;
}

/** The daemon moves into a leaf where its cgroup would not hand controllers down otherwise (cgroups(7)). */
async function handDown(
  own: string,
  name: string,
  wanted: readonly Controller[],
): Promise<readonly Controller[]> {
  const already = (await readFile(join(own, "cgroup.subtree_control"), "utf8")).split(/\s/);
  if (wanted.every((each) => already.includes(each))) return wanted;
  const enabled = await enable(own, wanted);
  if (enabled.length > 0) return enabled;
  const leaf = join(own, daemonLeaf(name));
  await mkdir(leaf, { recursive: true });
  await writeFile(join(leaf, "cgroup.procs"), `${process.pid}`);
  const after = await enable(own, wanted);
  if (after.length > 0) return after;
  await writeFile(join(own, "cgroup.procs"), `${process.pid}`);
  await rmdir(leaf);
  throw new Error(`${own} hands no controller down`);
}

/** Controllers are enabled one at a time, because the kernel takes a list whole or not at all. */
async function enable(path: string, wanted: readonly Controller[]): Promise<readonly Controller[]> {
  const control = join(path, "cgroup.subtree_control");
  const enabled: Controller[] = [];
  for (const each of wanted) {
    const isOn = await writeFile(control, `+${each}`).then(
      () => true,
      () => false,
    );
    if (isOn) enabled.push(each);
  }
  return enabled;
}
