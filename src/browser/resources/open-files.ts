import { readlinkSync, type Stats, statSync } from "node:fs";
import type { BoundedLook } from "./bounded-look.js";

/**
 * Three times what a browser with a hundred pages has; going through as much takes some 200 ms of
 * an idle processor.
 */
export const mostCalls = 40_000;

/** `path` is what proc(5) tells; undefined where that is longer than a page of the kernel, or gone. */
type IsWanted = (path: string | undefined) => boolean;

/**
 * Finds the files that these processes have open, and those that they map where the kernel shows them (it
 * does to root alone), each once however many have it. `isWanted` is asked about each.
 */
export async function openFiles(
  look: BoundedLook,
  pids: readonly number[],
  isWanted: IsWanted,
): Promise<readonly Stats[]> {
  const found = new Map<string, Stats>();
  for await (const link of linksOf(look, pids, isWanted)) {
    const file = await look.ask(() => statSync(link));
    if (file) found.set(`${file.dev}:${file.ino}`, file);
  }
  return [...found.values()];
}

/** What a file takes up: a block of stat(2) has 512 bytes. */
export const bytesOnDisk = (files: readonly Stats[]): number =>
  files.reduce((total, { blocks }) => total + blocks * 512, 0);

async function* linksOf(
  look: BoundedLook,
  pids: readonly number[],
  isWanted: IsWanted,
): AsyncGenerator<string, void> {
  for (const pid of pids) {
    yield* descriptorsOf(look, pid, isWanted);
    yield* mappingsOf(look, pid, isWanted);
  }
}

async function* descriptorsOf(
  look: BoundedLook,
  pid: number,
  isWanted: IsWanted,
): AsyncGenerator<string, void> {
  for await (const name of look.names(`/proc/${pid}/fd`)) {
    const link = `/proc/${pid}/fd/${name}`;
    const path = await look.ask(() => readlinkSync(link));
    if (isWanted(path)) yield link;
  }
}

/**
 * Gives the links to the files that a process maps; each line of its `maps` is range, rights, offset, device,
 * inode and path. A line feed alone ends a line: the kernel escapes it in a path, and no other character.
 */
async function* mappingsOf(look: BoundedLook, pid: number, isWanted: IsWanted): AsyncGenerator<string, void> {
  for await (const line of look.lines(`/proc/${pid}/maps`)) {
    const [, range = "", path] = /^(\S+) \S+ \S+ \S+ \d+ +(\/.*)$/s.exec(line) ?? [];
    if (path !== undefined && isWanted(path)) yield `/proc/${pid}/map_files/${unpadded(range)}`;
  }
}

/**
 * An address of fewer than eight digits has zeros before it in `maps`, and none in `map_files` (Linux 6.18).
 */
const unpadded = (range: string): string => range.replaceAll(/\b0+(?=[0-9a-f])/g, "");
