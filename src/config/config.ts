import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { textOf } from "../base/log.js";
import { loopbackHosts } from "./arguments.js";
import { freeze } from "./compile.js";
import { type Settled, settle } from "./resolve.js";
import type { ConfigFile } from "./schema.js";
import { type Environment, validate } from "./validate.js";
import { outsideCeiling } from "../base/net/private-hosts-ceiling.js";
import { type DeclaredPoolBounds, declaredPoolFaults } from "../pool/declared-pools.js";
import { parseHostPattern, patternsOf } from "../base/net/hosts.js";

/**
 * The whole configuration: frozen, complete, every duration in ms (`compile.ts` says how names follow from
 * the file's).
 */
export type Config = Settled & {
  /** The variables a child process may inherit; never ours, which hold secrets. */
  readonly childEnvironment: Readonly<Record<string, string>>;
};

export type Opened =
  | { readonly kind: "opened"; readonly config: Config }
  | { readonly kind: "refused"; readonly file: string; readonly faults: readonly string[] };

type Read =
  | { readonly kind: "read"; readonly content: unknown }
  | { readonly kind: "unreadable"; readonly fault: string };

// V8 quotes the text around a syntax error, and that text may be a key.
const withoutExcerpt = (message: string): string =>
  message.replace(/, (\.\.\.)?".*$/s, ", which is not valid JSON");

function readJson(file: string): Read {
  try {
    return { kind: "read", content: JSON.parse(readFileSync(file, "utf8")) };
  } catch (error) {
    return { kind: "unreadable", fault: withoutExcerpt(textOf(error)) };
  }
}

/** Rules that concern several settings. */
function contradictions(file: ConfigFile): string[] {
  const faults: string[] = [];
  const isAlone = file.role === "all";
  const demand = (isMissing: boolean, fault: string): void => void (isMissing && faults.push(fault));
  demand(
    !isAlone && file.redis.url === null,
    `REDIS_URL (redis.url): role ${file.role} needs the Redis all daemons share`,
  );
  demand(
    !isAlone && file.cluster_secret === null,
    `REMUDA_CLUSTER_SECRET (cluster_secret): role ${file.role} needs the secret all daemons share`,
  );
  demand(
    !isAlone && file.encryption_key === null,
    `REMUDA_ENCRYPTION_KEY (encryption_key): role ${file.role} needs the key all daemons share`,
  );
  demand(
    file.role === "control" && file.api_key === null,
    "REMUDA_API_KEY (api_key): role control needs the key all controls share",
  );
  demand(
    file.redis.cluster && /^rediss?\+sentinel:/.test(file.redis.url ?? ""),
    "redis.cluster: has to be false where redis.url names sentinels",
  );
  demand(
    file.fill.backoff_max_ms < file.fill.backoff_initial_ms,
    "fill.backoff_max_ms: has to be at least fill.backoff_initial_ms",
  );
  demand(
    file.node.lost_after_ms <= 2 * file.node.beat_period_ms,
    "node.lost_after_ms: has to be more than twice node.beat_period_ms",
  );
  const contactLimit = file.egress.contact_limit_ms;
  demand(
    contactLimit !== null && contactLimit > file.node.isolated_limit_seconds * 1000,
    "egress.contact_limit_ms: has to be at most node.isolated_limit_seconds",
  );
  demand(
    file.acquire.control_lost_after_ms <= 2 * file.acquire.control_beat_period_ms,
    "acquire.control_lost_after_ms: has to be more than twice acquire.control_beat_period_ms",
  );
  const { default_rate_per_minute: usual, max_rate_per_minute: most } = file.fill;
  demand(
    most !== null && usual > most,
    "fill.default_rate_per_minute: has to be at most fill.max_rate_per_minute",
  );
  const {
    max_message_bytes: message,
    max_unfinished_bytes: unfinished,
    max_total_unfinished_bytes: all,
  } = file.gateway;
  demand(message > unfinished, "gateway.max_message_bytes: has to be at most gateway.max_unfinished_bytes");
  demand(
    unfinished > all,
    "gateway.max_unfinished_bytes: has to be at most gateway.max_total_unfinished_bytes",
  );
  const {
    s3_bucket: bucket,
    s3_endpoint: endpoint,
    s3_access_key_id: signer,
    s3_secret_access_key: signing,
  } = file.archives;
  demand(bucket === null && endpoint !== null, "archives.s3_endpoint: needs archives.s3_bucket");
  demand(
    (signer === null) !== (signing === null),
    "archives.s3_access_key_id, archives.s3_secret_access_key: need each other",
  );
  const ofHosts = faultsOfHosts(file);
  return [
    ...faults,
    ...ofHosts,
    ...declaredPoolFaults(file.pools, ofHosts.length > 0 ? anything : decidingOf(file)),
  ];
}

const decidingOf = ({ fill, browser, egress, region, limits }: ConfigFile): DeclaredPoolBounds => ({
  defaults: {
    fillRatePerMinute: fill.default_rate_per_minute,
    maxFillRatePerMinute: fill.max_rate_per_minute,
    engine: browser.engine,
    privateHostsCeiling: patternsOf(egress.private_hosts_ceiling ?? egress.private_hosts),
  },
  region,
  maxPoolSize: limits.max_pool_size,
  maxPools: limits.max_pools,
  pooledSessions: limits.pooled_sessions,
});

/** Where other settings are at fault: only what is wrong with a pool whatever they are. */
const anything: DeclaredPoolBounds = {
  defaults: {
    fillRatePerMinute: 1,
    maxFillRatePerMinute: null,
    engine: "chromium",
    privateHostsCeiling: patternsOf(["0.0.0.0/0", "::/0"]),
  },
  region: "",
  maxPoolSize: Infinity,
  maxPools: Infinity,
  pooledSessions: null,
};

function faultsOfPools(content: unknown): readonly string[] {
  const pools = typeof content === "object" && content !== null && "pools" in content ? content.pools : [];
  return Array.isArray(pools) ? declaredPoolFaults(pools, anything) : [];
}

function faultsOfHosts({ egress }: ConfigFile): string[] {
  const faultsIn = (setting: "private_hosts" | "private_hosts_ceiling"): string[] =>
    (egress[setting] ?? []).flatMap((host) => {
      const parsed = parseHostPattern(host, { withRanges: true });
      return parsed.kind === "fault" ? [`egress.${setting}: ${JSON.stringify(host)} ${parsed.message}`] : [];
    });
  const faults = [...faultsIn("private_hosts"), ...faultsIn("private_hosts_ceiling")];
  if (faults.length > 0 || egress.private_hosts_ceiling === null) return faults;
  const outside = outsideCeiling(egress.private_hosts, patternsOf(egress.private_hosts_ceiling));
  return outside.map(
    (host) => `egress.private_hosts: ${JSON.stringify(host)} is outside egress.private_hosts_ceiling`,
  );
}

/** The command line's word for a trial, over whatever the file says. */
function openLoopback({ egress, ...file }: ConfigFile, opened: "all" | number): ConfigFile {
  const hosts = loopbackHosts(opened);
  const ceiling = egress.private_hosts_ceiling;
  return {
    ...file,
    egress: {
      ...egress,
      private_hosts: [...egress.private_hosts, ...hosts],
      private_hosts_ceiling: ceiling && [...ceiling, ...hosts],
    },
  };
}

const inherited = ["PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR"];
const childEnvironment = (env: Environment): Record<string, string> =>
  Object.fromEntries(inherited.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]])));

interface Opening {
  readonly packageRoot: string;
  readonly env?: Environment;
  /** Ports of loopback that the command line opens to browsers. */
  readonly openLoopback?: "all" | number;
}

/**
 * Reads `REMUDA_CONFIG` (default config/default.json), puts the environment over it and validates the whole.
 * Refused with every fault at once; relative paths are taken from the package's root.
 */
export function openConfig({ packageRoot, env = process.env, ...asked }: Opening): Opened {
  const file = resolve(packageRoot, env["REMUDA_CONFIG"] || "config/default.json");
  const read = readJson(file);
  if (read.kind === "unreadable") return { kind: "refused", file, faults: [read.fault] };
  const validated = validate(read.content, env);
  if (validated.kind === "faulty")
    return { kind: "refused", file, faults: [...validated.faults, ...faultsOfPools(read.content)] };
  const values =
    asked.openLoopback === undefined ? validated.values : openLoopback(validated.values, asked.openLoopback);
  const faults = contradictions(values);
  if (faults.length > 0) return { kind: "refused", file, faults };
  return {
    kind: "opened",
    config: freeze({ ...settle(values, packageRoot), childEnvironment: childEnvironment(env) }),
  };
}
