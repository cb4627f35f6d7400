import type { Millis } from "../base/clock.js";
import { Events } from "../base/events.js";
import { defaultProject } from "../base/ids.js";
import { textOf, type Log } from "../base/log.js";
import { Stops } from "../base/stops.js";
import type { Config } from "../config/config.js";
import type { DaemonContext } from "./boot.js";
import type { PoolSignals } from "../pool/ports/signals.js";
import { RedisDatasetStore } from "../store/dataset-store.js";
import { RedisDestinationStore } from "../store/organization/destination-store.js";
import { RedisAuditStore } from "../store/organization/audit-store.js";
import { Queues, type QueueOptions } from "../schedule/queues.js";
import { RedisApiKeyStore } from "../store/organization/api-key-store.js";
import { RedisCallerStore } from "../store/organization/caller-store.js";
import { EffectRunner } from "../store/effects.js";
import { PartitionScripts } from "../store/partition-scripts.js";
import { RedisPoolStore } from "../store/pool-store.js";
import { queuePrefix } from "../store/redis/keys.js";
import { RedisLimitStore, RedisRateLimiter } from "../store/organization/limit-store.js";
import type { StoreLimits } from "../store/limits.js";
import { RedisScalingStore } from "../store/scaling-store.js";
import { RedisStandbyStore } from "../store/standby-store.js";
import { RedisNodeStore } from "../store/node-store.js";
import { RedisRemovalNotes } from "../store/organization/removal-notes.js";
import { RedisProjectDirectory } from "../store/organization/project-directory.js";
import { RedisProjects } from "../store/project/projects.js";
import {
  connect,
  connectForMessages,
  connectForQueues,
  keepAlive,
  type RedisOptions,
} from "../store/redis/connect.js";
import type { RedisMember } from "../store/redis/members.js";
import { ScriptStore } from "../store/redis/redis.js";
import { checkEviction, checkSchema } from "../store/redis/schema.js";
import { readTls } from "../store/redis/tls.js";
import { privateRedisDirectory } from "../store/private/paths.js";
import { AppendOnlyFile } from "../store/redis/append-only-file.js";
import { AppendWait } from "../store/redis/append-wait.js";
import { DurableWrites } from "../store/redis/durable-writes.js";
import { RedisEventStore, type StreamLimits } from "../store/telemetry/event-store.js";
import { RedisNodeReports } from "../store/node-reports.js";
import { RedisTickStore } from "../store/tick-store.js";
import { type ListenerParts, RedisMessages } from "../store/messages.js";

/** What all roles share: the way to Redis and everything that stands on it. */
export interface Stores {
  readonly poolStore: RedisPoolStore;
  readonly projects: RedisProjects;
  readonly vaultWrites: DurableWrites;
  readonly directory: RedisProjectDirectory;
  readonly dataset: RedisDatasetStore;
  readonly audit: RedisAuditStore;
  readonly destinations: RedisDestinationStore;
  readonly events: RedisEventStore;
  readonly apiKeys: RedisApiKeyStore;
  readonly callers: RedisCallerStore;
  readonly removals: RedisRemovalNotes;
  readonly limits: RedisLimitStore;
  /** Undefined where no rate is set. */
  readonly creations: RedisRateLimiter | undefined;
  readonly nodes: RedisNodeStore;
  readonly scaling: RedisScalingStore;
  readonly standby: RedisStandbyStore;
  readonly reports: RedisNodeReports;
  readonly ticks: RedisTickStore;
  readonly messages: RedisMessages;
  readonly queues: Queues;
  readonly queueOptions: QueueOptions;
  readonly signals: Events<PoolSignals>;
  /** What a listener to messages needs. */
  readonly listenerParts: ListenerParts;
  hasContact(): boolean;
  /** Whether Redis is there now, as far as is known. */
  isConnected(): boolean;
  /** Asks Redis for all addresses at which it can be reached, beside those of its URL. */
  redisMembers(): Promise<readonly RedisMember[]>;
  /** Waits for Redis, and refuses one that a newer daemon has written to, or that removes keys by itself. */
  contact(): Promise<void>;
}

/** Longer than a launch may take once it runs: it may have to wait for its turn. */
const launchTurns = 3;
export const launchClaimMs = ({ launchLimitMs }: Config["node"]): Millis => launchLimitMs * launchTurns;

