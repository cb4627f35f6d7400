import { createHash } from "node:crypto";
import {
  access,
  chmod,
  constants,
  lstat,
  mkdir,
  readFile,
  realpath,
  rename,
  statfs,
  writeFile,
} from "node:fs/promises";
import { basename, dirname, join } from "node:path";

const sharedMemory = "/dev/shm";
const onDisk = "/var/tmp";
/** A profile takes about 2 MiB; caches, downloads and shared memory take the rest. */
const roomyBytes = 2 ** 30;

/** Gives each data directory of this machine a name of its own. */
const scratchName = (dataDirectory: string): string =>
  `remuda-${createHash("sha256").update(dataDirectory).digest("hex").slice(0, 12)}`;

/**
 * Chooses where the browsers of a data directory's daemon live: in memory where there is much of it (a
 * quarter faster to launch, docs/chromium.md#launch). Never in the data directory: that may be closed to
 * browsers with uids of their own, and its path be too long.
 */
export async function findScratchDirectory(dataDirectory: string): Promise<string> {
  const isWritable = await access(sharedMemory, constants.W_OK).then(
    () => true,
    () => false,
  );
  const room = isWritable
    ? await statfs(sharedMemory).then(
        ({ bavail, bsize }) => bavail * bsize,
        () => 0,
      )
    : 0;
  return join(room >= roomyBytes ? sharedMemory : onDisk, scratchName(dataDirectory));
}

/**
 * Finds every directory that `findScratchDirectory` may have chosen at an earlier start, and the last one in
 * use.
 */
export async function scratchDirectoriesOf(dataDirectory: string): Promise<readonly string[]> {
  const usual = [sharedMemory, onDisk].map((place) => join(place, scratchName(dataDirectory)));
  const last = await readFile(join(dataDirectory, lastFile), "utf8").then(
    (text) => text.trim(),
    () => "",
  );
  return [...new Set([...usual, ...(last === "" ? [] : [last])])];
}

const lastFile = "scratch-directory";

/**
 * Writes down where the scratch directory is, for a later start whose setting names another. The note lies in
 * the daemon's own directory, so it is trusted.
 */
export async function keepScratchDirectory(dataDirectory: string, path: string): Promise<void> {
  await mkdir(dataDirectory, { recursive: true, mode: 0o700 });
  const draft = join(dataDirectory, `${lastFile}.new`);
  await writeFile(draft, `${path}\n`, { mode: 0o600 });
  await rename(draft, join(dataDirectory, lastFile));
}

/** True where the directory is ours: anybody may have made one of that name. */
export const isOurs = (path: string): Promise<boolean> =>
  lstat(path).then(
    (found) => found.isDirectory() && found.uid === process.getuid?.(),
    () => false,
  );

/**
 * Chromium makes a socket at `<scratch>/<workspace, 14
 * bytes>/tmp/org.chromium.Chromium.XXXXXX/SingletonSocket` and aborts where that is longer than a socket's
 * path may be: 107 bytes on Linux, 103 on macOS (unix(7)).
 */
const mostPathBytes = (process.platform === "linux" ? 107 : 103) - 70;

/**
 * Makes the scratch directory, in which browsers can reach their own directory and list no other. Refuses one
 * that is not ours: everybody may write to `/dev/shm`, so another user might have made it first.
 */
export async function makeScratchDirectory(path: string): Promise<void> {
  if (Buffer.byteLength(path) > mostPathBytes) {
    throw new Error(
      `the scratch directory ${path} has a path of more than ${mostPathBytes} bytes, which Chromium cannot use`,
    );
  }
  const why = await whyUnusable(path);
  if (why !== undefined) throw new Error(`the scratch directory ${path} ${why}`);
  await mkdir(path, { recursive: true });
  if (!(await isOurs(path))) throw new Error(`${path} belongs to somebody else`);
  await chmod(path, 0o711);
}

/**
 * Names the cgroup of the daemon that has this scratch directory, and of no other: two on one machine may
 * have the same last part.
 */
export const cgroupNameOf = (scratch: string): string =>
  `${basename(scratch)}-${createHash("sha256").update(scratch).digest("hex").slice(0, 8)}`;

/**
 * Kernel file systems hold no files of others; recursive mkdir(2) of Node.js 20 never returns below /proc.
 */
const ofKernel = ["/proc", "/sys", "/dev"];
const isBelow = (path: string, place: string): boolean => path === place || path.startsWith(`${place}/`);

async function whyUnusable(path: string): Promise<string | undefined> {
  const real = await settledPath(path);
  const place = ofKernel.find((each) => isBelow(real, each));
  const isInMemory = real !== sharedMemory && isBelow(real, sharedMemory);
  return place === undefined || isInMemory ? undefined : `is in ${place}, where browsers can keep no files`;
}

/** Follows the links in as much of a path as exists. */
async function settledPath(path: string): Promise<string> {
  const real = await realpath(path).catch(() => undefined);
  if (real !== undefined || dirname(path) === path) return real ?? path;
  return join(await settledPath(dirname(path)), basename(path));
}

/** What daemons put into it beside the workspaces of browsers. */
export const besideWorkspaces = ["etc", "cgroup-tops", "mount-trial", "executables"] as const;
const topsFile = (scratch: string): string => join(scratch, "cgroup-tops");

/**
 * Lists where daemons of this directory have had their cgroups since the last sweep, so that the next sweep
 * finds them.
 */
export async function cgroupTopsOf(scratch: string): Promise<readonly string[]> {
  const text = await readFile(topsFile(scratch), "utf8").catch(() => "");
  return text.split("\n").filter((line) => line !== "");
}

export const keepCgroupTops = (scratch: string, tops: readonly string[]): Promise<void> =>
  writeFile(topsFile(scratch), tops.map((top) => `${top}\n`).join(""), { mode: 0o600 });
