import { readFileSync, readlinkSync, statfsSync, statSync } from "node:fs";
import { totalmem } from "node:os";
import { BoundedLook, given } from "./bounded-look.js";
import { bytesOnDisk, mostCalls, openFiles } from "./open-files.js";
import { measureMount } from "./scratch-usage.js";

/**
 * Measures the machine's shared memory that lies in no file system of this process: the most that a browser
 * can hold of it without showing it. What others of the machine hold so is counted too.
 */
export function unseenBytes(): number {
  const shared = kilobytes(textOf("/proc/meminfo"), "Shmem");
  // A covered one cannot be measured, so that what it holds stays unseen.
  const open = uniqueMounts(mountsIn(textOf("/proc/self/mountinfo"))).filter((mount) => isOpen("", mount));
  return Math.max(0, shared - sum(open.map(({ point }) => given(() => measureMount(point).bytes) ?? 0)));
}

/** A browser's private root has seven. */
const mostMounts = 64;
/** What a thousand processes take, and some thousand mounts besides; some 15 ms of an idle processor. */
const mostMountCalls = 4096;

/**
 * Measures what lies in the file systems in memory that only these processes see. One without a bound, one
 * that another mount covers, and more of them than a look may go through cannot be measured and count as all
 * the memory there is: no Chromium makes such.
 */
export async function mountedBytes(pids: readonly number[]): Promise<number> {
  const look = new BoundedLook(mostMountCalls);
  const shared = new Set(mountsIn(textOf("/proc/self/mountinfo")).map(({ device }) => device));
  const counted = new Map<string, number>();
  for (const { root, mounts } of await namespacesOf(look, pids, shared)) {
    for (const mount of mounts) counted.set(mount.device, await bytesIn(look, root, mount));
  }
  return look.isOver || counted.size > mostMounts ? totalmem() : sum([...counted.values()]);
}

/**
 * Measures the shared memory that these processes hold by descriptors, and what they map where the kernel
 * shows it, each file once however many have it. Undefined where that is more than a look may go through.
 */
export async function heldBytes(pids: readonly number[]): Promise<number | undefined> {
  const look = new BoundedLook(mostCalls);
  const bytes = bytesOnDisk(await openFiles(look, pids, isUnnamed));
  return look.isOver ? undefined : bytes;
}

/** What proc(5) calls shared memory that has no name in a file system. */
const isUnnamed = (path = ""): boolean => /^\/(?:memfd:|dev\/zero \(deleted\)|SYSV)/.test(path);

/** A file system in memory, and where it is mounted. */
interface MemoryMount {
  readonly device: string;
  readonly point: string;
}

const mountsIn = (text: string): MemoryMount[] => text.split("\n").flatMap((line) => mountIn(line) ?? []);

/** Reads a line of a mountinfo: `id parent device root point options … - type source options` (proc(5)). */
function mountIn(line: string): MemoryMount | undefined {
  if (!/ - (?:tmpfs|ramfs) /.test(line)) return undefined;
  const [, , device = "", , point = ""] = line.split(" ");
  return { device, point: unescaped(point) };
}

/** Each file system at the first place where it is mounted. */
const uniqueMounts = (mounts: readonly MemoryMount[]): MemoryMount[] => [
  ...new Map(mounts.toReversed().map((mount) => [mount.device, mount])).values(),
];

const unescaped = (path: string): string =>
  path.replaceAll(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)));

/** False where another mount covers it. */
const isOpen = (root: string, { device, point }: MemoryMount): boolean =>
  given(() => statSync(root + point).dev) === numberOf(device);

async function bytesIn(look: BoundedLook, root: string, mount: MemoryMount): Promise<number> {
  // A text of the kernel is read as Latin-1, so that each of its characters is a byte of the path.
  const path = Buffer.from(root + mount.point, "latin1");
  const device = await look.ask(() => statSync(path).dev);
  const found = await look.ask(() => statfsSync(path));
  // Who may look at the process may look at all that is mounted there, so that it has just ended.
  if (device === undefined || found === undefined) return 0;
  const isBounded = device === numberOf(mount.device) && found.blocks > 0;
  return isBounded ? (found.blocks - found.bfree) * found.bsize : totalmem();
}

/** The number that stat(2) gives a device, of its major and minor. */
function numberOf(device: string): number {
  const [major = 0, minor = 0] = device.split(":").map(Number);
  return (major << 8) | (minor & 0xff) | ((minor & ~0xff) << 12);
}

/** A mount namespace by the root of a process that is in it, and its own file systems in memory. */
interface MountNamespace {
  readonly root: string;
  readonly mounts: readonly MemoryMount[];
}

/** The namespaces of these processes, without ours and those that do not show themselves. */
async function namespacesOf(
  look: BoundedLook,
  pids: readonly number[],
  shared: ReadonlySet<string>,
): Promise<readonly MountNamespace[]> {
  const seen = new Set([given(() => readlinkSync("/proc/self/ns/mnt"))]);
  const found: MountNamespace[] = [];
  for (const pid of pids) {
    const name = await look.ask(() => readlinkSync(`/proc/${pid}/ns/mnt`));
    const root = `/proc/${pid}/root`;
    if (name === undefined || seen.has(name) || !(await look.ask(() => statfsSync(root)))) continue;
    seen.add(name);
    found.push({ root, mounts: await ownMounts(look.lines(`/proc/${pid}/mountinfo`), shared) });
  }
  return found;
}

/** Those that are not shared, each at the first place where it is mounted; one too many is enough. */
async function ownMounts(
  lines: AsyncIterable<string>,
  shared: ReadonlySet<string>,
): Promise<readonly MemoryMount[]> {
  const found = new Map<string, MemoryMount>();
  for await (const line of lines) {
    const mount = mountIn(line);
    if (mount && !shared.has(mount.device) && !found.has(mount.device)) found.set(mount.device, mount);
    if (found.size > mostMounts) break;
  }
  return [...found.values()];
}

const textOf = (path: string): string => given(() => readFileSync(path, "latin1")) ?? "";

const sum = (all: readonly number[]): number => all.reduce((total, each) => total + each, 0);

export const kilobytes = (text: string, field: string): number =>
  Number(new RegExp(`^${field}:\\s+(\\d+) kB`, "m").exec(text)?.[1] ?? 0) * 1024;
