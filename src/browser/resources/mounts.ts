import { readFile } from "node:fs/promises";
import { promisify } from "node:util";

/**
 * The calls of mount(2) and umount(2) that browsers' directories need. Each says whether the kernel has done
 * it.
 */
interface Mounts {
  /** A file system in memory over a directory; `options` as of tmpfs(5). */
  mountTmpfs(path: string, options: string): Promise<boolean>;
  /** Detaches at once; what still uses the mount keeps it alive until it ends. */
  detach(path: string): Promise<boolean>;
}

// These values are those of the kernel's headers, and equal on all architectures.
const nosuid = 2;
const nodev = 4;
const detachFlag = 2;

/**
 * Undefined where koffi has no build for this platform. A program per mount would cost a launch some 5 ms.
 */
export const mounts: Mounts | undefined = await import("koffi").then(
  ({ default: koffi }) => {
    const library = koffi.load(null);
    const mount = promisify<string, string, string, number, string, number>(
      library.func(
        "int mount(const char *source, const char *target, const char *type, unsigned long flags, const char *options)",
      ).async,
    );
    const umount = promisify<string, number, number>(
      library.func("int umount2(const char *target, int flags)").async,
    );
    return {
      mountTmpfs: async (path, options) =>
        (await mount("remuda", path, "tmpfs", nosuid + nodev, options)) === 0,
      detach: async (path) => (await umount(path, detachFlag)) === 0,
    };
  },
  () => undefined,
);

/**
 * Unmounts what a killed daemon has left, whether or not this one mounts any: in what has a name that
 * `isOwn` knows. An operator may have mounted disks elsewhere in the directory, or the directory itself.
 */
export async function unmountBelow(scratch: string, isOwn: (name: string) => boolean): Promise<void> {
  // What is mounted in another mount stands after it.
  for (const point of (await mountsBelow(scratch)).toReversed()) {
    const [name = ""] = point.slice(scratch.length + 1).split("/", 1);
    if (!isOwn(name)) continue;
    if (!(await mounts?.detach(point))) throw new Error(`${point} could not be unmounted`);
  }
}

/** Mount points at a path and below it, such as a killed daemon leaves. */
export async function mountsBelow(path: string): Promise<string[]> {
  const lines = (await readFile("/proc/self/mountinfo", "utf8").catch(() => "")).split("\n");
  // The fifth field, in which proc(5) writes spaces as \040; no path of ours has any.
  const points = lines.map((line) => line.split(" ")[4] ?? "");
  return points.filter((point) => point === path || point.startsWith(`${path}/`));
}
