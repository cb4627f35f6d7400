import { Cluster, Redis, type RedisOptions as AllOptions } from "ioredis";
import type { Clock, Millis } from "../../base/clock.js";
import { refusalWord } from "../../base/store-fault.js";
import type { Log } from "../../base/log.js";
import { isSentinelUrl, sentinelsIn } from "./sentinels.js";
import type { RedisTls } from "./tls.js";

export interface RedisOptions {
  /** `redis://…`, `rediss://…`, `redis+sentinel://…`, or the path of a unix socket. */
  readonly url: string;
  /** Whether the URL names one node of a Redis Cluster. */
  readonly isCluster: boolean;
  readonly connectTimeoutMs: Millis;
  /** A command is given up after it, and so is a connection on which nothing was answered for so long. */
  readonly commandTimeoutMs: Millis;
  /** The password of sentinels that ask for one. */
  readonly sentinelPassword?: string;
  readonly sentinelUsername?: string;
  /** For `rediss` URLs, those of sentinels as well. */
  readonly tls?: RedisTls;
}

/** One Redis, or a cluster of them: the same commands, since every key a script touches shares a slot. */
export type RedisClient = Redis | Cluster;

const retryStrategy = (times: number): number => Math.min(50 * times, 1000);

/** A master that has become a replica: by the same name, or by its sentinels, the new one is found. */
const reconnectOnError = (error: Error): boolean => refusalWord(error) === "READONLY";

const commandOptions = ({ connectTimeoutMs, commandTimeoutMs }: RedisOptions) => ({
  connectTimeout: connectTimeoutMs,
  commandTimeout: commandTimeoutMs,
  // A command that may or may not have run is repeated by us under its request's id, never by the client.
  autoResendUnfulfilledCommands: false,
  reconnectOnError,
});

/** What the first node's URL says holds for all nodes of a cluster: who we are, and whether to speak TLS. */
function credentialsOf({ url, tls = {} }: RedisOptions) {
  const { username, password, protocol } = new URL(url);
  return {
    ...(username && { username: decodeURIComponent(username) }),
    ...(password && { password: decodeURIComponent(password) }),
    ...(protocol === "rediss:" && { tls }),
  };
}

type ClientOptions = Omit<AllOptions, "replyMapping">;

/** A client of one Redis, whether its place is known or its sentinels tell it. */
function makeAlone(options: RedisOptions, more: ClientOptions): Redis {
  const all: ClientOptions = { retryStrategy, ...more };
  const { url, tls = {} } = options;
  return isSentinelUrl(url)
    ? new Redis({ ...sentinelsIn(options), ...all })
    : new Redis(url, { ...all, ...(url.startsWith("rediss:") && { tls }) });
}

export const connectAlone = (options: RedisOptions): Redis =>
  makeAlone(options, {
    ...commandOptions(options),
    lazyConnect: true,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
  });

/**
 * What a master of a cluster did not carry out, since the cluster is down or the connection closed, ioredis 5
 * would send again to any master, also one that stands still: it would be carried out when that goes on, long
 * after its caller was told otherwise.
 */
const neverResent = { retryDelayOnClusterDown: 0, retryDelayOnFailover: 0 };

export function connect(options: RedisOptions): RedisClient {
  if (!options.isCluster) return connectAlone(options);
  const redisOptions = { ...commandOptions(options), ...credentialsOf(options) };
  return new Cluster([options.url], {
    lazyConnect: true,
    enableOfflineQueue: false,
    redisOptions,
    clusterRetryStrategy: retryStrategy,
    ...neverResent,
  });
}

/** Connects a listener to messages, which subscribes itself whenever the connection is ready. */
export function connectForMessages(options: RedisOptions): RedisClient {
  if (options.isCluster) return connect(options);
  return makeAlone(options, {
    ...commandOptions(options),
    lazyConnect: true,
    maxRetriesPerRequest: 0,
    enableOfflineQueue: false,
    autoResubscribe: false,
  });
}

/**
 * Connects BullMQ, whose workers wait in Redis: commands have no limit, and are queued until a lost
 * connection is back.
 */
export function connectForQueues(options: RedisOptions, log: Log): RedisClient {
  const { connectTimeoutMs: connectTimeout } = options;
  const waiting = { connectTimeout, maxRetriesPerRequest: null, reconnectOnError };
  const makeCluster = (): Cluster =>
    new Cluster([options.url], {
      redisOptions: { ...waiting, ...credentialsOf(options) },
      clusterRetryStrategy: retryStrategy,
    });
  const redis = options.isCluster ? makeCluster() : makeAlone(options, waiting);
  redis.on("error", (error: Error) => log.warn({ error: error.message }, "queue connection failed"));
  return redis;
}

const defaultLimitMs = 2000;

/** After so long a command of this client is given up. */
export const limitOf = (redis: RedisClient): Millis =>
  (redis instanceof Cluster ? redis.options.redisOptions?.commandTimeout : redis.options.commandTimeout) ??
  defaultLimitMs;

/** Whether this end of the connection is closed; the other end may not have closed yet. */
export const isEnding = (redis: RedisClient): boolean => redis instanceof Redis && !redis.stream.writable;

interface KeepAliveParts {
  readonly clock: Clock;
  readonly log: Log;
  /** A connection on which nothing is answered for so long is given up. */
  readonly limitMs: Millis;
}

/**
 * What was received by a look, and when the connection was asked whether it lives, as nothing more had come.
 */
interface Heard {
  readonly bytes: number;
  readonly askedAt?: Millis;
}

const looksPerLimit = 2;

/**
 * Looks after the connections of a client: one that is idle is asked, and one that answers nothing is closed,
 * so that the client makes another. A connection that died without a word, as one that a firewall has
 * forgotten, would be waited on for ever.
 */
export function keepAlive(client: RedisClient, { clock, log, limitMs }: KeepAliveParts): () => void {
  const known = new WeakMap<Redis["stream"], Heard>();
  const periodMs = limitMs / looksPerLimit;
  let lookedAt = clock.monotonic();
  const look = (redis: Redis, now: Millis, wasStill: boolean): void => {
    const { stream } = redis;
    // An attempt to connect has a limit of its own.
    if (!stream || stream.destroyed || stream.connecting) return;
    const { bytesRead: bytes } = stream;
    const heard = known.get(stream);
    if (heard?.bytes !== bytes || wasStill) return void known.set(stream, { bytes });
    const { askedAt = now } = heard;
    known.set(stream, { bytes, askedAt });
    if (now - askedAt < limitMs) return ask(redis);
    log.warn({ limitMs }, "redis connection closed that answered nothing");
    stream.destroy();
  };
  return clock.every(periodMs, () => {
    const now = clock.monotonic();
    // A process that stood still has not listened: what has come meanwhile is read after this.
    const wasStill = now - lookedAt > 2 * periodMs;
    lookedAt = now;
    for (const redis of client instanceof Cluster ? client.nodes("all") : [client])
      look(redis, now, wasStill);
  });
}

/** One that is not ready is just being asked who it is. */
function ask(redis: Redis): void {
  if (redis.status === "ready") redis.ping().catch(() => {});
}
