import { Cluster, Redis } from "ioredis";
import { RemudaError } from "../base/errors.js";
import type { Log } from "../base/log.js";
import { textOf } from "../base/log.js";
import type { Millis } from "../base/clock.js";
import { loadScripts, type Script } from "./scripts.js";

export interface RedisOptions {
  /** `redis://…`, `rediss://…`, or the path of a unix socket. */
  readonly url: string;
  /** Whether the URL names one node of a Redis Cluster. */
  readonly isCluster: boolean;
  readonly connectTimeoutMs: Millis;
  readonly commandTimeoutMs: Millis;
}

/** What a script answered: its word, its payload, Redis's time in ms, and what is left to be done. */
export interface Reply {
  readonly kind: string;
  readonly payload: string;
  readonly at: Millis;
  readonly effects: string;
}

export interface Member {
  readonly host: string;
  readonly port: number;
}

/** The answer to ROLE: of a master its replicas, of a replica its master. */
function membersIn(role: unknown): readonly Member[] {
  const [kind, second, third] = role as [string, unknown, unknown];
  if (kind === "slave") return [{ host: String(second), port: Number(third) }];
  return Array.isArray(third) ? third.map(([host, port]: [unknown, unknown]) => ({ host: String(host), port: Number(port) })) : [];
}

/** Whom its name has led to. */
function peerOf({ stream }: Redis): readonly Member[] {
  const { remoteAddress: host, remotePort: port } = stream as { readonly remoteAddress?: string; readonly remotePort?: number };
  return host !== undefined && port !== undefined ? [{ host, port }] : [];
}

/** One Redis, or a cluster of them: the same commands, since every key a script touches shares a slot. */
export type Client = Redis | Cluster;

const nodeOptions = ({ connectTimeoutMs, commandTimeoutMs }: RedisOptions) => ({
  connectTimeout: connectTimeoutMs,
  commandTimeout: commandTimeoutMs,
  // A command that may or may not have run is repeated by us under its request's id, never by the client.
  autoResendUnfulfilledCommands: false,
});
const retryStrategy = (times: number): number => Math.min(50 * times, 1000);

/** What the first node's URL says holds for all nodes of a cluster: who we are, and whether to speak TLS. */
function credentialsOf(url: string) {
  const { username, password, protocol } = new URL(url);
  return {
    ...(username && { username: decodeURIComponent(username) }), ...(password && { password: decodeURIComponent(password) }),
    ...(protocol === "rediss:" && { tls: {} }),
  };
}

export const connectAlone = (options: RedisOptions): Redis =>
  new Redis(options.url, { ...nodeOptions(options), lazyConnect: true, enableOfflineQueue: false, maxRetriesPerRequest: 0, retryStrategy });

export function connect(options: RedisOptions): Client {
  if (!options.isCluster) return connectAlone(options);
  const redisOptions = { ...nodeOptions(options), ...credentialsOf(options.url) };
  return new Cluster([options.url], { lazyConnect: true, enableOfflineQueue: false, redisOptions, clusterRetryStrategy: retryStrategy });
}

/** For BullMQ, whose workers wait in Redis: no limit on a command, and queued until a lost connection is back. */
export function connectForQueues(options: RedisOptions, log: Log): Client {
  const { connectTimeoutMs: connectTimeout } = options;
  const waiting = { connectTimeout, maxRetriesPerRequest: null };
  const redis = options.isCluster
    ? new Cluster([options.url], { redisOptions: { ...waiting, ...credentialsOf(options.url) }, clusterRetryStrategy: retryStrategy })
    : new Redis(options.url, { ...waiting, retryStrategy });
  redis.on("error", (error: Error) => log.warn({ error: error.message }, "queue connection failed"));
  return redis;
}

/** What a script is given, by the names in its header. */
export type Args = Readonly<Record<string, string | number>>;

/** One connection for commands, with our scripts; errors of the connection become `store_unavailable`. */
export class Store {
  readonly #scripts: ReadonlyMap<string, Script> = loadScripts();
  #hasContact = false;
  #gathering: Redis["stream"] | undefined;
  #contact: Promise<void> | undefined;

  constructor(readonly redis: Client, log: Log) {
    redis.on("error", (error: Error) => log.warn({ error: error.message }, "redis connection failed"));
    redis.on("ready", () => {
      this.#hasContact = true;
    });
  }

  /** Whether Redis was ever reached. */
  get hasContact(): boolean {
    return this.#hasContact;
  }

