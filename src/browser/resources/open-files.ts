import { readlinkSync, type Stats, statSync } from "node:fs";
import type { BoundedLook } from "./bounded-look.js";

/**
 * Three times what a browser with a hundred pages has; going through as much takes some 200 ms of
 * an idle processor.
 */
export const mostCalls = 40_000;

/**
 * Finds the files that these processes have open, and those that they map where the kernel shows them (it
 * does to root alone), each once however many have it. `isWanted` is asked about the path that proc(5) tells.
 */
export async function openFiles(
  look: BoundedLook,
  pids: readonly number[],
  isWanted: (path: string) => boolean,
): Promise<readonly Stats[]> {
  const links: string[] = [];
  for (const pid of pids) {
    links.push(...(await descriptorsOf(look, pid, isWanted)), ...(await mappingsOf(look, pid, isWanted)));
  }
  const found = new Map<string, Stats>();
  for (const link of links) {
    const file = await look.ask(() => statSync(link));
    if (file) found.set(`${file.dev}:${file.ino}`, file);
  }
  return [...found.values()];
}

/** What a file takes up: a block of stat(2) has 512 bytes. */
export const bytesOnDisk = (files: readonly Stats[]): number =>
  files.reduce((total, { blocks }) => total + blocks * 512, 0);

async function descriptorsOf(
  look: BoundedLook,
  pid: number,
  isWanted: (path: string) => boolean,
): Promise<readonly string[]> {
  const wanted: string[] = [];
  for (const name of await look.names(`/proc/${pid}/fd`)) {
    const link = `/proc/${pid}/fd/${name}`;
    const path = await look.ask(() => readlinkSync(link));
    if (path !== undefined && isWanted(path)) wanted.push(link);
  }
  return wanted;
}

/**
 * The links to the files that a process maps; each line of its `maps` is range, rights, offset, device, inode
 * and path.
 */
async function mappingsOf(
  look: BoundedLook,
  pid: number,
  isWanted: (path: string) => boolean,
): Promise<readonly string[]> {
  const text = await look.text(`/proc/${pid}/maps`);
  return [...text.matchAll(/^(\S+) \S+ \S+ \S+ \d+ +(\/.*)$/gm)]
    .filter(([, , path = ""]) => isWanted(path))
    .map(([, range = ""]) => `/proc/${pid}/map_files/${range}`);
}
