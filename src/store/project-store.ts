import {
  type BrowserId,
  findPoolId,
  type Partition,
  partitionOf,
  onDemandPartition,
  type PoolId,
  type ProjectId,
} from "../base/ids.js";
import { forEachConcurrently } from "../base/concurrently.js";
import { groupBy } from "../base/group-by.js";
import type { Lease } from "../pool/browser.js";
import type { IdempotencyKey, Waiter } from "../pool/ports/pool-store.js";
import type { ProjectBounds, ProjectStore, Reservation } from "../pool/ports/project-store.js";
import type { Tombstone } from "../pool/session.js";
import {
  partitionKey,
  type PartitionPart,
  projectIdempotencyKey,
  projectKey,
  type ProjectPart,
} from "./redis/keys.js";
import type { StoreLimits } from "./limits.js";
import { isPending } from "./pending.js";
import { isPartition, parseBrowser } from "./records.js";
import type { ScriptReply, ScriptStore } from "./redis/redis.js";

type NameKind = "pool" | "session";
interface Held {
  readonly owner: string;
  readonly partition: Partition;
  readonly deadline: number;
}

const partitionsAtOnce = 64;
/** A reservation whose owner has not come to be by then is void. Longer than any wait for a browser. */
const nameGraceMs = 120_000;
const mostAtOnce = 1000;
/** Redis keeps streams in pieces of 100: less would save nothing. */
const leastEvents = 100;
/**
 * Names compare without regard to case and accents where they are looked up (docs/api.md#lists), but are
 * unique as written.
 */
const fieldOf = (kind: NameKind, name: string): string => `${kind}:${name}`;

/** What spans the partitions of one project, in a slot of its own. */
export class RedisProjectStore implements ProjectStore {
  constructor(
    private readonly store: ScriptStore,
    private readonly project: ProjectId,
    private readonly limits: StoreLimits,
  ) {}

