import { chmod, stat } from "node:fs/promises";
import { join } from "node:path";
import { errnoOf } from "../base/errno.js";
import { CannotStart } from "../base/cannot-start.js";

/**
 * The files of the data directory that hold this daemon's secrets, or everything it knows: keys, the private
 * Redis with its socket and file, archives of profiles.
 */
const secretFiles = ["api-key", "cluster-secret", "encryption-key"];
const privateDirectories = ["redis", "archives"];

const groupAndOthers = 0o077;
const others = 0o007;

class DataDirectoryOpen extends CannotStart {
  constructor(path: string, mode: number) {
    super(
      `${path} may be entered or read by other users (mode ${mode.toString(8)}), and this user may not change that: chmod go-rwx it`,
    );
  }
}

/**
 * Closes the data directory, and the files in it that hold secrets, to the group and to others: a browser's
 * uid must not read them. Gives the paths that it mended, and throws where it may not mend one. A directory
 * that belongs to somebody else may stay open to its group, as one does that Kubernetes gives with an
 * fsGroup; the files in it are closed nevertheless.
 */
export async function closeToOthers(dataDir: string): Promise<readonly string[]> {
  const inner = [...secretFiles, ...privateDirectories].map((name) => join(dataDir, name));
  const mended: string[] = [];
  for (const path of [dataDir, ...inner]) {
    if (await close(path)) mended.push(path);
  }
  return mended;
}

/** True where the mode had to be mended. */
async function close(path: string): Promise<boolean> {
  const found = await stat(path).catch((error: unknown) => ifAbsent(error));
  if (!found || (found.mode & groupAndOthers) === 0) return false;
  try {
    await chmod(path, found.mode & 0o700);
    return true;
  } catch {
    if (found.isDirectory() && (found.mode & others) === 0) return false;
    throw new DataDirectoryOpen(path, found.mode & 0o777);
  }
}

function ifAbsent(error: unknown): undefined {
  if (errnoOf(error) === "ENOENT") return undefined;
  throw error;
}
