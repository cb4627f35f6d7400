import { outsideCeiling } from "../base/net/private-hosts-ceiling.js";
import { isLoopback } from "../base/net/host-check.js";
import { parseHostPattern, patternsOf } from "../base/net/hosts.js";
import { isRedisUrl } from "../base/net/redis-url.js";
import { isNodeLabel } from "../spec/node-labels.js";
import { type DeclaredPoolBounds, declaredPoolFaults } from "../pool/declared-pools.js";
import { standbyFaults } from "../pool/standby/shapes.js";
import type { ConfigFile } from "./schema.js";
import { signatureAlgorithms } from "./sections/access.js";

interface Contradiction {
  readonly isIn: (file: ConfigFile) => boolean;
  readonly fault: string | ((file: ConfigFile) => string);
}

/** An operator has the file of the other roles, and not their secrets, of which the URL of Redis is one. */
const hasSecrets = (role: string): boolean => role !== "operator";

const isOneOfSeveral = ({ role }: ConfigFile): boolean => role === "control" || role === "node";

const amongDaemons: readonly Contradiction[] = [
  {
    isIn: (file) => isOneOfSeveral(file) && file.redis.url === null,
    fault: ({ role }) => `REDIS_URL (redis.url): role ${role} needs the Redis all daemons share`,
  },
  {
    isIn: (file) => isOneOfSeveral(file) && file.cluster_secret === null,
    fault: ({ role }) =>
      `REMUDA_CLUSTER_SECRET (cluster_secret): role ${role} needs the secret all daemons share`,
  },
  {
    isIn: (file) => isOneOfSeveral(file) && file.encryption_key === null,
    fault: ({ role }) =>
      `REMUDA_ENCRYPTION_KEY (encryption_key): role ${role} needs the key all daemons share`,
  },
  {
    isIn: ({ role, api_key: key }) => role === "control" && key === null,
    fault: "REMUDA_API_KEY (api_key): role control needs the key all controls share",
  },
];

const amongLabels: readonly Contradiction[] = [
  {
    isIn: ({ node }) => !node.labels.every(isNodeLabel),
    fault: ({ node }) => `node.labels: ${node.labels.find((label) => !isNodeLabel(label))} is not key=value`,
  },
];

const ofOperators: readonly Contradiction[] = [
  {
    isIn: ({ role, operator }) => role === "operator" && operator.api_url === null,
    fault: "REMUDA_API_URL (operator.api_url): role operator makes pools by the API",
  },
  {
    isIn: ({ role, api_key: key }) => role === "operator" && key === null,
    fault: "REMUDA_API_KEY (api_key): role operator needs the key of the API",
  },
];

const amongVaultKeys: readonly Contradiction[] = [
  {
    isIn: ({ role, vault: { keys } }) =>
      hasSecrets(role) &&
      keys.provider === "transit" &&
      (keys.transit_address === null || keys.transit_token === null),
    fault: "vault.keys.provider: transit needs vault.keys.transit_address and vault.keys.transit_token",
  },
  {
    isIn: ({ role, vault: { keys } }) =>
      hasSecrets(role) &&
      keys.provider === "aws_kms" &&
      [keys.kms_key, keys.kms_region, keys.kms_access_key_id, keys.kms_secret_access_key].includes(null),
    fault:
      "vault.keys.provider: aws_kms needs vault.keys.kms_key, kms_region, kms_access_key_id and " +
      "kms_secret_access_key",
  },
];

const amongTimes: readonly Contradiction[] = [
  {
    isIn: ({ fill }) => fill.backoff_max_ms < fill.backoff_initial_ms,
    fault: "fill.backoff_max_ms: has to be at least fill.backoff_initial_ms",
  },
  {
    isIn: ({ node }) => node.lost_after_ms <= 2 * node.beat_period_ms,
    fault: "node.lost_after_ms: has to be more than twice node.beat_period_ms",
  },
  {
    isIn: ({ egress: { contact_limit_ms: limitMs }, node }) =>
      limitMs !== null && limitMs > node.isolated_limit_seconds * 1000,
    fault: "egress.contact_limit_ms: has to be at most node.isolated_limit_seconds",
  },
  {
    isIn: ({ acquire }) => acquire.control_lost_after_ms <= 2 * acquire.control_beat_period_ms,
    fault: "acquire.control_lost_after_ms: has to be more than twice acquire.control_beat_period_ms",
  },
];