/** A node that is merely busy may miss some beats, and stand still for a moment. */
export const lateAfterMs = ({ beatPeriodMs, lostAfterMs }: Config["node"]): Millis =>
  Math.min(Math.max(3 * beatPeriodMs, 2000), lostAfterMs / 2);

/** Some tens of microseconds each, and more for those that are leased: no such script takes 5 ms. */
const retiredAtOnce = 20;

const limitsOf = ({ acquire, fill, limits, node, recycle, tombstones, vault }: Config): StoreLimits => ({
  maxWaiters: acquire.maxWaiters,
  requestsPerMinute: limits.requestsPerMinute,
  maxSessions: limits.maxSessions,
  concurrentSessions: limits.concurrentSessions,
  idempotencyMs: acquire.idempotencyMs,
  keyedGraceMs: acquire.keyedGraceMs,
  controlLostMs: acquire.controlLostAfterMs,
  launchPickupMs: node.launchPickupMs,
  launchClaimMs: launchClaimMs(node),
  backoffInitialMs: fill.backoffInitialMs,
  backoffMaxMs: fill.backoffMaxMs,
  earlyDeathMs: fill.earlyDeathMs,
  provisionalMs: acquire.provisionalMs,
  retryWindowMs: acquire.retryWindowMs,
  maxLeases: recycle.maxLeases,
  retiredAtOnce,
  eventsKept: limits.eventsKept,
  eventsKeptInAll: limits.eventsKeptInAll,
  nodeLostMs: node.lostAfterMs,
  nodeLateMs: lateAfterMs(node),
  tombstoneMs: tombstones.keepMs,
  maxTombstones: tombstones.maxPerProject,
  maxRecordings: tombstones.maxRecordingsPerProject,
  vaultBytes: vault.maxVaultBytes,
  projectVaultBytes: vault.maxProjectBytes,
});

const streamLimitsOf = ({ telemetry }: Config): StreamLimits => ({
  maxBytes: telemetry.maxSessionBytes,
  maxAgeMs: telemetry.maxAgeMs,
  keepMs: telemetry.retentionMs,
});

/** Needs no Redis yet: `contact` does. */
export function openStores(config: Config, context: DaemonContext): { stores: Stores; stops: Stops } {
  const { log, clock, stopping } = context;
  const stops = new Stops(clock, config.stop.stepMs);
  const redis = redisOptionsOf(config, context.redisUrl.reveal());
  const store = new ScriptStore(connect(redis), log, clock);
  stops.add("redis", () => store.close());
  const { queues, queueOptions } = openQueues(redis, context, stops);
  const signals = new Events<PoolSignals>((error) => log.error({ error: textOf(error) }, "listener failed"));
  const limits = limitsOf(config);
  const unnamed = defaultProject;
  const directory = new RedisProjectDirectory(store);
  const vaultWrites = openVaultWrites(config, store, { context, redis });
  stops.add("vault writes", () => vaultWrites.close());
  const others = () => directory.others();
  const projects = new RedisProjects(store, { limits, vaultWrites, unnamed, others });
  const parts = { config, limits, projects, directory, queues, signals, log };
  const limitMs = redis.commandTimeoutMs;
  const { idempotencyMs } = limits;
  const { requestsPerMinute, creationRatePerMinute } = config.limits;
  const stores: Stores = {
    ...openPartitions(store, parts, stops),
    projects,
    vaultWrites,
    directory,
    audit: new RedisAuditStore(store, config.audit.maxBytes),
    destinations: new RedisDestinationStore(store, config.audit.export.maxDestinations),
    events: new RedisEventStore(store, { unnamed, limits: streamLimitsOf(config) }),
    apiKeys: new RedisApiKeyStore(store, { ...config.access, idempotencyMs, requestsPerMinute }),
    callers: new RedisCallerStore(store, requestsPerMinute),
    removals: new RedisRemovalNotes(store, limits.retryWindowMs),
    limits: new RedisLimitStore(store, projects),
    creations: limiterOf(store, creationRatePerMinute),
    queues,
    queueOptions,
    signals,
    listenerParts: { store, clock, log, limitMs, connect: () => connectForMessages(redis) },
    ticks: new RedisTickStore(store),
    messages: new RedisMessages(store),
    ...contactWith(store, stopping),
  };
  return { stores, stops };
}

type PartitionParts = Pick<Stores, "projects" | "directory" | "queues" | "signals"> & {
  readonly config: Config;
  readonly limits: StoreLimits;
  readonly log: Log;
};

