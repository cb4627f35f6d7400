import { execFile } from "node:child_process";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Context, Pod } from "./contexts.js";
import { isRoot } from "./programs.js";

/** The first id on the machine of a pod with a user namespace of its own, and how many it has. */
export const firstId = 1_000_000;
export const ownIds = [{ containerID: 0, hostID: firstId, size: 65_536 }];

const run = promisify(execFile);

/** What runtimes cover by default (OCI runtimes of Kubernetes 1.36; `procMount: Default`). */
export const processMasks = {
  maskedPaths: [
    "/proc/asound",
    "/proc/acpi",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/sys/firmware",
  ],
  readonlyPaths: ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"],
};

/** Why no container can be had here, if none can. */
export async function whyNoContainers(): Promise<string | undefined> {
  if (!isRoot) return "it takes root";
  const isThere = await run("crun", ["--version"]).then(
    () => true,
    () => false,
  );
  return isThere ? undefined : "crun is not installed";
}

/** The uid of the daemon, as this machine numbers it; undefined where it is the tier's user. */
export const rootIn = ({ rootWith }: Context): number | undefined => rootWith && firstId;

interface Contained {
  readonly context: Context;
  /** The daemon's, as this machine numbers it. */
  readonly uid: number;
  /** Where the bundle lies, and all that the program may write to. */
  readonly directory: string;
  /** With a /dev/shm like that of a pod of its overlay, and not the machine's. */
  readonly isPod: boolean;
  readonly command: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
}

/** Who the process is, and what it may: an ordinary user has nothing, and can gain nothing. */
function rightsOf({ rootWith }: Context, uid: number): object {
  const held = rootWith ?? [];
  const inside = rootWith ? 0 : uid;
  return {
    user: { uid: inside, gid: inside },
    capabilities: { bounding: held, effective: held, permitted: held, inheritable: [], ambient: [] },
    noNewPrivileges: rootWith === undefined,
  };
}

/** Devices of the container's own: root of a user namespace can make none in the machine's /dev. */
const ownDevices = [
  { destination: "/dev", type: "tmpfs", source: "tmpfs", options: ["nosuid", "mode=755", "size=65536k"] },
  // What others keep there stays within reach of the container, so that only a browser's own root hides it.
  { destination: "/dev/shm", type: "bind", source: "/dev/shm", options: ["bind", "rw"] },
];

const sharedMemory = ({ sharedMemoryBytes }: Pod): object => ({
  destination: "/dev/shm",
  type: "tmpfs",
  source: "tmpfs",
  options: ["nosuid", "nodev", "mode=1777", `size=${sharedMemoryBytes}`],
});

/** Gives the command that runs another in a container: on this machine's own root, read-only. */
export async function contained({
  context,
  uid,
  directory,
  isPod,
  command,
  environment,
}: Contained): Promise<string[]> {
  const bundle = join(directory, "bundle");
  await mkdir(join(bundle, "rootfs"), { recursive: true });
  await writeFile(
    join(bundle, "config.json"),
    JSON.stringify({
      ociVersion: "1.0.2",
      hostname: "pod",
      process: {
        terminal: false,
        args: command,
        cwd: "/",
        ...rightsOf(context, uid),
        env: Object.entries({ ...environment, TMPDIR: directory }).map(([name, value]) => `${name}=${value}`),
      },
      root: { path: "rootfs", readonly: true },
      mounts: [
        { destination: "/proc", type: "proc", source: "proc" },
        ...(context.rootWith ? ownDevices : []),
        ...(isPod && context.pod ? [sharedMemory(context.pod)] : []),
        { destination: directory, type: "bind", source: directory, options: ["bind", "rw"] },
      ],
      linux: {
        namespaces: ["pid", "mount", "ipc", "uts", ...(context.rootWith ? ["user"] : [])].map((type) => ({
          type,
        })),
        ...(context.rootWith && { uidMappings: ownIds, gidMappings: ownIds }),
        ...(context.isProcMasked && processMasks),
        ...(context.seccomp && { seccomp: context.seccomp }),
      },
    }),
  );
  // The machine's own /proc, though covered, would let the kernel mount further ones, as it does in no pod.
  const place = `mount --rbind / "$0/rootfs" && umount -R -l "$0/rootfs/proc" && umount -l "$0/rootfs/sys/fs/cgroup"`;
  return crunIn(bundle, place);
}

let started = 0;
/**
 * Gives the command that runs a bundle whose root is put in place first. crun 1.8 refuses a hierarchy of both
 * versions of cgroups, so it is shown the second alone, in a mount namespace that goes with it.
 */
export function crunIn(bundle: string, place: string): string[] {
  started += 1;
  const script = `${place} && umount -R -l /sys/fs/cgroup && mount -t cgroup2 none /sys/fs/cgroup &&
    exec crun --cgroup-manager=disabled --root "$0/state" run --pid-file "$0/pid" --bundle "$0" "$1"`;
  const name = `prove-${process.pid}-${started}-${Date.now()}`;
  return ["unshare", "--mount", "--propagation", "private", "--", "sh", "-c", script, bundle, name];
}

/** The first process of the container that has this directory, seen from outside. */
export const pidIn = async (directory: string): Promise<number> =>
  Number(await readFile(join(directory, "bundle/pid"), "utf8"));
