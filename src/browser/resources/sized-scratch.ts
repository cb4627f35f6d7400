import { mkdir, rm, rmdir, statfs } from "node:fs/promises";
import { join } from "node:path";
import { mounts, mountsBelow } from "./mounts.js";

/** The most bytes, and the most files, below the directories of one browser. */
export interface ScratchLimits {
  readonly maxScratchBytes: number;
  readonly maxScratchFiles: number;
}

/**
 * Gives each browser's directories a file system in memory of their own, so that they can be filled and
 * nothing else.
 */
export interface SizedScratch {
  /** Mounts over an empty directory; its owner and mode have to be set afterwards. */
  mount(path: string): Promise<void>;
  /**
   * Removes the mount at once with all that is in it; what still uses it keeps it alive until it ends. Does
   * nothing where nothing is mounted.
   */
  unmount(path: string): Promise<void>;
}

/** The number by which statfs(2) names a tmpfs. */
const tmpfsType = 0x01021994;

/**
 * Undefined where the daemon may not mount, or where its scratch directory is on a disk: what browsers store
 * there would take memory instead. One trial says which.
 */
export async function findSizedScratch(
  scratch: string,
  { maxScratchBytes: bytes, maxScratchFiles: files }: ScratchLimits,
): Promise<SizedScratch | undefined> {
  const isInMemory = process.platform === "linux" && (await statfs(scratch)).type === tmpfsType;
  if (process.getuid?.() !== 0 || !isInMemory || mounts === undefined) return undefined;
  const { mountTmpfs, detach } = mounts;
  const options = `size=${bytes},nr_inodes=${files},mode=0700`;
  const sized: SizedScratch = {
    async mount(path) {
      if (!(await mountTmpfs(path, options)))
        throw new Error(`${path} could not be given a file system of its own`);
    },
    async unmount(path) {
      if (!(await detach(path)) && (await mountsBelow(path)).length > 0)
        throw new Error(`${path} could not be unmounted`);
    },
  };
  return (await isGranted(sized, join(scratch, "mount-trial"))) ? sized : undefined;
}

async function isGranted(sized: SizedScratch, path: string): Promise<boolean> {
  await sized.unmount(path);
  await rm(path, { recursive: true, force: true });
  await mkdir(path);
  try {
    await sized.mount(path);
    await sized.unmount(path);
    return true;
  } catch {
    return false;
  } finally {
    await rmdir(path).catch(() => {});
  }
}
