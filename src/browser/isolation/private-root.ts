import { join } from "node:path";
import type { Directories } from "../chromium.js";
import { filterOptions } from "./syscall-filter.js";
import { etcOptions, parentDirectories, readOnlyBinds } from "./system-files.js";

/** A file of the daemon's that is shown in the place of an executable. */
export interface ShownCopy {
  /** The executable's path, without links. */
  readonly executable: string;
  readonly copy: string;
}

/** What one private root is made from; paths are the same inside and outside. */
export interface PrivateRoot {
  /** `root`: mounts in the initial user namespace, rights given up by setpriv(1) inside. */
  readonly form: "root" | "user-namespace";
  readonly proc: "own" | "container";
  /** No further user namespace can be made inside, so Chromium's own sandbox cannot be on. */
  readonly closesUserNamespaces: boolean;
  /** The host's files that all browsers see alike (`findSystemFiles`). */
  readonly system: readonly string[];
  /** What those with a display see besides. */
  readonly desktop: readonly string[];
  /** What every program needs (`findLibraries`). */
  readonly libraries: readonly string[];
  /** The directory with its /etc (`makeEtc`). */
  readonly etc: string;
  readonly directories: Directories;
  readonly executableCopy?: ShownCopy;
  /** The uid inside that maps to the daemon's own, where the namespace that it enters maps that to root. */
  readonly mappedUid?: number;
  /** Further programs that are shown, since they are started before Chromium. */
  readonly programs: readonly string[];
  /**
   * The path at which its policies are shown, such as `/etc/chromium/policies`; absent for headless-shell,
   * which has neither policies nor extensions.
   */
  readonly policies?: string;
  /** What lies beside the policies (`findFiles`), and hides the crash handler (`withoutCrashHandler`). */
  readonly configuration: readonly string[];
  /** The path of the filter of system calls. */
  readonly filter?: string;
  readonly hasDisplay: boolean;
  /** True shows the machine's own resolvers, for a browser that has no proxy to ask. */
  readonly resolvesNames: boolean;
}

/**
 * The size of `/dev/shm` and of `/tmp`; Chromium 156 keeps shared memory in memfd files, which only a
 * memory cap bounds.
 */
const scratchBytes = 64 * 2 ** 20;

/** Rights that setpriv(1) needs to give up all the others. */
const rightsToGiveUpRights = ["CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP"].flatMap((right) => [
  "--cap-add",
  right,
]);

const namespaces = [
  "--unshare-pid",
  "--unshare-ipc",
  "--unshare-uts",
  "--hostname",
  "browser",
  "--unshare-cgroup-try",
  // The process namespace ends with the daemon's thread, and everything in it, whatever its processes do.
  "--die-with-parent",
  "--new-session",
  "--cap-drop",
  "ALL",
];

function userNamespace({ form, mappedUid, closesUserNamespaces }: PrivateRoot): string[] {
  if (form === "root") return [];
  const mapped = mappedUid === undefined ? [] : ["--uid", `${mappedUid}`, "--gid", `${mappedUid}`];
  return ["--unshare-user", ...mapped, ...(closesUserNamespaces ? ["--disable-userns"] : [])];
}

const scratch = (path: string): string[] => ["--size", `${scratchBytes}`, "--perms", "1777", "--tmpfs", path];

const procOptions = (proc: PrivateRoot["proc"]): string[] =>
  proc === "own" ? ["--proc", "/proc"] : ["--bind", "/proc", "/proc"];

/**
 * What Chromium opens in /dev, and /dev/zero. `--dev` would make four mounts more, one for terminals. Both
 * random devices answer alike once the kernel is seeded (random(4), Linux 5.6).
 */
const devices = [
  ...["null", "zero", "urandom"].flatMap((name) => ["--dev-bind", `/dev/${name}`, `/dev/${name}`]),
  "--symlink",
  "urandom",
  "/dev/random",
];

/**
 * These are mounted before what lies below them; `closing` makes the root, with /dev, read-only after all
 * mounts are made.
 */
const base = (proc: PrivateRoot["proc"]): string[] => [
  ...procOptions(proc),
  "--perms",
  "0755",
  "--dir",
  "/dev",
  ...devices,
  ...scratch("/dev/shm"),
  ...scratch("/tmp"),
];
// A remount does not reach the mounts below it: what is mounted for writing stays writable.
const closing = ["--remount-ro", "/", "--chdir", "/"];

