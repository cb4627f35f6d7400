import { execFile } from "node:child_process";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import type { RungName } from "../../../src/spec/bodies.js";
import { isRoot } from "./programs.js";

/** A security context as a pod has it: the system calls allowed, and whether parts of /proc are covered. */
export interface Context {
  readonly name: string;
  readonly seccomp?: object;
  readonly isProcMasked: boolean;
  /**
   * What docs/isolation.md, In containers, says of browsers in it; on the rung `none` nothing is launched.
   */
  readonly expected: { readonly rung: RungName; readonly network: "namespace" | "none" };
  /** It lies in the repository for operators to use, so everything is tried in it. */
  readonly isShipped?: true;
}

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

/** CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET. */
const namespaceFlags = 0x7e020000;
/** Models how containerd's default profile judges a container without capabilities. */
const runtimeDefault = {
  defaultAction: "SCMP_ACT_ALLOW",
  syscalls: [
    {
      names: [
        "unshare",
        "setns",
        "chroot",
        "mount",
        "umount",
        "umount2",
        "pivot_root",
        "sethostname",
        "setdomainname",
        "mount_setattr",
        "move_mount",
        "open_tree",
        "fsopen",
        "fsmount",
        "fsconfig",
        "fspick",
        "bpf",
        "perf_event_open",
        "init_module",
        "finit_module",
        "delete_module",
        "kexec_load",
        "reboot",
        "swapon",
        "swapoff",
        "acct",
        "quotactl",
        "syslog",
        "open_by_handle_at",
        "keyctl",
        "add_key",
        "request_key",
        "userfaultfd",
      ],
      action: "SCMP_ACT_ERRNO",
      errnoRet: 1,
    },
    {
      names: ["clone"],
      action: "SCMP_ACT_ERRNO",
      errnoRet: 1,
      args: [{ index: 0, value: namespaceFlags, valueTwo: 0x10000000, op: "SCMP_CMP_MASKED_EQ" }],
    },
    // ENOSYS makes the C library fall back to clone, whose flags can be judged.
    { names: ["clone3"], action: "SCMP_ACT_ERRNO", errnoRet: 38 },
  ],
};

/**
 * Every context that can be tried: none, the runtime's default, and the profiles that lie in the directory.
 */
export async function findContexts(directory: string): Promise<readonly Context[]> {
  const files = (await readdir(directory)).filter((name) => /^seccomp.*\.json$/.test(name));
  if (files.length === 0) throw new Error(`${directory} has no profile of seccomp`);
  const shipped = await Promise.all(
    files.map(async (name) => ({
      name: `k8s/${name}`,
      seccomp: JSON.parse(await readFile(join(directory, name), "utf8")) as object,
      isProcMasked: true,
      isShipped: true as const,
      expected: { rung: "shared-proc", network: "namespace" } as const,
    })),
  );
  return [
    {
      name: "no seccomp, /proc unmasked",
      isProcMasked: false,
      expected: { rung: "user-namespace", network: "namespace" },
    },
    {
      name: "no seccomp, /proc masked",
      isProcMasked: true,
      expected: { rung: "shared-proc", network: "namespace" },
    },
    ...shipped,
    {
      name: "runtime's default",
      seccomp: runtimeDefault,
      isProcMasked: true,
      expected: { rung: "none", network: "none" },
    },
  ];
}

/** Why no container can be had here, if none can. */
export async function whyNoContainers(): Promise<string | undefined> {
  if (!isRoot) return "it takes root";
  const isThere = await run("crun", ["--version"]).then(
    () => true,
    () => false,
  );
  return isThere ? undefined : "crun is not installed";
}

interface Contained {
  readonly context: Context;
  readonly uid: number;
  /** Where the bundle lies, and all that the program may write to. */
  readonly directory: string;
  readonly command: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
}

/**
 * Gives the command that runs another in a container: on this machine's own root, read-only, without any
 * capability.
 */
export async function contained({
  context,
  uid,
  directory,
  command,
  environment,
}: Contained): Promise<string[]> {
  const bundle = join(directory, "bundle");
  await mkdir(join(bundle, "rootfs"), { recursive: true });
  const none = { bounding: [], effective: [], permitted: [], inheritable: [], ambient: [] };
  await writeFile(
    join(bundle, "config.json"),
    JSON.stringify({
      ociVersion: "1.0.2",
      hostname: "pod",
      process: {
        terminal: false,
        user: { uid, gid: uid },
        args: command,
        cwd: "/",
        capabilities: none,
        noNewPrivileges: true,
        env: Object.entries({ ...environment, TMPDIR: directory }).map(([name, value]) => `${name}=${value}`),
      },
      root: { path: "rootfs", readonly: true },
      mounts: [
        { destination: "/proc", type: "proc", source: "proc" },
        { destination: directory, type: "bind", source: directory, options: ["bind", "rw"] },
      ],
      linux: {
        namespaces: ["pid", "mount", "ipc", "uts"].map((type) => ({ type })),
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
