import { mkdir, readFile, rm, rmdir, statfs } from "node:fs/promises";
import { join } from "node:path";
import { findTool } from "./executable.js";
import type { BrowserLimits } from "./limits.js";
import { run } from "./run.js";

/** Gives each browser's directories a file system in memory of their own, so that they can be filled and nothing else. */
export interface SizedScratch {
  /** Over an empty directory; its owner and mode are to be set afterwards. */
  mount(path: string): Promise<void>;
  /** With all that is in it, and at once: what still uses it keeps it alive until it ends. Fine where nothing is mounted. */
  unmount(path: string): Promise<void>;
}

/** statfs(2) calls tmpfs so. */
const tmpfsType = 0x01021994;
const limitMs = 5_000;

/**
 * Undefined where the daemon may not mount, or where its scratch directory is on a disk: what browsers store there would take
 * memory instead. One trial says which.
 */
export async function findSizedScratch(
  scratch: string, { maxScratchBytes: bytes, maxScratchFiles: files }: Pick<BrowserLimits, "maxScratchBytes" | "maxScratchFiles">,
): Promise<SizedScratch | undefined> {
  const [mounting, unmounting] = await Promise.all([findTool("mount"), findTool("umount")]);
  const isInMemory = process.platform === "linux" && (await statfs(scratch)).type === tmpfsType;
  if (process.getuid?.() !== 0 || !isInMemory || mounting === undefined || unmounting === undefined) return undefined;
  const options = `size=${bytes},nr_inodes=${files},mode=0700,nosuid,nodev`;
  const sized: SizedScratch = {
    async mount(path) {
      const { succeeded } = await run(mounting, ["-n", "-t", "tmpfs", "-o", options, "remuda", path], limitMs);
      if (!succeeded) throw new Error(`${path} could not be given a file system of its own`);
    },
    async unmount(path) {
      const { succeeded } = await run(unmounting, ["-n", "-l", path], limitMs);
      if (!succeeded && (await mountsBelow(path)).length > 0) throw new Error(`${path} could not be unmounted`);
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

/** Unmounts what a killed daemon has left, whether or not this one mounts any. */
export async function unmountBelow(scratch: string): Promise<void> {
  const unmounting = await findTool("umount");
  for (const point of await mountsBelow(scratch)) {
    const { succeeded } = await run(unmounting ?? "umount", ["-n", "-l", point], limitMs);
    if (!succeeded) throw new Error(`${point} could not be unmounted`);
  }
}

/** Mount points at a path and below it, such as a killed daemon leaves. */
export async function mountsBelow(path: string): Promise<string[]> {
  const lines = (await readFile("/proc/self/mountinfo", "utf8").catch(() => "")).split("\n");
  // The fifth field, in which proc(5) writes spaces as \040; no path of ours has any.
  const points = lines.map((line) => line.split(" ")[4] ?? "");
  return points.filter((point) => point === path || point.startsWith(`${path}/`));
}
