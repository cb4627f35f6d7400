import { createHash } from "node:crypto";
import { availableParallelism, networkInterfaces, tmpdir, totalmem } from "node:os";
import { join, resolve } from "node:path";
import { overlap } from "../base/files/paths.js";
import type { ConfigFile } from "./schema.js";
import { type Compiled, compile } from "./compile.js";

/** The settings that the file may leave open, since this machine decides them. */
interface MachineSettings {
  readonly dataDir: string;
  readonly node: {
    readonly memoryBytes: number;
    readonly parallelLaunches: number;
    readonly scratchDir: string | null;
  };
  readonly drain: { readonly limitMs: number };
  readonly archives: { readonly directory: string };
  readonly egress: { readonly privateHostsCeiling: readonly string[] };
}

/** The same sections after this machine has decided: their settings are no longer null. */
export type ResolvedConfig = Omit<Compiled<ConfigFile>, keyof MachineSettings> & {
  readonly [Key in "node" | "drain" | "archives" | "egress"]: Omit<
    Compiled<ConfigFile>[Key],
    keyof MachineSettings[Key]
  > &
    MachineSettings[Key];
} & Pick<MachineSettings, "dataDir">;

// A container's limit counts. Without one it is 0, or more than any machine has (Node.js 20.20).
function machineMemoryBytes(): number {
  const limit = process.constrainedMemory();
  return limit > 0 ? Math.min(limit, totalmem()) : totalmem();
}

/**
 * Names a temporary directory that belongs to one data directory: always the same, short enough for a unix
 * socket, and where other uids can reach it.
 */
export const temporaryName = (dataDir: string, purpose: string): string =>
  join(tmpdir(), `remuda-${createHash("sha256").update(dataDir).digest("hex").slice(0, 10)}-${purpose}`);

const drainLimits = { all: 0, control: 0, node: 540_000, operator: 0 } as const;

export function resolveConfig(file: ConfigFile, packageRoot: string): ResolvedConfig {
  const compiled = compile(file);
  const dataDir = resolve(packageRoot, file.data_dir ?? ".remuda");
  const { node, drain, archives, egress, redis } = compiled;
  const placeOf = (path: string | null): string | null => path && resolve(packageRoot, path);
  return {
    ...compiled,
    dataDir,
    node: {
      ...node,
      memoryBytes: node.memoryBytes ?? machineMemoryBytes(),
      parallelLaunches: node.parallelLaunches ?? availableParallelism(),
      scratchDir: placeOf(node.scratchDir),
    },
    redis: {
      ...redis,
      tlsCaFile: placeOf(redis.tlsCaFile),
      tlsCertificateFile: placeOf(redis.tlsCertificateFile),
      tlsKeyFile: placeOf(redis.tlsKeyFile),
    },
    egress: { ...egress, privateHostsCeiling: egress.privateHostsCeiling ?? egress.privateHosts },
    drain: { limitMs: drain.limitMs ?? drainLimits[file.role] },
    archives: {
      ...archives,
      directory:
        archives.directory === null ? join(dataDir, "archives") : resolve(packageRoot, archives.directory),
    },
  };
}

type KeptDirectories = Pick<ResolvedConfig, "dataDir"> & {
  readonly archives: Pick<ResolvedConfig["archives"], "directory">;
};

/**
 * Why browsers cannot have a directory: they may pass through it, and what a daemon finds of theirs in it is
 * removed.
 */
export function clashOfScratch(scratch: string, { dataDir, archives }: KeptDirectories): string | undefined {
  const others = { data_dir: dataDir, "archives.directory": archives.directory };
  const [clash] = Object.entries(others).filter(([, directory]) => overlap(scratch, directory));
  return (
    clash &&
    `node.scratch_dir: ${scratch} and ${clash[0]} (${clash[1]}) have to be two directories, neither in the other`
  );
}

/** Contradictions between directories, which show once their paths are whole. */
export function clashesOf({ role, node, ...directories }: ResolvedConfig): string[] {
  const hasBrowsers = role === "all" || role === "node";
  const clash = hasBrowsers && node.scratchDir !== null && clashOfScratch(node.scratchDir, directories);
  return clash ? [clash] : [];
}

/** The families of the addresses on which a wildcard listens: IPv6's takes IPv4 too. */
const wildcards: Readonly<Record<string, readonly string[]>> = {
  "0.0.0.0": ["IPv4"],
  "::": ["IPv4", "IPv6"],
};

/** An address of its link alone is no use without the name of the caller's interface. */
const isLinkLocal = (address: string): boolean => /^fe[89ab]/i.test(address);

/**
 * The URL at which a daemon bound to `host` and `port` is reached; for a wildcard bind it names the machine's
 * first address.
 */
export function urlOf(host: string, port: number, interfaces = networkInterfaces()): string {
  const families = wildcards[host];
  const outside = Object.values(interfaces)
    .flat()
    .find((each) => each && !each.internal && families?.includes(each.family) && !isLinkLocal(each.address));
  const reachable = families ? (outside?.address ?? "127.0.0.1") : host;
  return `http://${reachable.includes(":") ? `[${reachable}]` : reachable}:${port}`;
}
