import { constants } from "node:fs";
import { open, rm } from "node:fs/promises";

/**
 * The text of a file where a browser may write. Undefined where there is none, or something else in its
 * place: a link, a pipe that would hold up whoever opens it, or more than `mostBytes`.
 */
export async function findForeignText(
  path: string,
  mostBytes: number,
  encoding: BufferEncoding = "utf8",
): Promise<string | undefined> {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch(
    () => undefined,
  );
  if (file === undefined) return undefined;
  try {
    const found = await file.stat();
    if (!found.isFile() || found.nlink > 1 || found.size > mostBytes) return undefined;
    return await file.readFile(encoding);
  } catch {
    return undefined;
  } finally {
    await file.close();
  }
}

/**
 * Makes a file for its owner alone where a browser may write. What was there before goes, and no link is
 * written through.
 */
export async function putForeignFile(
  path: string,
  content: string | Buffer,
  uid: number | null,
): Promise<void> {
  await rm(path, { recursive: true, force: true });
  const file = await open(
    path,
    constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW,
    0o600,
  );
  try {
    await file.writeFile(content);
    if (uid !== null) await file.chown(uid, uid);
  } finally {
    await file.close();
  }
}
