import { realpath } from "node:fs/promises";
import { isAbsolute, resolve, sep } from "node:path";
import { CannotStart } from "../base/cannot-start.js";

/** Each holds more than any engine needs, and secrets of the machine or of its users. */
const tooWide: readonly string[] = ["/", "/proc", "/sys", "/dev", "/etc", "/root", "/home"];

/**
 * Throws where browsers would be shown a path of `guarded`, what holds one or what lies in one, under
 * whatever name.
 */
export async function guardReadable(paths: readonly string[], guarded: readonly string[]): Promise<void> {
  const secrets = await Promise.all(guarded.map(settledPath));
  for (const path of paths) {
    const why = isAbsolute(path) ? objectionTo(await settledPath(path), secrets) : "is not absolute";
    if (why !== undefined) throw new CannotStart(`browser.readable_paths: ${path} ${why}`);
  }
}

function objectionTo(path: string, secrets: readonly string[]): string | undefined {
  if (tooWide.includes(path)) return "would show browsers files of the whole machine";
  const secret = secrets.find((each) => isWithin(path, each) || isWithin(each, path));
  return secret === undefined ? undefined : `would show browsers files of the daemon, which are in ${secret}`;
}

const isWithin = (path: string, directory: string): boolean =>
  path === directory || path.startsWith(`${directory}${sep}`);

const settledPath = (path: string): Promise<string> => realpath(path).catch(() => resolve(path));
