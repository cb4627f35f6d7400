import type { Millis } from "../base/clock.js";
import { Events } from "../base/events.js";
import { defaultProject } from "../base/ids.js";
import { textOf, type Log } from "../base/log.js";
import { Stops } from "../base/stops.js";
import type { Config } from "../config/config.js";
import type { Surroundings } from "./boot.js";
import type { PoolSignals } from "../pool/ports/signals.js";
import { Queues, type QueueOptions } from "../schedule/queues.js";
import { EffectRunner } from "../store/effects.js";
import { RedisExtensions } from "../store/extension-store.js";
import { RedisHomes } from "../store/pool-store.js";
import { queuePrefix } from "../store/redis/keys.js";
import type { Limits } from "../store/limits.js";
import { RedisNodes } from "../store/node-store.js";
import { RedisProfiles } from "../store/profile-store.js";
import { RedisProjects } from "../store/project-store.js";
import { RedisProxies } from "../store/proxy-store.js";
import { connect, connectForMessages, connectForQueues, keepAlive, type RedisOptions } from "../store/redis/connect.js";
import { type Member, Store } from "../store/redis/redis.js";
import { checkSchema } from "../store/redis/schema.js";
import { RedisReports } from "../store/node-reports.js";
import { RedisTicks } from "../store/tick-store.js";
import { type EarParts, RedisWire } from "../store/messages.js";

/** What both roles share: the way to Redis and everything that stands on it. */
export interface State {
  readonly homes: RedisHomes;
  readonly projects: RedisProjects;
  readonly proxies: RedisProxies;
  readonly profiles: RedisProfiles;
  readonly extensions: RedisExtensions;
  readonly nodes: RedisNodes;
  readonly reports: RedisReports;
  readonly ticks: RedisTicks;
  readonly wire: RedisWire;
  readonly queues: Queues;
  readonly queueOptions: QueueOptions;
  readonly signals: Events<PoolSignals>;
  /** For whoever listens to messages. */
  readonly ear: EarParts;
  hasContact(): boolean;
  /** Whether Redis is there now, as far as is known. */
  isConnected(): boolean;
  /** Throws where Redis does not answer. */
  ping(): Promise<unknown>;
  /** Where Redis can be reached, beside its URL. */
  redisMembers(): Promise<readonly Member[]>;
  /** Waits for Redis, and refuses one that a newer daemon has written to. */
  contact(): Promise<void>;
}

/** Longer than a launch may take once it runs: it may have to wait for its turn. */
export const launchTurns = 3;

/** A node that is merely busy may miss some beats, and stand still for a moment. */
export const lateAfterMs = ({ beatPeriodMs, lostAfterMs }: Config["node"]): Millis => Math.min(Math.max(3 * beatPeriodMs, 2000), lostAfterMs / 2);

const limitsOf = ({ acquire, fill, limits, node, tombstones }: Config): Limits => ({
  maxWaiters: acquire.maxWaiters, maxSessions: limits.maxSessions, idempotencyMs: acquire.idempotencyMs, keyedGraceMs: acquire.keyedGraceMs,
  controlLostMs: acquire.controlLostAfterMs, launchPickupMs: node.launchPickupMs, launchClaimMs: node.launchLimitMs * launchTurns,
  backoffInitialMs: fill.backoffInitialMs, backoffMaxMs: fill.backoffMaxMs, earlyDeathMs: fill.earlyDeathMs,
  provisionalMs: acquire.provisionalMs, retryWindowMs: acquire.retryWindowMs, eventsKept: limits.eventsKept, eventsKeptInAll: limits.eventsKeptInAll, nodeLostMs: node.lostAfterMs, nodeLateMs: lateAfterMs(node), tombstoneMs: tombstones.keepMs, maxTombstones: tombstones.maxPerProject,
});

/** Needs no Redis yet: `contact` does. */
export function openState(config: Config, { redisUrl, log, clock, stopping }: Surroundings): { state: State; stops: Stops } {
  const stops = new Stops(clock, config.stop.stepMs);
  const redis: RedisOptions = {
    url: redisUrl.reveal(), isCluster: config.redis.cluster, connectTimeoutMs: config.redis.connectTimeoutMs, commandTimeoutMs: config.redis.commandTimeoutMs,
    ...(config.redis.sentinelPassword && { sentinelPassword: config.redis.sentinelPassword.reveal() }),
  };
  const limitMs = redis.commandTimeoutMs;
  const store = new Store(connect(redis), log, clock);                   stops.add("redis", () => store.close());
  const limits = limitsOf(config);
  const signals = new Events<PoolSignals>((error) => log.error({ error: textOf(error) }, "listener failed"));
  const queueRedis = connectForQueues(redis, log);                       stops.add("queue connection", () => queueRedis.disconnect());
  stops.add("queue connection's watch", keepAlive(queueRedis, { clock, log, limitMs }));
  const queueOptions: QueueOptions = { connection: queueRedis, prefix: queuePrefix, log, clock, limitMs };
  const queues = new Queues(queueOptions);                               stops.add("queues", () => queues.close());
  const projects = new RedisProjects(store, defaultProject, limits);
  const nodes = new RedisNodes(store, defaultProject, { limits, overcommit: config.node.overcommit });
  const effects = makeEffects({ projects, nodes, queues, signals, log }); stops.add("effects", () => effects.idle());
  const homes = new RedisHomes(store, effects, { project: defaultProject, limits });
  const state: State = {
    homes, projects, proxies: new RedisProxies(store, defaultProject), profiles: new RedisProfiles(store, defaultProject), extensions: new RedisExtensions(store, defaultProject), nodes, queues, queueOptions, signals, ear: { store, clock, log, limitMs, connect: () => connectForMessages(redis) },
    reports: new RedisReports(homes), ticks: new RedisTicks(store), wire: new RedisWire(store), hasContact: () => store.hasContact, isConnected: () => store.isConnected, ping: () => store.askOnce((client) => client.ping()),
    redisMembers: () => store.members(),
    async contact() {
      await store.open(stopping);
      await checkSchema(store);
    },
  };
  return { state, stops };
}

/** Why a daemon cannot serve, whatever its role. One that has lost Redis again goes on with the sockets it has. */
export function whyUnready(stopping: AbortSignal, { hasContact }: Pick<State, "hasContact">): string | undefined {
  if (stopping.aborted) return "draining";
  return hasContact() ? undefined : "Redis was not reached yet";
}

type EffectSources = Pick<State, "projects" | "nodes" | "queues" | "signals"> & { readonly log: Log };

const makeEffects = ({ projects, nodes, queues, signals, log }: EffectSources): EffectRunner =>
  new EffectRunner({
    jobs: queues, log, signals,
    freeName: (name, owner) => projects.freeName({ kind: "session", name, owner }),
    freeRoom: (node, browser) => nodes.freeRoom(node, browser),
    moveGraves: (home) => projects.moveGraves(home),
  });
