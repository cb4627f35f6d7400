import { createWriteStream, type WriteStream } from "node:fs";
import { type FileHandle, mkdir, open, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { errnoOf } from "../base/errno.js";

/** Only the daemon's own user may look. */
export const directoryMode = 0o700;
const fileMode = 0o600;

async function syncing(path: string, flags: string): Promise<void> {
  let handle: FileHandle | undefined;
  try {
    handle = await open(path, flags);
    await handle.sync();
  } finally {
    await handle?.close();
  }
}

/** A file's bytes outlive a loss of power. */
export const syncFile = (path: string): Promise<void> => syncing(path, "r+");

/** A directory's names outlive a loss of power. */
export const syncDirectory = (path: string): Promise<void> => syncing(path, "r");

/** Makes a file that `write` writes to its end. Where that fails, no file is left. */
export async function writeNewFile(path: string, write: (file: WriteStream) => Promise<void>): Promise<void> {
  const file = createWriteStream(path, { flags: "wx", mode: fileMode });
  const closed = new Promise<void>((resolve) => file.once("close", resolve));
  try {
    await write(file);
  } catch (error) {
    file.destroy();
    // It may still be being opened, and would be there after it was removed.
    await closed;
    if (errnoOf(error) !== "EEXIST") await rm(path, { force: true });
    throw error;
  }
}

/** Makes a directory and those above it; all of them are durable. */
export async function makeDurableDirectory(path: string): Promise<void> {
  const first = await mkdir(path, { recursive: true, mode: directoryMode });
  if (first === undefined) return;
  const stop = dirname(first);
  for (let at = path; ; at = dirname(at)) {
    await syncDirectory(at);
    if (at === stop || at === dirname(at)) return;
  }
}

export const isMissing = (error: unknown): boolean => errnoOf(error) === "ENOENT";
/** The two paths are on different file systems, or theirs knows no second name for a file. */
export const cannotLink = (error: unknown): boolean =>
  ["EXDEV", "EPERM", "ENOTSUP", "EMLINK", "ENOSYS"].includes(errnoOf(error) ?? "");

/** What `work` gives; undefined where the path it needs is not there. */
export async function unlessMissing<Value>(work: Promise<Value>): Promise<Value | undefined> {
  try {
    return await work;
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}