const amongBounds: readonly Contradiction[] = [
  {
    isIn: ({ fill: { default_rate_per_minute: usual, max_rate_per_minute: most } }) =>
      most !== null && usual > most,
    fault: "fill.default_rate_per_minute: has to be at most fill.max_rate_per_minute",
  },
  {
    isIn: ({ gateway }) => gateway.max_message_bytes > gateway.max_unfinished_bytes,
    fault: "gateway.max_message_bytes: has to be at most gateway.max_unfinished_bytes",
  },
  {
    isIn: ({ gateway }) => gateway.max_unfinished_bytes > gateway.max_total_unfinished_bytes,
    fault: "gateway.max_unfinished_bytes: has to be at most gateway.max_total_unfinished_bytes",
  },
];

const amongStores: readonly Contradiction[] = [
  {
    isIn: ({ redis }) => redis.url !== null && !isRedisUrl(redis.url),
    fault:
      "REDIS_URL (redis.url): cannot be read; what is special in a URL has to be written %XX in names and " +
      "passwords, and a port is at most 65535",
  },
  {
    isIn: ({ role, redis }) =>
      hasSecrets(role) && redis.cluster && (redis.url === null || redis.url.startsWith("/")),
    fault: "redis.cluster: needs redis.url (REDIS_URL), of one node of the Cluster",
  },
  {
    isIn: ({ redis }) => redis.cluster && /^rediss?\+sentinel:/.test(redis.url ?? ""),
    fault: "redis.cluster: has to be false where redis.url names sentinels",
  },
  {
    isIn: ({ redis }) => (redis.tls_certificate_file === null) !== (redis.tls_key_file === null),
    fault: "redis.tls_certificate_file, redis.tls_key_file: need each other",
  },
  {
    isIn: ({ role, redis }) =>
      hasSecrets(role) &&
      !/^rediss[:+]/.test(redis.url ?? "") &&
      (redis.tls_ca_file ?? redis.tls_certificate_file) !== null,
    fault: "redis.tls_ca_file, redis.tls_certificate_file: redis.url has to be rediss",
  },
  {
    isIn: ({ audit }) => audit.max_bytes < audit.hot_bytes,
    fault: "audit.max_bytes: has to be at least audit.hot_bytes",
  },
  {
    isIn: ({ audit }) => 3600 % audit.export.window_seconds !== 0,
    fault: "audit.export.window_seconds: has to divide an hour",
  },
  {
    isIn: ({ audit }) =>
      audit.retention_hours * 3600 <= 2 * (audit.export.hold_seconds + audit.export.window_seconds),
    fault: "audit.retention_hours: has to be more than twice audit.export.hold_seconds and window_seconds",
  },
  {
    isIn: ({ archives }) => archives.s3_bucket === null && archives.s3_endpoint !== null,
    fault: "archives.s3_endpoint: needs archives.s3_bucket",
  },
  {
    isIn: ({ role, archives }) =>
      hasSecrets(role) && (archives.s3_access_key_id === null) !== (archives.s3_secret_access_key === null),
    fault: "archives.s3_access_key_id, archives.s3_secret_access_key: need each other",
  },
];

/** Whoever is on the way to it can answer in its place. */
const isPlain = (url: string | null): boolean =>
  url?.startsWith("http:") === true &&
  !(URL.canParse(url) && isLoopback(new URL(url).hostname.replaceAll(/[[\]]/g, "")));

const amongPeople: readonly Contradiction[] = [
  {
    isIn: ({ vault: { form } }) => isPlain(form.public_url),
    fault: "vault.form.public_url: has to be https, or on loopback, where alone browsers encrypt",
  },
  {
    isIn: ({ access: { oidc } }) => oidc.issuer !== null && oidc.audience === null,
    fault: "access.oidc.audience: needed by access.oidc.issuer, or tokens for anybody would be taken",
  },
  {
    isIn: ({ access: { oidc } }) => oidc.algorithms.some((name) => !isSignature(name)),
    fault: `access.oidc.algorithms: has to be some of ${signatureAlgorithms.join(", ")}`,
  },
  {
    isIn: ({ access: { oidc } }) => isPlain(oidc.issuer) || isPlain(oidc.jwks_url),
    fault:
      "access.oidc.issuer, access.oidc.jwks_url: have to be https, or whoever is on the way signs tokens",
  },
  {
    isIn: ({ access: { oidc } }) => oidc.keys_keep_seconds < oidc.keys_refresh_seconds,
    fault: "access.oidc.keys_keep_seconds: has to be at least access.oidc.keys_refresh_seconds",
  },
];
const isSignature = (name: string): boolean => signatureAlgorithms.includes(name);

