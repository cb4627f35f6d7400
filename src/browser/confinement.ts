/** The small programs that change what a process may do before it becomes Chromium. Absent ones are not used. */
export interface Tools {
  readonly setpriv?: string;
  readonly unshare?: string;
  readonly nsenter?: string;
  /** Of iproute2: sets up a network namespace. */
  readonly ip?: string;
}

/** A mount in a namespace of its own. */
export interface Mount {
  readonly source: string;
  readonly target: string;
  /** Who mounts: root before it gives up being root, or anybody as root of a user namespace made for it. */
  readonly by: "root" | "user-namespace";
}

/** What a process of a browser is put into before it starts. */
export interface Confinement {
  /** Null leaves it ours. */
  readonly uid: number | null;
  readonly mount?: Mount;
  /** Path of the network namespace it enters. */
  readonly network?: string;
  /** May it gain rights by a setuid program? Only Chromium's setuid sandbox needs that. */
  readonly mayGainRights: boolean;
}

/**
 * The command line that starts `command` so confined. Each program of the chain becomes the next one by exec, so the
 * pid is the same all along. Order matters: only root may enter a network namespace, and may open the daemon's handle on
 * it; root mounts with the rights that the uid takes away, a user namespace belongs to who makes it, and the kernel
 * forgets the parent-death signal when the uid changes (prctl(2)), so that one comes last. Throws where a network
 * namespace is asked for and cannot be entered: a browser must not run outside it.
 */
export function confined(tools: Tools, { network, ...confinement }: Confinement, command: readonly string[]): string[] {
  const inside = confinedWithin(tools, confinement, command);
  if (network === undefined) return inside;
  if (!tools.nsenter) throw new Error("nsenter is not installed, and a network namespace cannot be entered without it");
  return [tools.nsenter, `--net=${network}`, "--", ...inside];
}

function confinedWithin(tools: Tools, { uid, mount, mayGainRights }: Omit<Confinement, "network">, command: readonly string[]): string[] {
  if (!tools.setpriv) return [...command];
  const identity = uid === null ? [] : [tools.setpriv, "--reuid", `${uid}`, "--regid", `${uid}`, "--clear-groups", "--"];
  const rights = mayGainRights ? [] : ["--no-new-privs"];
  const death = [tools.setpriv, ...rights, "--pdeathsig", "SIGKILL", "--"];
  const { unshare } = tools;
  if (!mount || !unshare) return [...identity, ...death, ...command];
  return mount.by === "root"
    ? [unshare, ...apart, ...binding(mount), ...identity, ...death, ...command]
    : [...identity, unshare, "--user", "--map-root-user", ...apart, ...binding(mount), ...again(unshare, uid), ...death, ...command];
}

const apart = ["--mount", "--propagation", "private"];

const binding = ({ source, target }: Mount): string[] =>
  ["/bin/sh", "-c", 'mount -n --bind "$0" "$1" && shift && exec "$@"', source, target];

/** Chromium will not run as root, even of a namespace, so a second one gives it its uid back and takes every right away. */
function again(unshare: string, uid: number | null): string[] {
  const [user, group] = uid === null ? [process.getuid?.(), process.getgid?.()] : [uid, uid];
  return [unshare, "--user", `--map-user=${user}`, `--map-group=${group}`, "--"];
}
