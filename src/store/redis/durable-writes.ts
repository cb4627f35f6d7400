import { Cluster, type Redis } from "ioredis";
import type { Clock, Millis } from "../../base/clock.js";
import { RemudaError } from "../../base/errors.js";
import { isTexts } from "../../base/is-text.js";
import { isStoreAway, storeFault } from "../../base/store-fault.js";
import type { AppendOnlyFile } from "./append-only-file.js";
import type { AppendWait } from "./append-wait.js";
import type { RedisClient } from "./connect.js";
import type { ScriptStore } from "./redis.js";

interface DurableOptions {
  /** The file of the daemon's own server, which this daemon syncs itself. */
  readonly file?: Pick<AppendOnlyFile, "sync" | "close"> | undefined;
  /** How to wait for another server, which is no cluster, to sync its own. */
  readonly wait?: Pick<AppendWait, "sync" | "isOffered"> | undefined;
  /** Whether the operator lets be written what Redis may lose. */
  readonly allowsLoss: boolean;
  readonly clock: Clock;
}

/** `lossy`: Redis may lose what it has acknowledged, and the operator lets it; `refused`: he does not. */
type WriteSafety = "durable" | "lossy" | "refused";
/** What makes a write durable: Redis before it answers, the daemon or a wait after it, or nothing. */
type SyncedBy = "reply" | "file" | "wait" | "nothing";

/** A server's settings are read anew after so long. */
const knownForMs: Millis = 60_000;

/**
 * Writes that are not acknowledged before they are on disk (docs/vault.md#durability). No settings of a
 * server are changed, so that leases wait for no disk.
 */
export class DurableWrites {
  #known: { readonly by: SyncedBy; readonly until: Millis } | undefined;
  #looking: Promise<SyncedBy> | undefined;
  #running: Promise<void> = Promise.resolve();
  #next: Promise<void> | undefined;

  constructor(
    private readonly store: Pick<ScriptStore, "ask">,
    private readonly options: DurableOptions,
  ) {}

  /**
   * Throws `not_supported`, without having done anything, where Redis may lose it and nobody allows that;
   * `store_unavailable` where it was done and may not be on disk.
   */
  async write<Value>(work: () => Promise<Value>): Promise<Value> {
    const by = await this.#syncedBy();
    if (this.#safetyOf(by) === "refused")
      throw new RemudaError("not_supported", {
        message:
          "This deployment's Redis may lose what it has acknowledged (appendfsync is not always, and there " +
          "is no WAITAOF to wait by), and vault.allow_lossy_redis is false",
      });
    const value = await work();
    if (by === "file" || by === "wait") await this.#synced(by);
    return value;
  }

  /** The same as far as it is known by now; a probe waits for no Redis. */
  knownSafety(): WriteSafety | undefined {
    this.#syncedBy().catch(() => {});
    return this.#known && this.#safetyOf(this.#known.by);
  }

  async close(): Promise<void> {
    await this.#running.catch(() => {});
    await this.options.file?.close();
  }

  #safetyOf(by: SyncedBy): WriteSafety {
    if (by !== "nothing") return "durable";
    return this.options.allowsLoss ? "lossy" : "refused";
  }

  /** Whoever asks while a sync is under way shares the next one with all who ask meanwhile. */
  #synced(by: "file" | "wait"): Promise<void> {
    this.#next ??= this.#running
      .catch(() => {})
      .then(() => {
        this.#next = undefined;
        this.#running = Promise.resolve(this.options[by]?.sync());
        return this.#running;
      });
    return this.#next;
  }

  /** All who ask while Redis is being looked at share that look. One that fails is not kept. */
  async #syncedBy(): Promise<SyncedBy> {
    if (this.#known && this.options.clock.monotonic() < this.#known.until) return this.#known.by;
    this.#looking ??= this.#lookAnew().finally(() => (this.#looking = undefined));
    return await this.#looking;
  }

  async #lookAnew(): Promise<SyncedBy> {
    const now = this.options.clock.monotonic();
    const by = this.options.file ? "file" : await this.#look();
    this.#known = { by, until: now + knownForMs };
    return by;
  }

  async #look(): Promise<SyncedBy> {
    const found = await this.store.ask((redis) => Promise.all(mastersOf(redis).map(readSyncing)));
    // A cluster's client that is not connected knows no masters.
    if (found.length === 0) throw new RemudaError("store_unavailable");
    if (found.every((syncing) => syncing === "always")) return "reply";
    const mayWait = found.every((syncing) => syncing !== "never");
    return mayWait && (await this.options.wait?.isOffered()) ? "wait" : "nothing";
  }
}

const mastersOf = (redis: RedisClient): readonly Redis[] =>
  redis instanceof Cluster ? redis.nodes("master") : [redis];

type Syncing = "always" | "at times" | "never" | "untold";

/** A server that does not tell its settings, as some hosted ones, may still have WAITAOF. */
async function readSyncing(redis: Redis): Promise<Syncing> {
  try {
    const told: unknown = await redis.config("GET", "append*");
    if (!isTexts(told)) return "untold";
    const valueOf = (name: string): string | undefined => told[told.indexOf(name) + 1];
    if (valueOf("appendonly") !== "yes" || valueOf("appendfsync") === "no") return "never";
    return valueOf("appendfsync") === "always" ? "always" : "at times";
  } catch (error) {
    // One that could not be asked is asked again; only what it refuses is what it does not tell.
    if (isStoreAway(storeFault(error))) throw error;
    return "untold";
  }
}
