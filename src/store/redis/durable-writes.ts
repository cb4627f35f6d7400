import { Cluster, type Redis } from "ioredis";
import type { Clock, Millis } from "../../base/clock.js";
import { RemudaError } from "../../base/errors.js";
import type { Log } from "../../base/log.js";
import type { RedisClient } from "./connect.js";
import type { ScriptStore } from "./redis.js";

interface DurableOptions {
  /** Whether the server is the daemon's own, so that its settings are ours to change. */
  readonly isPrivate: boolean;
  /** Whether the operator lets be written what Redis may lose. */
  readonly allowsLoss: boolean;
  readonly clock: Clock;
  readonly log: Log;
}

/** `lossy`: Redis may lose what it has acknowledged, and the operator lets it; `refused`: he does not. */
type WriteSafety = "durable" | "lossy" | "refused";

/**
 * The private Redis goes on to sync each write for so long, in which the same request may write again. Leases
 * wait for the disk as well meanwhile, so it is short.
 */
const lingerMs: Millis = 20;
/** A server's settings are read anew after so long. */
const knownForMs: Millis = 60_000;

/**
 * Writes that are not acknowledged before they are on disk (docs/vault.md#durability). The private Redis
 * syncs every write while one of these is under way: its replies leave after the sync. Another has to have
 * `appendfsync always`, since the daemon changes no settings there.
 */
export class DurableWrites {
  #writers = 0;
  #syncing: Promise<void> | undefined;
  #cancelEnd = (): void => {};
  #known: { readonly isSynced: boolean; readonly until: Millis } | undefined;

  constructor(
    private readonly store: ScriptStore,
    private readonly options: DurableOptions,
  ) {}

  /** Throws `not_supported`, without having done anything, where Redis may lose it and nobody allows that. */
  async write<Value>(work: () => Promise<Value>): Promise<Value> {
    if (this.options.isPrivate) return await this.#writeSynced(work);
    if (this.#safetyOf(await this.#isSynced()) !== "refused") return await work();
    throw new RemudaError("not_supported", {
      message:
        "This deployment's Redis may lose what it has acknowledged (appendfsync is not always), " +
        "and vault.allow_lossy_redis is false",
    });
  }

  /** The same as far as it is known by now; a probe waits for no Redis. */
  knownSafety(): WriteSafety | undefined {
    if (this.options.isPrivate) return "durable";
    this.#isSynced().catch(() => {});
    return this.#known && this.#safetyOf(this.#known.isSynced);
  }

  #safetyOf(isSynced: boolean): WriteSafety {
    if (isSynced) return "durable";
    return this.options.allowsLoss ? "lossy" : "refused";
  }

  async #writeSynced<Value>(work: () => Promise<Value>): Promise<Value> {
    this.#writers += 1;
    try {
      this.#syncing ??= this.#setSync("always");
      await this.#syncing;
      return await work();
    } catch (error) {
      // The setting may not have been taken: the next writer asks for it again.
      this.#syncing = undefined;
      throw error;
    } finally {
      this.#writers -= 1;
      this.#cancelEnd();
      if (this.#writers === 0) this.#cancelEnd = this.options.clock.after(lingerMs, () => this.#letGo());
    }
  }

  /** One connection carries the settings in their order: whoever writes from here on asks for it anew. */
  #letGo(): void {
    if (this.#writers > 0 || this.#syncing === undefined) return;
    this.#syncing = undefined;
    this.#setSync("everysec").catch(() => this.options.log.warn({}, "redis goes on to sync each write"));
  }

  async #setSync(to: "always" | "everysec"): Promise<void> {
    await this.store.ask((redis) => redis.config("SET", "appendfsync", to));
  }

  async #isSynced(): Promise<boolean> {
    const now = this.options.clock.monotonic();
    if (this.#known && now < this.#known.until) return this.#known.isSynced;
    const isSynced = await this.store.ask(async (redis) => {
      const found = await Promise.all(mastersOf(redis).map(isSyncedServer));
      return found.length > 0 && found.every(Boolean);
    });
    this.#known = { isSynced, until: now + knownForMs };
    return isSynced;
  }
}

const mastersOf = (redis: RedisClient): readonly Redis[] =>
  redis instanceof Cluster ? redis.nodes("master") : [redis];

/** One that does not tell its settings, as those of some hosts, is taken for one that loses. */
async function isSyncedServer(redis: Redis): Promise<boolean> {
  try {
    const told = (await redis.config("GET", "append*")) as readonly string[];
    const valueOf = (name: string): string | undefined => told[told.indexOf(name) + 1];
    return valueOf("appendonly") === "yes" && valueOf("appendfsync") === "always";
  } catch {
    return false;
  }
}