const writable = (paths: readonly string[]): string[] => paths.flatMap((path) => ["--bind", path, path]);

const ownDirectories = ({ profile, downloads, temporary, uploads, keys, root }: Directories): string[] => [
  ...parentDirectories([profile]),
  ...writable([profile, downloads, temporary]),
  ...readOnlyBinds([uploads]),
  "--symlink",
  keys,
  join(root, ".pki"),
];

function ofFullChromium({
  policies,
  configuration,
  directories: { root, extensions },
}: PrivateRoot): string[] {
  if (policies === undefined) return [];
  return [
    ...parentDirectories([policies]),
    ...configuration,
    "--ro-bind",
    join(root, "policy"),
    policies,
    // Chromium writes the index of an extension's rules beside its files, which are the daemon's.
    ...writable([extensions]),
  ];
}

/** The directory of displays' sockets, outside and inside. */
const displaySockets = "/tmp/.X11-unix";

/** The options of bwrap(1), to be followed by the command. */
export function privateRoot(wanted: PrivateRoot): string[] {
  const { form, proc, system, desktop, etc, directories, programs, filter } = wanted;
  const { hasDisplay, resolvesNames, executableCopy } = wanted;
  const display = [
    ...readOnlyBinds([directories.authority]),
    "--ro-bind",
    directories.display,
    displaySockets,
  ];
  return [
    ...userNamespace(wanted),
    ...namespaces,
    ...filterOptions(filter),
    ...(form === "root" ? rightsToGiveUpRights : []),
    ...base(proc),
    ...system,
    ...(hasDisplay ? desktop : []),
    ...etcOptions(etc),
    ...(resolvesNames ? ["--ro-bind-try", "/etc/resolv.conf", "/etc/resolv.conf"] : []),
    ...readOnlyBinds(programs),
    ...(executableCopy ? ["--ro-bind", executableCopy.copy, executableCopy.executable] : []),
    ...ownDirectories(directories),
    ...ofFullChromium(wanted),
    ...(hasDisplay ? display : []),
    ...closing,
  ];
}

/**
 * Does what `privateRoot` does for a program that works for clients of the browser: no network, and of files
 * the libraries and what is named, none of them writable.
 */
export function sidecarRoot(wanted: PrivateRoot, files: readonly string[]): string[] {
  const { form, proc, libraries, programs, filter } = wanted;
  const visible = [...programs, ...files];
  return [
    ...userNamespace(wanted),
    ...namespaces,
    ...filterOptions(filter),
    "--unshare-net",
    ...(form === "root" ? rightsToGiveUpRights : []),
    ...procOptions(proc),
    ...libraries,
    ...parentDirectories(visible),
    ...readOnlyBinds(visible),
    "--remount-ro",
    "/",
    "--chdir",
    "/",
  ];
}

/** Xvfb and what it starts: a shell, which starts the compiler of its keyboard map. */
export interface DisplayPrograms {
  readonly xvfb: string;
  readonly xkbcomp: string;
  readonly shell: string;
}

/**
 * Does what `privateRoot` does for the X server of one browser: every one is display 0, in a root of its own,
 * without a network.
 */
export function displayRoot(wanted: PrivateRoot, { xvfb, xkbcomp, shell }: DisplayPrograms): string[] {
  const { form, proc, system, desktop, etc, directories, programs, filter } = wanted;
  return [
    ...userNamespace({ ...wanted, closesUserNamespaces: false }),
    ...namespaces,
    ...filterOptions(filter),
    "--unshare-net",
    ...(form === "root" ? rightsToGiveUpRights : []),
    ...base(proc),
    ...system,
    ...desktop,
    ...etcOptions(etc),
    ...readOnlyBinds([...programs, xvfb, xkbcomp]),
    "--ro-bind",
    shell,
    "/usr/bin/sh",
    ...(system.includes("/bin") ? [] : ["--symlink", "usr/bin", "/bin"]),
    ...parentDirectories(["/var/lib/xkb"]),
    "--tmpfs",
    "/var/lib/xkb",
    ...parentDirectories([directories.authority]),
    "--bind",
    directories.display,
    displaySockets,
    ...readOnlyBinds([directories.authority]),
    ...closing,
  ];
}
