import { randomBytes } from "node:crypto";
import { constants, type Dirent } from "node:fs";
import { chmod, chown, lchown, lstat, mkdir, open, opendir, rm, rmdir, unlink } from "node:fs/promises";
import { join } from "node:path";
import type { Millis } from "../base/clock.js";
import { untilAborted } from "../base/deadline.js";
import { errnoOf } from "../base/errno.js";
import type { Directories } from "./chromium.js";
import { findTool } from "./executable.js";
import type { SizedScratch } from "./resources/sized-scratch.js";
import { runProgram } from "./run-program.js";

/**
 * Draws a name that says nothing of the session, since command lines and names of cgroups are visible to
 * everyone on the machine.
 */
export const newWorkspaceName = (): string => `b-${randomBytes(6).toString("hex")}`;

export const isWorkspaceName = (name: string): boolean => /^b-[0-9a-f]{12}$/.test(name);

/**
 * Names the directories of one browser under `scratch`. `root` is the browser's HOME. `downloads` is the
 * place that Chromium itself would choose under it, so that a download lands there even where no CDP command
 * names a place. What only Chromium uses lies in the temporary directory, so that a private root needs no
 * mount for it (DECISIONS.md 120).
 */
export function directoriesOf(scratch: string, name: string): Directories {
  const root = join(scratch, name);
  const temporary = join(root, "tmp");
  return {
    root,
    profile: join(root, "profile"),
    extensions: join(root, "extensions"),
    downloads: join(root, "Downloads"),
    uploads: join(root, "uploads"),
    temporary,
    keys: join(temporary, "keys"),
    display: join(root, "display"),
    authority: join(root, "xauthority"),
  };
}

/**
 * The root is sticky and belongs to the browser's group. So the browser may put there what it likes, and can
 * neither remove nor rename our own entries, which we use by their paths while it runs.
 */
const rootMode = 0o1770;

/**
 * Makes the directories, for the browser alone. Where `uid` is null they are ours. Root and extensions are
 * ours in any case; the browser may write into root and read extensions.
 */
export async function makeDirectories(
  directories: Directories,
  uid: number | null,
  sizedScratch?: SizedScratch,
): Promise<void> {
  const { root, extensions: _, authority: __, keys, ...inner } = directories;
  await makeRoot(root, uid, sizedScratch);
  await makeExtensionDirectory(directories);
  await Promise.all(Object.values(inner).map((path: string) => makeOwned(path, uid)));
  await makeOwned(keys, uid);
}

async function makeRoot(path: string, uid: number | null, sizedScratch?: SizedScratch): Promise<void> {
  await mkdir(path, { mode: 0o700 });
  await sizedScratch?.mount(path);
  if (uid === null) return;
  await chown(path, -1, uid);
  await chmod(path, rootMode);
}

export async function makeExtensionDirectory({ extensions }: Directories): Promise<void> {
  await mkdir(extensions, { mode: 0o755 });
}

/** Makes one directory for its owner alone. */
export async function makeOwned(path: string, uid: number | null): Promise<void> {
  await mkdir(path, { mode: 0o700 });
  if (uid !== null) await lchown(path, uid, uid);
}

/** Two programs, and what is tried before, fit into the limit of whoever starts a browser again. */
const usualLimitMs: Millis = 6_000;

/**
 * Removes what a browser that has ended may have written to. A process that is just ending may still write,
 * so the removal is repeated.
 */
export const removeDirectory = (path: string): Promise<void> => remove(path, { limitMs: usualLimitMs });

type RemovalLimits = Parameters<typeof runProgram>[2];

async function remove(path: string, limits: RemovalLimits): Promise<void> {
  const failed = (cause: unknown): Error => {
    const why = limits.signal?.aborted ? "in time" : `(${errnoOf(cause) ?? "too much is in it"})`;
    return new Error(`${path} could not be removed ${why}`, { cause });
  };
  try {
    await removeSmall(path, limits);
  } catch (error) {
    const isWide = error instanceof TooManyEntries;
    if (!limits.signal?.aborted && (await removeByPrograms(path, limits, { isHurried: isWide }))) return;
    if (limits.signal?.aborted || !isWide) throw failed(error);
    // What was written while rm(1) was at work is little, and what it may not remove is told by its errno.
    await removeSmall(path, limits).catch((left: unknown) => Promise.reject(failed(left)));
  }
}

class TooManyEntries extends Error {}

/** Throws where there is too much for Node.js, or where it cannot remove it. */
async function removeSmall(path: string, { signal }: RemovalLimits): Promise<void> {
  const removing = async (): Promise<void> => {
    if (await hasManyEntries(path)) throw new TooManyEntries(`${path} has more than ${mostEntries} entries`);
    signal?.throwIfAborted();
    // It cannot be ended, and what is left of it ends with the process.
    await rm(path, { recursive: true, force: true, maxRetries: 5, retryDelay: 20 });
  };
  await (signal ? untilAborted(signal, removing()) : removing());
}

/**
 * Node.js removes all entries of a directory at once: 100,000 take it 200 MB, and nothing else is done for
 * more than a second meanwhile (Node.js 20.20). A thousand hold up the rest for some 10 ms, and a program
 * costs as much.
 */
const mostEntries = 1000;

