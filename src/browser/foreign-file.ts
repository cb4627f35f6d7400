import { constants } from "node:fs";
import { open, rm, writeFile } from "node:fs/promises";

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
  await rm(path, { recursive: true, force: true });
  const file = await open(
    path,
    constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW,
    0o600,
  );
  try {
    await writeFile(file, content);
    if (uid !== null) await file.chown(uid, uid);
  } finally {
    await file.close();
  }
}