  /** Waits until Redis answers, however long it takes: a daemon may start before it does. Throws when `stopping` aborts. */
  async open(stopping: AbortSignal): Promise<void> {
    const ready = new Promise<void>((resolve, reject) => {
      this.redis.once("ready", resolve);
      stopping.addEventListener("abort", () => reject(new Error("stopped before Redis was reached")), { once: true });
    });
    // The first attempt's failure is logged as every other; the client goes on trying.
    this.redis.connect().catch(() => {});
    await ready;
    // Loaded ahead, so that no request pays for it; a Redis that forgot them is told again.
    await Promise.all([...this.#scripts.values()].map((script) => this.redis.script("LOAD", script.text)));
  }

  /** Where else the data is, or will be after a failover: nodes of the cluster, else the master or its replicas. */
  async members(): Promise<readonly Member[]> {
    const { redis } = this;
    if (redis instanceof Cluster) return redis.nodes("all").flatMap(({ options: { host, port } }) => (host && port ? [{ host, port }] : []));
    return [...membersIn(await redis.call("ROLE")), ...peerOf(redis)];
  }

  async close(): Promise<void> {
    // One that does not answer is left without a word.
    if (this.redis.status === "ready") await this.redis.quit().catch(() => {});
    this.redis.disconnect();
  }

  /**
   * What one turn of the event loop asks leaves in one write: each write may have to wake Redis, which costs more than most commands.
   * A cluster's client has a connection for each node and is left to itself.
   */
  #gather(): void {
    if (!(this.redis instanceof Redis) || this.#gathering === this.redis.stream) return;
    const { stream } = this.redis;
    this.#gathering = stream;
    stream.cork();
    setImmediate(() => {
      this.#gathering = undefined;
      stream.uncork();
    });
  }

  /** Runs a plain command; an unreachable Redis is `store_unavailable`. */
  async ask<Value>(command: (redis: Client) => Promise<Value>): Promise<Value> {
    this.#gather();
    try {
      return await command(this.redis);
    } catch (error) {
      throw unavailable(error);
    }
  }

  /**
   * Runs a script with the arguments its header names, each from the first source that has it. A connection that broke under it is
   * tried once more, which its request's id makes harmless.
   */
  async run(name: string, keyOf: (key: string) => string, ...sources: readonly Args[]): Promise<Reply> {
    const script = this.#scripts.get(name);
    if (!script) throw new Error(`there is no script ${name}`);
    const parts = [...script.keys.map(keyOf), ...script.args.map((arg) => argumentOf(script, sources, arg))];
    try {
      return await this.#send(script, parts);
    } catch (error) {
      if (!isConnectionFault(error)) throw error;
      await this.#nextContact();
      return await this.#send(script, parts).catch((again: unknown) => {
        throw unavailable(again);
      });
    }
  }

  /** Resolves when the connection stands, or when one more attempt at it has failed. All who wait share one look at it. */
  #nextContact(): Promise<void> {
    const { redis } = this;
    if (redis.status === "ready" || redis.status === "end") return Promise.resolve();
    this.#contact ??= this.#attempt().finally(() => (this.#contact = undefined));
    return this.#contact;
  }

  #attempt(): Promise<void> {
    const { redis } = this;
    return new Promise((resolve) => {
      let isTried = redis.status === "connecting";
      const onConnecting = (): void => void (isTried = true);
      const onClose = (): void => {
        if (isTried) finish();
      };
      const finish = (): void => {
        redis.off("connecting", onConnecting).off("close", onClose).off("ready", finish).off("end", finish);
        resolve();
      };
      redis.on("connecting", onConnecting).on("close", onClose).on("ready", finish).on("end", finish);
    });
  }

  async #send(script: Script, parts: readonly (string | number)[]): Promise<Reply> {
    const [kind = "", payload = "", at = "0", effects = ""] = (await this.#evaluate(script, parts)) as string[];
    return { kind, payload, at: Number(at), effects };
  }

  async #evaluate(script: Script, parts: readonly (string | number)[]): Promise<unknown> {
    this.#gather();
    try {
      return await this.redis.evalsha(script.sha, script.keys.length, ...parts);
    } catch (error) {
      if (!textOf(error).startsWith("NOSCRIPT")) throw error;
      return await this.redis.eval(script.text, script.keys.length, ...parts);
    }
  }
}

function argumentOf(script: Script, sources: readonly Args[], arg: string): string | number {
  for (const source of sources) {
    const value = source[arg];
    if (value !== undefined) return value;
  }
  throw new Error(`script ${script.name} was not given ${arg}`);
}

/** Redis's own refusals carry an upper-case word and come as `ReplyError`; everything else is the connection's fault. */
const isConnectionFault = (error: unknown): boolean => !(error instanceof Error && error.name === "ReplyError");
const unavailable = (error: unknown): unknown =>
  isConnectionFault(error) ? new RemudaError("store_unavailable", { cause: error }) : error;
