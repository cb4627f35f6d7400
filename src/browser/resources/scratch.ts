import { createHash } from "node:crypto";
import {
  access,
  constants,
  lstat,
  mkdir,
  readdir,
  readFile,
  rename,
  rm,
  rmdir,
  statfs,
  writeFile,
} from "node:fs/promises";
import { basename, join } from "node:path";
import { errnoOf } from "../../base/errno.js";
import { isWorkspaceName, removeDirectory } from "../directories.js";
import { unmountBelow } from "./mounts.js";

export const sharedMemory = "/dev/shm";
export const onDisk = "/var/tmp";
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
  const last = await findLast(dataDirectory);
  return [...new Set([...usual, ...(last === "" ? [] : [last])])];
}

/** Empty where none was written down. */
const findLast = (dataDirectory: string): Promise<string> =>
  readFile(join(dataDirectory, lastFile), "utf8").then(
    (text) => text.trim(),
    () => "",
  );

const lastFile = "scratch-directory";

/**
 * Writes down where the scratch directory is, for a later start whose setting names another. The note lies in
 * the daemon's own directory, so it is trusted.
 */
export async function keepScratchDirectory(dataDirectory: string, path: string): Promise<void> {
  await mkdir(dataDirectory, { recursive: true, mode: 0o700 });
  // A disk that is full takes nothing, and keeps what is the same as ever from no start.
  if ((await findLast(dataDirectory)) === path) return;
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

export const isThere = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  );

/**
 * Names the cgroup of the daemon that has this scratch directory, and of no other: two on one machine may
 * have the same last part.
 */
export const cgroupNameOf = (scratch: string): string =>
  `${basename(scratch)}-${createHash("sha256").update(scratch).digest("hex").slice(0, 8)}`;

/** The name is one that nobody else gives a file: it is made, and removed, beside files of others too. */
export const lockName = "remuda.lock";
/** What daemons put into it beside the workspaces of browsers and the lock. */
const besideWorkspaces: readonly string[] = [
  "etc",
  "cgroup-tops",
  "cgroup-tops.new",
  "mount-trial",
  "executables",
];
export const isOfDaemons = (name: string): boolean =>
  isWorkspaceName(name) || besideWorkspaces.includes(name) || name === lockName;

/**
 * The filter of system calls and its draft, and uids, behind which `makeEtc` puts a few digits for a moment.
 */
const inEtc = /^(?:calls\.bpf(?:\.new)?|\d+(?:-[0-9a-f]{8})?)$/;

/** What fsck(8) has found, and what NFS and FUSE make of a removed file that is still open. */
const ofFileSystem = /^(?:lost\+found$|\.nfs|\.fuse_hidden)/;

/** Lists what no daemon has put into a directory. `mkfs` makes `lost+found` where a disk is mounted. */
export async function foreignIn(path: string): Promise<readonly string[]> {
  const names = (await readdir(path)).filter((name) => !isOfDaemons(name) && !ofFileSystem.test(name));
  const others = (await readdir(join(path, "etc")).catch(() => [])).filter((name) => !inEtc.test(name));
  return [...names, ...others.map((name) => join("etc", name))];
}

/**
 * Removes what daemons put into a scratch directory, and the directory where that leaves it empty and no disk
 * is mounted there. The lock goes last: from then on another daemon may have the directory.
 */
export async function removeScratch(path: string): Promise<void> {
  const names = await readdir(path).catch((error: unknown) => {
    if (errnoOf(error) === "ENOENT") return [];
    throw error;
  });
  await unmountBelow(path, isOfDaemons);
  const removed = names.filter((name) => isOfDaemons(name) && name !== lockName);
  await Promise.all(removed.map((name) => removeDirectory(join(path, name))));
  await removeLock(path);
  await rmdir(path).catch(() => {});
}

/** Has to be called while it is held, for afterwards it may be another daemon's. */
export const removeLock = (path: string): Promise<void> => rm(join(path, lockName), { force: true });

const topsFile = (scratch: string): string => join(scratch, "cgroup-tops");

/**
 * Lists where daemons of this directory have had their cgroups since the last sweep, so that the next sweep
 * finds them.
 */
export async function cgroupTopsOf(scratch: string): Promise<readonly string[]> {
  const text = await readFile(topsFile(scratch), "utf8").catch(() => "");
  return text.split("\n").filter((line) => line !== "");
}

export async function rememberTops(scratch: string, tops: readonly string[]): Promise<void> {
  const earlier = await cgroupTopsOf(scratch);
  await keepCgroupTops(scratch, [...new Set([...earlier, ...tops])]);
}

export async function keepCgroupTops(scratch: string, tops: readonly string[]): Promise<void> {
  const path = topsFile(scratch);
  if (tops.length === 0) return rm(path, { force: true });
  // Whole or not at all: on a full disk the earlier list stays.
  const draft = `${path}.new`;
  await writeFile(draft, tops.map((top) => `${top}\n`).join(""), { mode: 0o600 });
  await rename(draft, path);
}