/**
 * Finds settings that are each right alone and contradict each other, and faults of the declared pools under
 * them.
 */
export function contradictions(file: ConfigFile): string[] {
  const found = [
    ...amongDaemons,
    ...amongTimes,
    ...amongBounds,
    ...amongStores,
    ...amongPeople,
    ...amongLabels,
    ...ofOperators,
    ...amongVaultKeys,
  ].filter(({ isIn }) => isIn(file));
  const ofHosts = faultsOfHosts(file);
  const bounds = ofHosts.length > 0 ? anyBounds : boundsOf(file);
  return [
    ...found.map(({ fault }) => (typeof fault === "string" ? fault : fault(file))),
    ...ofHosts,
    ...faultsOfProxies(file),
    ...declaredPoolFaults(file.pools, bounds),
    ...standbyFaults(file.standby, { defaults: bounds.defaults, hasProjects: file.projects.enabled }),
  ];
}

const boundsOf = ({ fill, browser, egress, region, limits }: ConfigFile): DeclaredPoolBounds => ({
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
  concurrentSessions: limits.concurrent_sessions,
});

/**
 * The widest bounds: they refuse only what is wrong with a pool whatever the settings say. They are used
 * while other settings are at fault.
 */
const anyBounds: DeclaredPoolBounds = {
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
  concurrentSessions: null,
};

/** Finds faults of the declared pools in a file whose other settings are refused. */
export function faultsOfPools(content: unknown): readonly string[] {
  const pools = typeof content === "object" && content !== null && "pools" in content ? content.pools : [];
  return Array.isArray(pools) ? declaredPoolFaults(pools, anyBounds) : [];
}

const faultsOfProxies = ({ server }: ConfigFile): string[] =>
  server.trusted_proxies.flatMap((text) => {
    const parsed = parseHostPattern(text, { withRanges: true });
    const pattern = parsed.kind === "fault" ? undefined : parsed.pattern;
    const isAddress = pattern && pattern.kind !== "name" && !("port" in pattern);
    return isAddress ? [] : [`server.trusted_proxies: ${JSON.stringify(text)} is no address and no range`];
  });

/** Node.js takes no dot at the end of an address, and no spaces. */
const isWrittenOut = (server: string): boolean => !/\s|\.(?::|$)/.test(server);

function faultsOfResolvers({ resolvers }: ConfigFile["egress"]): string[] {
  if (resolvers?.length === 0)
    return ["egress.resolvers: has to name a server; null asks those of the system"];
  return (resolvers ?? []).flatMap((server) => {
    const parsed = parseHostPattern(server, { withRanges: false });
    if (parsed.kind === "pattern" && parsed.pattern.kind === "address" && isWrittenOut(server)) return [];
    const why = parsed.kind === "fault" ? parsed.message : "has to be an address";
    return [`egress.resolvers: ${JSON.stringify(server)} ${why}`];
  });
}

function faultsOfHosts({ egress, telemetry }: ConfigFile): string[] {
  const faultsIn = (setting: string, hosts: readonly string[]): string[] =>
    hosts.flatMap((host) => {
      const parsed = parseHostPattern(host, { withRanges: true });
      return parsed.kind === "fault" ? [`${setting}: ${JSON.stringify(host)} ${parsed.message}`] : [];
    });
  const faults = [
    ...faultsIn("egress.private_hosts", egress.private_hosts),
    ...faultsIn("egress.private_hosts_ceiling", egress.private_hosts_ceiling ?? []),
    ...faultsIn("egress.proxy_hosts", egress.proxy_hosts),
    ...faultsIn("telemetry.export.private_hosts", telemetry.export.private_hosts),
    ...faultsOfResolvers(egress),
  ];
  if (faults.length > 0 || egress.private_hosts_ceiling === null) return faults;
  const outside = outsideCeiling(egress.private_hosts, patternsOf(egress.private_hosts_ceiling));
  return outside.map(
    (host) => `egress.private_hosts: ${JSON.stringify(host)} is outside egress.private_hosts_ceiling`,
  );
}
