import type { Redis } from "ioredis";
import { type Clock, type Millis, systemClock } from "../../base/clock.js";
import { within } from "../../base/deadline.js";
import { RemudaError } from "../../base/errors.js";
import { storeFault } from "../../base/store-fault.js";
import { connectAlone, type RedisOptions } from "./connect.js";
import { appendedKey } from "./keys.js";
import { isSentinelUrl, sentinelPlaces } from "./sentinels.js";

/** Redis that syncs once a second postpones that by 2 s at most where its disk is busy. */
const waitLimitMs: Millis = 5_000;
/** The key goes by itself. */
const keptMs: Millis = 60_000;

/**
 * Waits by WAITAOF (redis.io) until a server's file is synced. It blocks the connection it is sent
 * on, and waits for what that connection has written: so each wait has a connection of its own, and writes a
 * key after what is to be waited for.
 */
export class AppendWait {
  constructor(
    private readonly options: RedisOptions,
    private readonly clock: Clock = systemClock,
  ) {}

  /**
   * Whether the server has the command, as Redis has it since 8.0, and an append-only file. One that never
   * syncs is not told apart.
   */
  async isOffered(): Promise<boolean> {
    return await this.#connected(async (redis) => {
      if (!isTrusted(await redis.info("server"))) return false;
      // Where nothing was written it answers at once.
      return isSyncedReply(await redis.call("WAITAOF", 1, 0, 1));
    }).catch((error: unknown) => {
      const fault = storeFault(error);
      // Another refusal comes of a server's own state, as while it loads its file.
      if (fault instanceof Error && fault.name === "ReplyError") return false;
      throw fault;
    });
  }

  /** Resolves once everything that the server has answered is on its disk; throws `store_unavailable`. */
  async sync(): Promise<void> {
    const isSynced = await this.#connected(async (redis) => {
      await redis.set(appendedKey, "1", "PX", keptMs);
      return isSyncedReply(await redis.call("WAITAOF", 1, 0, waitLimitMs));
    }).catch((error: unknown) => {
      throw storeFault(error);
    });
    if (!isSynced)
      throw new RemudaError("store_unavailable", { message: "Redis did not sync its file in time" });
  }

  async #connected<Value>(work: (redis: Redis) => Promise<Value>): Promise<Value> {
    const commandTimeoutMs = waitLimitMs + this.options.commandTimeoutMs;
    const redis = connectAlone({ ...this.options, commandTimeoutMs });
    // What ends a connection is told to whoever waits for an answer on it.
    redis.on("error", () => {});
    try {
      const limit = { what: "connecting to wait for Redis's file", limitMs: this.#connectLimitMs() };
      await within(this.clock, limit, redis.connect());
      return await work(redis);
    } finally {
      redis.disconnect();
    }
  }

  /**
   * While no sentinel answers ioredis 6.0 tries them in turn without end. Each may take its time before one
   * tells where Redis is.
   */
  #connectLimitMs(): Millis {
    const { url, connectTimeoutMs, commandTimeoutMs } = this.options;
    const sentinels = isSentinelUrl(url) ? sentinelPlaces(url).length : 0;
    return (sentinels + 1) * (connectTimeoutMs + commandTimeoutMs);
  }
}

/** How many have synced it: the server itself, and its replicas. */
const isSyncedReply = (reply: unknown): boolean => Array.isArray(reply) && Number(reply[0]) >= 1;

/**
 * Before 8.0 the command may answer before the sync where Redis syncs once a second (redis/redis#13793), and
 * so does that of Valkey up to 9.1 at least.
 */
function isTrusted(info: string): boolean {
  const major = Number(/^redis_version:(\d+)\./m.exec(info)?.[1]);
  return major >= 8 && !/^(valkey_version|server_name:valkey)/m.test(info);
}
