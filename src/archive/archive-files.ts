import { createWriteStream, type WriteStream } from "node:fs";
import { rm } from "node:fs/promises";
import { errnoOf } from "../base/errno.js";

/** Only the daemon's own user may read it. */
const fileMode = 0o600;

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
