import type { Millis } from "../base/clock.js";
import { Events } from "../base/events.js";
import { defaultProject } from "../base/ids.js";
import { textOf, type Log } from "../base/log.js";
import { Stops } from "../base/stops.js";
import type { Config } from "../config/config.js";
import type { DaemonContext } from "./boot.js";
import type { PoolSignals } from "../pool/ports/signals.js";
import { Queues, type QueueOptions } from "../schedule/queues.js";
import { EffectRunner } from "../store/effects.js";
import { RedisExtensionStore } from "../store/extension-store.js";
import { PartitionScripts } from "../store/partition-scripts.js";
import { RedisPoolStore } from "../store/pool-store.js";
import { queuePrefix } from "../store/redis/keys.js";
import type { StoreLimits } from "../store/limits.js";
import { RedisNodeStore } from "../store/node-store.js";
import { RedisProfileStore } from "../store/profile-store.js";
import { RedisProjectStore } from "../store/project-store.js";
import { RedisProxyStore } from "../store/proxy-store.js";
import {
  connect,
  connectForMessages,
  connectForQueues,
  keepAlive,
  type RedisOptions,
} from "../store/redis/connect.js";
import { type RedisMember, ScriptStore } from "../store/redis/redis.js";
import { checkSchema } from "../store/redis/schema.js";
import { RedisNodeReports } from "../store/node-reports.js";
import { RedisTickStore } from "../store/tick-store.js";
import { type ListenerParts, RedisMessages } from "../store/messages.js";

/** What both roles share: the way to Redis and everything that stands on it. */
export interface Stores {
  readonly poolStore: RedisPoolStore;
  readonly projects: RedisProjectStore;
  readonly proxies: RedisProxyStore;
  readonly profiles: RedisProfileStore;
  readonly extensions: RedisExtensionStore;
  readonly nodes: RedisNodeStore;
  readonly reports: RedisNodeReports;
  readonly ticks: RedisTickStore;
  readonly messages: RedisMessages;
  readonly queues: Queues;
  readonly queueOptions: QueueOptions;
  readonly signals: Events<PoolSignals>;
  /** For whoever listens to messages. */
  readonly listenerParts: ListenerParts;
  hasContact(): boolean;
  /** Whether Redis is there now, as far as is known. */
  isConnected(): boolean;
  /** Throws where Redis does not answer. */
  ping(): Promise<unknown>;
  /** Where Redis can be reached, beside its URL. */
  redisMembers(): Promise<readonly RedisMember[]>;
  /** Waits for Redis, and refuses one that a newer daemon has written to. */
  contact(): Promise<void>;
}

/** Longer than a launch may take once it runs: it may have to wait for its turn. */
export const launchTurns = 3;

/** A node that is merely busy may miss some beats, and stand still for a moment. */
export const lateAfterMs = ({ beatPeriodMs, lostAfterMs }: Config["node"]): Millis =>
  Math.min(Math.max(3 * beatPeriodMs, 2000), lostAfterMs / 2);

const limitsOf = ({ acquire, fill, limits, node, tombstones }: Config): StoreLimits => ({
  maxWaiters: acquire.maxWaiters,
  maxSessions: limits.maxSessions,
  idempotencyMs: acquire.idempotencyMs,
  keyedGraceMs: acquire.keyedGraceMs,
  controlLostMs: acquire.controlLostAfterMs,
  launchPickupMs: node.launchPickupMs,
  launchClaimMs: node.launchLimitMs * launchTurns,
  backoffInitialMs: fill.backoffInitialMs,
  backoffMaxMs: fill.backoffMaxMs,
  earlyDeathMs: fill.earlyDeathMs,
  provisionalMs: acquire.provisionalMs,
  retryWindowMs: acquire.retryWindowMs,
  eventsKept: limits.eventsKept,
  eventsKeptInAll: limits.eventsKeptInAll,
  nodeLostMs: node.lostAfterMs,
  nodeLateMs: lateAfterMs(node),
  tombstoneMs: tombstones.keepMs,
  maxTombstones: tombstones.maxPerProject,
});

/** Needs no Redis yet: `contact` does. */
export function openStores(
  config: Config,
  { redisUrl, log, clock, stopping }: DaemonContext,
): { stores: Stores; stops: Stops } {
  const stops = new Stops(clock, config.stop.stepMs);
  const redis: RedisOptions = {
    url: redisUrl.reveal(),
    isCluster: config.redis.cluster,
    connectTimeoutMs: config.redis.connectTimeoutMs,
    commandTimeoutMs: config.redis.commandTimeoutMs,
    ...(config.redis.sentinelPassword && { sentinelPassword: config.redis.sentinelPassword.reveal() }),
  };
  const limitMs = redis.commandTimeoutMs;
  const store = new ScriptStore(connect(redis), log, clock);
  stops.add("redis", () => store.close());
  const limits = limitsOf(config);
  const signals = new Events<PoolSignals>((error) => log.error({ error: textOf(error) }, "listener failed"));
  const queueRedis = connectForQueues(redis, log);
  stops.add("queue connection", () => queueRedis.disconnect());
  stops.add("queue connection's watch", keepAlive(queueRedis, { clock, log, limitMs }));
  const queueOptions: QueueOptions = { connection: queueRedis, prefix: queuePrefix, log, clock, limitMs };
  const queues = new Queues(queueOptions);
  stops.add("queues", () => queues.close());
  const projects = new RedisProjectStore(store, defaultProject, limits);
  const nodes = new RedisNodeStore(store, defaultProject, { limits, overcommit: config.node.overcommit });
  const effects = makeEffects({ projects, nodes, queues, signals, log });
  stops.add("effects", () => effects.idle());
  const scripts = new PartitionScripts(store, effects, { project: defaultProject, limits });
  const poolStore = new RedisPoolStore(scripts);
  const stores: Stores = {
    poolStore,
    projects,
    proxies: new RedisProxyStore(store, defaultProject),
    profiles: new RedisProfileStore(store, defaultProject),
    extensions: new RedisExtensionStore(store, defaultProject),
    nodes,
    queues,
    queueOptions,
    signals,
    listenerParts: { store, clock, log, limitMs, connect: () => connectForMessages(redis) },
    reports: new RedisNodeReports(scripts),
    ticks: new RedisTickStore(store),
    messages: new RedisMessages(store),
    hasContact: () => store.hasContact,
    isConnected: () => store.isConnected,
    ping: () => store.askOnce((client) => client.ping()),
    redisMembers: () => store.members(),
    async contact() {
      await store.open(stopping);
      await checkSchema(store);
    },
  };
  return { stores, stops };
}

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
    freeName: (name, owner) => projects.freeName({ kind: "session", name, owner }),
    freeRoom: (node, browser) => nodes.freeRoom(node, browser),
    moveTombstones: (partition) => projects.moveTombstones(partition),
  });