  async reserveName(ask: {
    kind: NameKind;
    name: string;
    owner: string;
    partition: Partition;
  }): Promise<Reservation | undefined> {
    const reply = await this.#run("reserve-name", {
      field: fieldOf(ask.kind, ask.name),
      owner: ask.owner,
      partition: ask.partition,
      graceMs: nameGraceMs,
    });
    return reply.kind === "reserved" ? { deadline: Number(reply.payload) } : undefined;
  }

  /** With `only`, a later reservation of the same owner stays. */
  async freeName(ask: { kind: NameKind; name: string; owner: string; only?: Reservation }): Promise<void> {
    await this.#run("free-name", {
      field: fieldOf(ask.kind, ask.name),
      owner: ask.owner,
      deadline: ask.only?.deadline ?? "",
    });
  }

  async findName(kind: NameKind, name: string): Promise<{ owner: string; partition: Partition } | undefined> {
    const text = await this.store.ask((redis) => redis.hget(this.#key("names"), fieldOf(kind, name)));
    return text === null ? undefined : (JSON.parse(text) as Held);
  }

  async reserveSize(pool: PoolId, size: number, most: ProjectBounds): Promise<"reserved" | "over" | "many"> {
    const limit = most.pooledSessions ?? "";
    const reply = await this.#run("reserve-size", {
      pool,
      size,
      limit,
      mostPools: most.maxPools,
      graceMs: nameGraceMs,
    });
    return reply.kind as "reserved" | "over" | "many";
  }

  async settleSize(pool: PoolId): Promise<void> {
    const before = await this.store.ask((redis) => redis.hget(this.#sizes(), pool));
    if (before === null) return;
    const [size, deadline] = before.split(" ");
    const record = await this.#recordOf(partitionOf(pool));
    if (record.size !== size)
      await this.#run("settle-size", {
        pool,
        before,
        after: record.size ? `${record.size} ${deadline}` : "",
      });
  }

  async addPool(pool: PoolId): Promise<void> {
    const at = await this.#now();
    const noted = await this.store.ask((redis) => redis.hget(this.#key("pools"), pool));
    if (noted === null || noted.startsWith("creating"))
      await this.store.ask((redis) => redis.hset(this.#key("pools"), pool, `creating ${at}`));
  }

  async openPool(pool: PoolId): Promise<void> {
    await this.store.ask((redis) => redis.hset(this.#key("pools"), pool, "open"));
  }

  async dropPool(pool: PoolId): Promise<void> {
    await this.store.ask((redis) =>
      redis.multi().hset(this.#key("pools"), pool, "closing").hdel(this.#sizes(), pool).exec(),
    );
  }

  async forgetPool(pool: PoolId): Promise<void> {
    await this.moveTombstones(partitionOf(pool));
    await this.store.ask((redis) =>
      redis.multi().hdel(this.#key("pools"), pool).hdel(this.#sizes(), pool).exec(),
    );
  }

  async pools(): Promise<readonly PoolId[]> {
    const all = await this.store.ask((redis) => redis.hgetall(this.#key("pools")));
    return Object.entries(all).flatMap(([id, state]) => (state === "open" ? (findPoolId(id) ?? []) : []));
  }

  async partitions(): Promise<readonly Partition[]> {
    const all = await this.store.ask((redis) => redis.hkeys(this.#key("pools")));
    return [onDemandPartition, ...all.map((id) => partitionOf(id as PoolId)).filter(isPartition)];
  }

  async sweepPools(): Promise<void> {
    const all = await this.store.ask((redis) => redis.hgetall(this.#key("pools")));
    const now = await this.#now();
    for (const [id, noted] of Object.entries(all)) {
      const isVoid =
        noted.startsWith("creating") &&
        !isPending(Number(noted.split(" ")[1]) + nameGraceMs, now, nameGraceMs);
      if (noted === "closing" || isVoid) await this.#settlePool(id as PoolId, noted);
    }
    await this.#sweepSizes(now);
  }

  async settlePartition(partition: Partition): Promise<void> {
    const all = Object.entries(await this.store.ask((redis) => redis.hgetall(this.#key("pools"))));
    for (const [pool] of all.filter(
      ([id, noted]) => noted === "open" && partitionOf(id as PoolId) === partition,
    )) {
      await this.#settlePool(pool as PoolId, "open");
      await this.#freeNamesOf(pool);
    }
  }

  async sweepPendingTombstones(): Promise<void> {
    const failures = await forEachConcurrently(await this.partitions(), partitionsAtOnce, (partition) =>
      this.moveTombstones(partition),
    );
    if (failures.length > 0) throw failures[0];
  }

  async forgetKey(keyed: IdempotencyKey): Promise<void> {
    await this.store.ask((redis) => redis.del(projectIdempotencyKey(this.project, keyed.key)));
  }

  async settleKey(keyed: IdempotencyKey, value: string): Promise<void> {
    const text = JSON.stringify({ body: keyed.body, value });
    await this.store.ask((redis) =>
      redis.set(projectIdempotencyKey(this.project, keyed.key), text, "KEEPTTL", "XX"),
    );
  }

  async remember(
    keyed: IdempotencyKey,
    value: string,
  ): Promise<{ kind: "new" } | { kind: "same"; value: string } | { kind: "mismatch" }> {
    const keyOf = (): string => projectIdempotencyKey(this.project, keyed.key);
    const reply = await this.store.run("remember-key", keyOf, {
      body: keyed.body,
      value,
      keepMs: this.limits.idempotencyMs,
    });
    if (reply.kind === "same") return { kind: "same", value: reply.payload };
    return { kind: reply.kind === "new" ? "new" : "mismatch" };
  }

  async sweepNames(): Promise<void> {
    const all = await this.store.ask((redis) => redis.hgetall(this.#key("names")));
    const now = await this.#now();
    const due = Object.entries(all)
      .map(([field, text]) => ({ field, ...(JSON.parse(text) as Held) }))
      .filter(({ deadline }) => !isPending(deadline, now, nameGraceMs));
    const byPartition = groupBy(due, ({ partition }) => partition);
    for (const [partition, held] of byPartition) {
      const isBorne = await this.#borneIn(partition, held);
      const over = held.filter(({ field, owner }) => !isBorne(field, owner));
      for (const { field, owner, deadline } of over) await this.#run("free-name", { field, owner, deadline });
    }
  }

  async findTombstone(id: BrowserId): Promise<Tombstone | undefined> {
    const text = await this.store.ask((redis) => redis.hget(this.#key("tombstones"), id));
    return text === null ? undefined : parseTombstone(text);
  }

  async findTombstoneNamed(name: string): Promise<Tombstone | undefined> {
    const id = await this.store.ask((redis) => redis.hget(this.#key("tombstoneNames"), name));
    return id === null ? undefined : await this.findTombstone(id as BrowserId);
  }

  async tombstones(from: number, count: number): Promise<readonly Tombstone[]> {
    const ids = await this.store.ask((redis) =>
      redis.zrevrange(this.#key("tombstoneOrder"), from, from + count - 1),
    );
    if (ids.length === 0) return [];
    const texts = await this.store.ask((redis) => redis.hmget(this.#key("tombstones"), ...ids));
    return texts.flatMap((text) => (text === null ? [] : parseTombstone(text)));
  }

  countTombstones(): Promise<number> {
    return this.store.ask((redis) => redis.zcard(this.#key("tombstoneOrder")));
  }

  async sweepTombstones(): Promise<void> {
    await this.#storeTombstones([]);
  }

  async sweepEvents(): Promise<void> {
    const partitions = await this.partitions();
    const share = Math.max(leastEvents, Math.floor(this.limits.eventsKeptInAll / partitions.length));
    await Promise.all(
      partitions.map((partition) =>
        this.store.ask((redis) => redis.xtrim(this.#in(partition, "events"), "MAXLEN", share)),
      ),
    );
  }

  /** Moves what a partition has to bury into the project's slot; again is harmless. */
  async moveTombstones(partition: Partition): Promise<void> {
    const key = this.#in(partition, "pendingTombstones");
    const tombstones = await this.store.ask((redis) => redis.hgetall(key));
    const ids = Object.keys(tombstones);
    if (ids.length === 0) return;
    await this.#storeTombstones(Object.values(tombstones));
    await this.store.ask((redis) => redis.hdel(key, ...ids));
  }

  #storeTombstones(tombstones: readonly string[]): Promise<ScriptReply> {
    const { maxTombstones: most, tombstoneMs: keepMs } = this.limits;
    return this.#run("store-tombstones", { tombstones: JSON.stringify(tombstones), most, keepMs });
  }

  /**
   * A name lives with the pool that bears it, with the lease that bears it, or with the waiter that will have
   * that lease. All of a partition are looked for at once.
   */
  async #borneIn(
    partition: Partition,
    held: readonly Held[],
  ): Promise<(field: string, owner: string) => boolean> {
    const owners = held.map(({ owner }) => owner);
    // The waiter first: it becomes a lease, never the other way round.
    const waiting = await this.store.ask((redis) => redis.hvals(this.#in(partition, "waiterRecords")));
    const leases = await this.#leasesOf(partition, owners);
    const { id, name } = await this.#recordOf(partition);
    const borne = [
      ...waiting.map((text) => JSON.parse(text) as Waiter).map(({ lease, name: theirs }) => [lease, theirs]),
      ...leases.map((lease) => [lease.id, lease.name]),
    ].map(([owner, theirs]) => `session:${theirs} ${owner}`);
    const all = new Set([...borne, `pool:${name} ${id}`]);
    return (field, owner) => all.has(`${field} ${owner}`);
  }

  async #leasesOf(partition: Partition, leases: readonly string[]): Promise<readonly Lease[]> {
    const found: Lease[] = [];
    for (let from = 0; from < leases.length; from += mostAtOnce) {
      const part = leases.slice(from, from + mostAtOnce);
      const holders = await this.store.ask((redis) => redis.hmget(this.#in(partition, "leases"), ...part));
      const ids = holders.filter((id) => id !== null);
      const texts =
        ids.length === 0
          ? []
          : await this.store.ask((redis) => redis.hmget(this.#in(partition, "browsers"), ...ids));
      found.push(...texts.flatMap((text) => (text === null ? [] : (parseBrowser(text).lease ?? []))));
    }
    return found;
  }

  /** What an open pool's record says; nothing of one that is deleted or never came to be. */
  async #recordOf(
    partition: Partition,
  ): Promise<{ state?: string; id?: string; name?: string; size?: string }> {
    const key = this.#in(partition, "pool");
    const [state, id, name, size] = await this.store.ask((redis) =>
      redis.hmget(key, "state", "id", "name", "size"),
    );
    if (!state) return {};
    return state === "open"
      ? { state, ...(id ? { id } : {}), ...(name ? { name } : {}), ...(size ? { size } : {}) }
      : { state };
  }

  /**
   * A note that the pool's record does not bear out: its creator or its deleter has died on the way, or its
   * partition is empty by now.
   */
  async #settlePool(pool: PoolId, noted: string): Promise<void> {
    const { state } = await this.#recordOf(partitionOf(pool));
    if (!state) return await this.forgetPool(pool);
    if (noted !== "closing") await (state === "open" ? this.openPool(pool) : this.dropPool(pool));
  }

  async #freeNamesOf(owner: string): Promise<void> {
    const all = Object.entries(await this.store.ask((redis) => redis.hgetall(this.#key("names"))));
    const own = all.filter(([, text]) => (JSON.parse(text) as Held).owner === owner);
    await Promise.all(own.map(([field]) => this.#run("free-name", { field, owner, deadline: "" })));
  }

  async #sweepSizes(now: number): Promise<void> {
    const all = await this.store.ask((redis) => redis.hgetall(this.#sizes()));
    for (const [pool, before] of Object.entries(all)) {
      const [, deadline] = before.split(" ");
      if (!isPending(Number(deadline), now, nameGraceMs)) await this.settleSize(pool as PoolId);
    }
  }

  async #now(): Promise<number> {
    const [seconds] = await this.store.ask((redis) => redis.time());
    return Number(seconds) * 1000;
  }

  #run(name: string, args: Record<string, string | number>): Promise<ScriptReply> {
    return this.store.run(name, (key) => this.#key(key as ProjectPart), args);
  }

  #key(part: ProjectPart): string {
    return projectKey(this.project, part);
  }

  #in(partition: Partition, part: PartitionPart): string {
    return partitionKey(this.project, partition, part);
  }

  #sizes(): string {
    return this.#key("sizes");
  }
}

function parseTombstone(text: string): Tombstone {
  const { poolId, poolName, ...tombstone } = JSON.parse(text) as Tombstone & {
    poolId?: PoolId;
    poolName?: string;
  };
  return {
    ...tombstone,
    ...(poolId ? { pool: { id: poolId, ...(poolName ? { name: poolName } : {}) } } : {}),
  };
}
