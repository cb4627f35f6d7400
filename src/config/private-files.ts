import { chmod, stat } from "node:fs/promises";
import { join } from "node:path";
import { errnoOf } from "../base/errno.js";
import { CannotStart } from "../base/cannot-start.js";

/**
 * What holds secrets of this daemon, or all it knows: keys, the private Redis with its socket and file,
 * archives of profiles.
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
 * Takes the rights of the group and of others from the data directory and from what holds secrets in it,
 * which a browser's uid must not read. Gives the paths it mended. Throws where it may not mend them; except
 * that a directory may be open to its group where it is not ours, as one that Kubernetes gives with an
 * fsGroup: the files in it are closed none the less.
 */
export async function closeToOthers(dataDir: string): Promise<readonly string[]> {
  const inner = [...secretFiles, ...privateDirectories].map((name) => join(dataDir, name));
  const mended: string[] = [];
  for (const path of [dataDir, ...inner]) {
    if (await close(path)) mended.push(path);
  }
  return mended;
}

/** Returns whether the mode had to be mended. */
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
