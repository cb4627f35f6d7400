import { constants } from "node:fs";
import { open, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { removeTree } from "./directories.js";

export async function findForeignText(
  path: string,
  mostBytes: number,
  encoding: BufferEncoding = "utf8",
): Promise<string | undefined> {
  return (await findForeignFile(path, mostBytes))?.toString(encoding);
}

/**
 * Reads a file where a browser may write. Undefined where there is none, or something else stands in its
 * place: a link, a pipe that would hold up whoever opens it, or more than `mostBytes`.
 */
export async function findForeignFile(path: string, mostBytes: number): Promise<Buffer | undefined> {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch(
    () => undefined,
  );
  if (file === undefined) return undefined;
  try {
    const found = await file.stat();
    if (!found.isFile() || found.nlink > 1 || found.size > mostBytes) return undefined;
    return await file.readFile();
  } catch {
    return undefined;
  } finally {
    await file.close();
  }
}

/**
 * Makes a file, for its owner alone, where a browser may write. It replaces what was there before, and writes
 * through no link.
 */
export async function putForeignFile(
  path: string,
  content: string | Buffer | AsyncIterable<string>,
  uid: number | null,
): Promise<void> {
  await inPlace(path, async (at) => {
    await removeTree(at);
    const file = await open(
      at,
      constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW,
      0o600,
    );
    try {
      await writeFile(file, content);
      if (uid !== null) await file.chown(uid, uid);
    } finally {
      await file.close();
    }
  });
}

/** Removes whatever a browser has put there, and follows no link. */
export const removeForeignFile = (path: string): Promise<void> => inPlace(path, removeTree);

/**
 * Its browser may live, and put a link in the place of the directory at any time: that is held open
 * meanwhile, and the file is found by it.
 */
async function inPlace(path: string, work: (at: string) => Promise<void>): Promise<void> {
  const directory = await open(
    dirname(path),
    constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW,
  );
  try {
    const held = process.platform === "linux" ? `/proc/self/fd/${directory.fd}` : dirname(path);
    await work(join(held, basename(path)));
  } finally {
    await directory.close();
  }
}
