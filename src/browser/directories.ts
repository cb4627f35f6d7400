import { chown, mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type { BrowserId } from "../base/ids.js";
import type { Directories } from "./chromium.js";

/**
 * The directories of one browser under `scratch`. `root` is the browser's HOME, and `downloads` the place Chromium
 * itself would choose under it, so that a download lands there also when no CDP command names a place.
 */
export function directoriesOf(scratch: string, browser: BrowserId): Directories {
  const root = join(scratch, browser);
  return {
    root,
    profile: join(root, "profile"),
    extensions: join(root, "extensions"),
    downloads: join(root, "Downloads"),
    uploads: join(root, "uploads"),
    temporary: join(root, "tmp"),
  };
}

/** Makes them, readable by their owner alone. `uid` null leaves them ours; extensions are ours in any case, and the browser may read them. */
export async function makeDirectories(directories: Directories, uid: number | null): Promise<void> {
  const { root, extensions: _, ...inner } = directories;
  await makeOwned(root, uid);
  await makeExtensionDirectory(directories);
  await Promise.all(Object.values(inner).map((path: string) => makeOwned(path, uid)));
}

export async function makeExtensionDirectory({ extensions }: Directories): Promise<void> {
  await mkdir(extensions, { mode: 0o755 });
}

/** Makes one directory for its owner alone. */
export async function makeOwned(path: string, uid: number | null): Promise<void> {
  await mkdir(path, { mode: 0o700 });
  if (uid !== null) await chown(path, uid, uid);
}

/** A process that is just ending may still write, so the removal is repeated. */
export const removeDirectory = (path: string): Promise<void> =>
  rm(path, { recursive: true, force: true, maxRetries: 5, retryDelay: 20 });

export async function emptyDirectory(path: string): Promise<void> {
  const names = await readdir(path).catch(() => []);
  await Promise.all(names.map((name) => removeDirectory(join(path, name))));
}