/** Counts what lies below, and no further than it has to. */
async function hasManyEntries(path: string): Promise<boolean> {
  const directories = [path];
  let entries = 0;
  for (let at = directories.pop(); at !== undefined && entries <= mostEntries; at = directories.pop()) {
    const parent = at;
    // What cannot be read is for the removal to tell.
    const found = await firstEntries(parent).catch(() => []);
    entries += found.length;
    directories.push(...found.filter((each) => each.isDirectory()).map(({ name }) => join(parent, name)));
  }
  return entries > mostEntries;
}

async function firstEntries(path: string): Promise<readonly Dirent[]> {
  const found: Dirent[] = [];
  for await (const entry of await opendir(path)) if (found.push(entry) > mostEntries) break;
  return found;
}

/**
 * A browser may have put directories into each other until no path leads to the last, or, as the daemon's own
 * uid, have closed one to its owner. chmod(1) opens it again. Both programs go from directory to directory
 * without a path, follow no link below the one that they are given, and hold a part of a wide one at a time
 * (DECISIONS.md 61). They have the least priority, but for what is only wide: that is removed for whoever
 * waits, as Node.js would.
 */
async function removeByPrograms(
  path: string,
  limits: RemovalLimits,
  { isHurried }: { readonly isHurried: boolean },
): Promise<boolean> {
  const nice = isHurried ? undefined : await findTool("nice");
  const run = (...command: readonly string[]): ReturnType<typeof runProgram> => {
    const [program = "", ...args] = nice === undefined ? command : [nice, "-n", "19", ...command];
    return runProgram(program, args, limits);
  };
  const isDirectory = await lstat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );
  if (isDirectory) await run("chmod", "-R", "u+rwX", "--", path);
  return (await run("rm", "-rf", "--", path)).succeeded;
}

interface RootRemoval {
  readonly over: Promise<void>;
  /** Kills its programs. */
  readonly stop: AbortController;
}

/** The removals of browsers' roots that are under way, by their paths. */
const removals = new Map<string, RootRemoval>();

/** rm(1) removes nothing until it has come to the last directory: it needs its time at one go. */
const longestLimitMs: Millis = 30 * 60_000;

/**
 * Removes the root of a browser, which no other browser is given. A root that is a file system of its own is
 * unmounted as a whole, which costs less than to remove what is in it. The removal goes on after its caller
 * has given up, and whoever asks for it again joins it; `endRemovals` ends it.
 */
export async function removeRoot(path: string, sizedScratch?: SizedScratch): Promise<void> {
  await sizedScratch?.unmount(path);
  // Its uid may be another browser's before it is gone.
  await chmod(path, 0o700).catch(() => {});
  await (removals.get(path) ?? beginRemoval(path)).over;
}

function beginRemoval(path: string): RootRemoval {
  const stop = new AbortController();
  const over = remove(path, { limitMs: longestLimitMs, signal: stop.signal }).finally(() =>
    removals.delete(path),
  );
  const removal = { over, stop };
  removals.set(path, removal);
  return removal;
}

/** Ends the removals that are under way; what is left is the next start's. */
export async function endRemovals(): Promise<void> {
  for (const { stop } of removals.values()) stop.abort();
  await Promise.allSettled([...removals.values()].map(({ over }) => over));
}

/** Each level holds its directory open twice, so the depth is bounded. */
const mostDepth = 64;
const mostTries = 5;

/**
 * Empties a directory in which its browser may go on writing: each is held open and its entries are named
 * below that, so that nothing is removed through a link that takes the place of a directory just then. What
 * is written meanwhile may stay.
 */
export const emptyDirectory = (path: string): Promise<void> => emptyAt(path, 0);

/** Does what `emptyDirectory` does, and removes the directory itself. */
export async function removeTree(path: string): Promise<void> {
  for (let tries = 1; tries < mostTries; tries += 1) if (await removeAt(path, 0)) return;
  if (!(await removeAt(path, 0))) throw new Error("something is written into it again and again");
}

async function emptyAt(path: string, depth: number): Promise<void> {
  if (depth > mostDepth) throw new Error("directories lie too deep in each other");
  const held = await open(path, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW).catch(
    () => undefined,
  );
  if (held === undefined) return;
  try {
    const at = process.platform === "linux" ? `/proc/self/fd/${held.fd}` : path;
    for await (const { name } of await opendir(at)) await removeAt(join(at, name), depth + 1);
  } catch (error) {
    // Its browser may have removed it meanwhile.
    if (!isOneOf(error, "ENOENT")) throw error;
  } finally {
    await held.close();
  }
}

const isOneOf = (error: unknown, ...codes: readonly string[]): boolean =>
  codes.includes(errnoOf(error) ?? "");

/** False where something still writes into the directory. */
async function removeAt(path: string, depth: number): Promise<boolean> {
  // For a directory Linux answers EISDIR, other systems EPERM.
  const isDirectory = await unlink(path).then(
    () => false,
    (error: unknown) => !isOneOf(error, "ENOENT"),
  );
  if (!isDirectory) return true;
  await emptyAt(path, depth);
  return await rmdir(path).then(
    () => true,
    (error: unknown) => {
      if (!isOneOf(error, "ENOTEMPTY", "ENOENT", "ENOTDIR")) throw error;
      return isOneOf(error, "ENOENT");
    },
  );
}