/** Nodes and partitions, whose scripts leave work for each other's slots. */
function openPartitions(
  store: ScriptStore,
  { config, limits, ...parts }: PartitionParts,
  stops: Stops,
): Pick<Stores, "nodes" | "poolStore" | "standby" | "dataset" | "scaling" | "reports"> {
  const nodes = new RedisNodeStore(store, defaultProject, {
    limits,
    overcommit: config.node.overcommit,
    giveWay: (browsers) => standby.retire(browsers, "unwanted"),
  });
  const effects = makeEffects({ ...parts, nodes });
  stops.add("effects", () => effects.idle());
  const scripts = new PartitionScripts(store, effects, { unnamed: defaultProject, limits });
  const standby = new RedisStandbyStore(scripts);
  return {
    nodes,
    poolStore: new RedisPoolStore(scripts),
    standby,
    dataset: new RedisDatasetStore({ store, scripts, ...parts }),
    scaling: new RedisScalingStore(scripts),
    reports: new RedisNodeReports(scripts),
  };
}

function openVaultWrites(
  { redis: { url, cluster }, vault, dataDir }: Config,
  store: ScriptStore,
  { context: { clock, log }, redis }: { context: DaemonContext; redis: RedisOptions },
): DurableWrites {
  const directory = privateRedisDirectory(dataDir);
  return new DurableWrites(store, {
    file: url === null ? new AppendOnlyFile({ store, directory, clock, log }) : undefined,
    wait: url === null || cluster ? undefined : new AppendWait(redis, clock),
    allowsLoss: vault.allowLossyRedis,
    clock,
  });
}

const limiterOf = (store: ScriptStore, perMinute: number | null): RedisRateLimiter | undefined =>
  perMinute === null ? undefined : new RedisRateLimiter(store, perMinute);

export const redisOptionsOf = ({ redis }: Config, url: string): RedisOptions => ({
  url,
  isCluster: redis.cluster,
  connectTimeoutMs: redis.connectTimeoutMs,
  commandTimeoutMs: redis.commandTimeoutMs,
  ...(redis.sentinelPassword && { sentinelPassword: redis.sentinelPassword.reveal() }),
  ...(redis.sentinelUsername !== null && { sentinelUsername: redis.sentinelUsername }),
  tls: readTls(redis),
});

/** Queues have a connection of their own, which waits. */
function openQueues(
  redis: RedisOptions,
  { log, clock }: DaemonContext,
  stops: Stops,
): Pick<Stores, "queues" | "queueOptions"> {
  const limitMs = redis.commandTimeoutMs;
  const connection = connectForQueues(redis, log);
  stops.add("queue connection", () => connection.disconnect());
  stops.add("queue connection's watch", keepAlive(connection, { clock, log, limitMs }));
  const queueOptions: QueueOptions = { connection, prefix: queuePrefix, log, clock, limitMs };
  const queues = new Queues(queueOptions);
  stops.add("queues", () => queues.close());
  return { queues, queueOptions };
}

const contactWith = (
  store: ScriptStore,
  stopping: AbortSignal,
): Pick<Stores, "hasContact" | "isConnected" | "redisMembers" | "contact"> => ({
  hasContact: () => store.hasContact,
  isConnected: () => store.isConnected,
  redisMembers: () => store.members(),
  async contact() {
    await store.open(stopping);
    await checkEviction(store);
    await checkSchema(store);
  },
});

/**
 * Why a daemon cannot serve, whatever its role. One that has lost Redis again goes on with the sockets it
 * has.
 */
export function whyUnready(
  stopping: AbortSignal,
  { hasContact }: Pick<Stores, "hasContact">,
): string | undefined {
  if (stopping.aborted) return "draining";
  return hasContact() ? undefined : "Redis was not reached yet";
}

type EffectSources = Pick<Stores, "projects" | "nodes" | "queues" | "signals"> & { readonly log: Log };

const makeEffects = ({ projects, nodes, queues, signals, log }: EffectSources): EffectRunner =>
  new EffectRunner({
    jobs: queues,
    log,
    signals,
    freeName: (name, owner, partition) => projects.at(partition).freeName({ kind: "session", name, owner }),
    freeSession: (lease, partition) => projects.at(partition).freeSession(lease),
    freeRoom: (node, browser) => nodes.freeRoom(node, browser),
    moveTombstones: (partition) => projects.at(partition).moveTombstones(partition),
  });
