import { readdirSync, readFileSync, readlinkSync, statfsSync, statSync } from "node:fs";
import { totalmem } from "node:os";
import { measureMount } from "./scratch-usage.js";

// All of this is synchronous: the kernel writes it out of numbers that it has at hand, and a job in the
// thread pool would cost ten times as much.

/**
 * Measures the machine's shared memory that lies in no file system of this process: the most that a browser
 * can hold of it without showing it. What others of the machine hold so is counted too.
 */
export function unseenBytes(): number {
  const shared = kilobytes(textOf("/proc/meminfo"), "Shmem");
  // A covered one cannot be measured, so that what it holds stays unseen.
  const open = uniqueMounts(mountsOf("self")).filter((mount) => isOpen("", mount));
  return Math.max(0, shared - sum(open.map(({ point }) => given(() => measureMount(point).bytes) ?? 0)));
}

/**
 * Measures what lies in the file systems in memory that only these processes see. One without a bound, and
 * one that another mount covers, cannot be measured and count as all the memory there is: no Chromium makes
 * such.
 */
export function mountedBytes(pids: readonly number[]): number {
  const shared = new Set(mountsOf("self").map(({ device }) => device));
  const counted = new Map<string, number>();
  for (const [, members] of byNamespace(pids)) {
    const root = members.find((pid) => given(() => statfsSync(`/proc/${pid}/root`)) !== undefined);
    if (root === undefined) continue;
    for (const mount of uniqueMounts(mountsOf(root)).filter(({ device }) => !shared.has(device)))
      counted.set(mount.device, bytesIn(`/proc/${root}/root`, mount));
  }
  return sum([...counted.values()]);
}

/**
 * Measures the shared memory that these processes hold by descriptors, and what they map where the kernel
 * shows it (it does to root alone), each file once however many have it.
 */
export function heldBytes(pids: readonly number[]): number {
  const held = new Map<string, number>();
  for (const path of pids.flatMap((pid) => [...descriptorsOf(pid), ...mappingsOf(pid)])) {
    const found = given(() => statSync(path));
    // A block of stat(2) has 512 bytes.
    if (found) held.set(`${found.dev}:${found.ino}`, found.blocks * 512);
  }
  return sum([...held.values()]);
}

/** What proc(5) calls shared memory that has no name in a file system. */
const isUnnamed = (path: string): boolean => /^\/(?:memfd:|dev\/zero \(deleted\)|SYSV)/.test(path);

function descriptorsOf(pid: number): string[] {
  const names = given(() => readdirSync(`/proc/${pid}/fd`)) ?? [];
  return names
    .map((name) => `/proc/${pid}/fd/${name}`)
    .filter((path) => isUnnamed(given(() => readlinkSync(path)) ?? ""));
}

/**
 * The links to the files that a process maps; each line of its `maps` is range, rights, offset, device, inode
 * and path.
 */
const mappingsOf = (pid: number): string[] =>
  [...textOf(`/proc/${pid}/maps`).matchAll(/^(\S+) \S+ \S+ \S+ \d+ +(\/.*)$/gm)]
    .filter(([, , path = ""]) => isUnnamed(path))
    .map(([, range = ""]) => `/proc/${pid}/map_files/${range}`);

/** A file system in memory, and where it is mounted. */
interface MemoryMount {
  readonly device: string;
  readonly point: string;
}

/** Reads /proc/PID/mountinfo: `id parent device root point options … - type source options` (proc(5)). */
function mountsOf(pid: number | "self"): MemoryMount[] {
  const lines = textOf(`/proc/${pid}/mountinfo`).split("\n");
  return lines
    .filter((line) => / - (?:tmpfs|ramfs) /.test(line))
    .map((line) => line.split(" "))
    .map(([, , device = "", , point = ""]) => ({ device, point: unescaped(point) }));
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

function bytesIn(root: string, mount: MemoryMount): number {
  const path = root + mount.point;
  const device = given(() => statSync(path).dev);
  const found = given(() => statfsSync(path));
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

/** Processes by their mount namespaces, without those that share ours or do not show theirs. */
function byNamespace(pids: readonly number[]): ReadonlyMap<string, readonly number[]> {
  const ours = given(() => readlinkSync("/proc/self/ns/mnt"));
  const found = new Map<string, number[]>();
  for (const pid of pids) {
    const theirs = given(() => readlinkSync(`/proc/${pid}/ns/mnt`));
    if (theirs !== undefined && theirs !== ours) found.set(theirs, [...(found.get(theirs) ?? []), pid]);
  }
  return found;
}

const textOf = (path: string): string => given(() => readFileSync(path, "latin1")) ?? "";

/** Undefined for what has gone, and for what this process may not see. */
function given<Found>(look: () => Found): Found | undefined {
  try {
    return look();
  } catch {
    return undefined;
  }
}

const sum = (all: readonly number[]): number => all.reduce((total, each) => total + each, 0);

export const kilobytes = (text: string, field: string): number =>
  Number(new RegExp(`^${field}:\\s+(\\d+) kB`, "m").exec(text)?.[1] ?? 0) * 1024;
