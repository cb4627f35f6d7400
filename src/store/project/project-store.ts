import { Type } from "typebox";
import { attemptEach, forEachConcurrently } from "../../base/concurrently.js";
import {
  type BrowserId,
  findBrowserId,
  findPoolId,
  onDemandIn,
  type Partition,
  partitionOf,
  type PoolId,
  type ProjectId,
} from "../../base/ids.js";
import { parserOf } from "../../base/parser.js";
import type { IdempotencyKey } from "../../pool/ports/pool-store.js";
import type { KeptAnswer, ProjectStore } from "../../pool/ports/project-store.js";
import type { Tombstone } from "../../pool/session.js";
import { type StoredRecording, storedRecordingParser } from "../../spec/flight-recording.js";
import type { StoreLimits } from "../limits.js";
import { isPending } from "../pending.js";
import { fieldOf, RedisProjectNames } from "./project-names.js";
import { graceMs, ProjectScripts } from "./project-scripts.js";
import { partitionParts, projectParts } from "../redis/keys.js";
import type { ScriptStore } from "../redis/redis.js";
import { type ReservationAccount, readAccount, RedisReservations } from "../organization/reservations.js";
import { RedisPoolOrder } from "./pool-order.js";
import { RedisTombstones } from "./tombstones.js";

const partitionsAtOnce = 64;
const keptParser = parserOf("a kept answer", Type.Object({ body: Type.String(), value: Type.String() }));

/** Whether the record of a pool that is noted so may still be written. */
function mayCome(noted: string, now: number): boolean {
  const [state, since] = noted.split(" ");
  return state === "creating" && isPending(Number(since) + graceMs, now, graceMs);
}

/** What spans the partitions of one project, in a slot of its own. */
export class RedisProjectStore implements ProjectStore {
  readonly #scripts: ProjectScripts;
  readonly #order: RedisPoolOrder;
  readonly #names: RedisProjectNames;
  readonly #tombstones: RedisTombstones;
  readonly #recordings: RedisRecordings;
  readonly #reservations: RedisReservations;

  constructor(
    store: ScriptStore,
    readonly project: ProjectId,
    private readonly limits: StoreLimits,
  ) {
    this.#scripts = new ProjectScripts(store, project);
    this.#order = new RedisPoolOrder(this.#scripts);
    this.#names = new RedisProjectNames(this.#scripts);
    this.#tombstones = new RedisTombstones(this.#scripts, limits);
    this.#recordings = new RedisRecordings(this.#scripts, limits);
    this.#reservations = new RedisReservations(this.#scripts, limits);
  }

  reserveName: ProjectStore["reserveName"] = (ask) => this.#names.reserve(ask);
  freeName: ProjectStore["freeName"] = (ask) => this.#names.free(ask);
  findName: ProjectStore["findName"] = (kind, name) => this.#names.find(kind, name);
  sweepNames = (): Promise<void> => this.#names.sweep();

  findTombstone = (id: BrowserId): Promise<Tombstone | undefined> => this.#tombstones.find(id);
  findTombstoneNamed = (name: string): Promise<Tombstone | undefined> => this.#tombstones.findNamed(name);
  tombstones: ProjectStore["tombstones"] = (from, count) => this.#tombstones.list(from, count);
  countTombstones = (): Promise<number> => this.#tombstones.count();
  sweepTombstones = (): Promise<void> => this.#tombstones.sweep();
  moveTombstones: ProjectStore["moveTombstones"] = (partition) => this.#tombstones.move(partition);

  keepRecording: ProjectStore["keepRecording"] = (...given) => this.#recordings.keep(...given);
  findRecording: ProjectStore["findRecording"] = (browser) => this.#recordings.find(browser);
  recordings: ProjectStore["recordings"] = (...given) => this.#recordings.newest(...given);

  reserveSize: ProjectStore["reserveSize"] = (...given) => this.#reservations.reserveSize(...given);
  settleSize: ProjectStore["settleSize"] = (...given) => this.#reservations.settleSize(...given);
  giveBackSize: ProjectStore["giveBackSize"] = (...given) => this.#reservations.giveBackSize(...given);
  forgetLimits = (): void => this.#reservations.forgetLimits();
  reserveSession: ProjectStore["reserveSession"] = (lease) => this.#reservations.reserveSession(lease);
  freeSession: ProjectStore["freeSession"] = (lease) => this.#reservations.freeSession(lease);
  settleSession: ProjectStore["settleSession"] = (...given) => this.#reservations.settleSession(...given);
  /** `account`: where it was read for several projects. */
  sweepReservations = async (account?: ReservationAccount): Promise<void> =>
    this.#reservations.sweep(await this.pools(), account ?? (await readAccount(this.#scripts)));

  async addPool(pool: PoolId): Promise<void> {
    const at = await this.#scripts.now();
    const noted = await this.#scripts.ask((redis) => redis.hget(this.#scripts.key("pools"), pool));
    if (noted === null || noted.startsWith("creating"))
      await this.#scripts.ask((redis) => redis.hset(this.#scripts.key("pools"), pool, `creating ${at}`));
  }

  async openPool(pool: PoolId): Promise<void> {
    await this.#scripts.run("open-pool", { pool });
  }

  /** The same of one that Redis had forgotten: it has its old place in the list. */
  async reopenPool(pool: PoolId): Promise<void> {
    await this.#order.add(pool);
    await this.openPool(pool);
  }

  async dropPool(pool: PoolId, name?: string): Promise<void> {
    await this.#scripts.run("drop-pool", { pool, field: name === undefined ? "" : fieldOf("pool", name) });
    await this.#reservations.freeSize(pool);
  }

  async forgetPool(pool: PoolId): Promise<boolean> {
    const partition = partitionOf(pool);
    if (!(await this.#scripts.poolRecord(partition)).state) {
      await this.moveTombstones(partition);
      await this.#scripts.ask((redis) => redis.hdel(this.#scripts.key("pools"), pool));
    }
    // Another attempt under the same key may have written the record since.
    const { state } = await this.#scripts.poolRecord(partition);
    if (state) await this.#settleNote(pool, "creating");
    else await this.#reservations.freeSize(pool);
    return !state;
  }

  async findPoolState(pool: PoolId): Promise<"open" | "deleted" | "creating" | undefined> {
    const noted = await this.#scripts.ask((redis) => redis.hget(this.#scripts.key("pools"), pool));
    const { state } = await this.#scripts.poolRecord(partitionOf(pool));
    if (state === "open") return state;
    if (state || noted === "closing") return "deleted";
    return noted !== null && mayCome(noted, await this.#scripts.now()) ? "creating" : undefined;
  }

  async pools(): Promise<readonly PoolId[]> {
    const all = await this.#scripts.ask((redis) => redis.hgetall(this.#scripts.key("pools")));
    return Object.entries(all).flatMap(([id, state]) => (state === "open" ? (findPoolId(id) ?? []) : []));
  }

  newestPools: ProjectStore["newestPools"] = (...given) => this.#order.newest(...given);

  async partitions(): Promise<readonly Partition[]> {
    const all = await this.#scripts.ask((redis) => redis.hkeys(this.#scripts.key("pools")));
    return [onDemandIn(this.project), ...all.flatMap((id) => findPoolId(id) ?? []).map(partitionOf)];
  }

  async sweepPools(): Promise<void> {
    const all = await this.#scripts.ask((redis) => redis.hgetall(this.#scripts.key("pools")));
    const now = await this.#scripts.now();
    const failures = await forEachConcurrently(Object.entries(all), partitionsAtOnce, async ([id, noted]) => {
      const pool = findPoolId(id);
      if (pool && noted !== "open") await this.#settleNote(pool, noted, mayCome(noted, now));
    });
    await this.#order.mend(await this.pools());
    if (failures.length > 0) throw failures[0];
  }

  async settlePartition(partition: Partition): Promise<boolean> {
    const ids = await this.#scripts.ask((redis) => redis.hkeys(this.#scripts.key("pools")));
    const pools = ids.flatMap((id) => findPoolId(id) ?? []);
    let hasSettled = false;
    for (const pool of pools.filter((id) => partitionOf(id) === partition))
      hasSettled = (await this.settlePool(pool)) || hasSettled;
    return hasSettled;
  }

  async settlePool(pool: PoolId): Promise<boolean> {
    const noted = await this.#scripts.ask((redis) => redis.hget(this.#scripts.key("pools"), pool));
    if (noted !== "open") return false;
    // The pool may have been made since whoever asks has looked.
    const { state } = await this.#scripts.poolRecord(partitionOf(pool));
    if (state === "open") return false;
    await this.#names.freeAllOf(pool);
    await this.#settleNote(pool, noted);
    return true;
  }

  async sweepPendingTombstones(): Promise<void> {
    await attemptEach(await this.partitions(), partitionsAtOnce, (partition) =>
      this.moveTombstones(partition),
    );
  }

  async forgetKey({ key, body }: IdempotencyKey, value: string): Promise<boolean> {
    return (await this.#scripts.runUnderKey("forget-key", key, { body, value })).kind === "forgotten";
  }

  async recall({ key, body }: IdempotencyKey): Promise<KeptAnswer> {
    const text = await this.#scripts.ask((redis) => redis.get(this.#scripts.idempotencyKey(key)));
    if (text === null) return { kind: "new" };
    const kept = keptParser.json(text);
    return kept.body === body ? { kind: "same", value: kept.value } : { kind: "mismatch" };
  }

  async settleKey(idempotencyKey: IdempotencyKey, value: string): Promise<void> {
    const text = JSON.stringify({ body: idempotencyKey.body, value });
    await this.#scripts.ask((redis) =>
      redis.set(this.#scripts.idempotencyKey(idempotencyKey.key), text, "KEEPTTL", "XX"),
    );
  }

  async remember(idempotencyKey: IdempotencyKey, value: string): Promise<KeptAnswer> {
    const reply = await this.#scripts.runUnderKey("remember-key", idempotencyKey.key, {
      body: idempotencyKey.body,
      value,
      keepMs: this.limits.idempotencyMs,
    });
    if (reply.kind === "same") return { kind: "same", value: reply.payload };
    return { kind: reply.kind === "new" ? "new" : "mismatch" };
  }

  /** Removes all that is kept of the project: to be called where nothing is left that anybody asks for. */
  async erase(): Promise<void> {
    const partition = onDemandIn(this.project);
    const own = projectParts.map((part) => this.#scripts.key(part));
    await this.#scripts.ask((redis) => redis.unlink(own));
    const parts = partitionParts.map((part) => this.#scripts.partitionKey(partition, part));
    await this.#scripts.ask((redis) => redis.unlink(parts));
  }

  /** Cuts a partition's stream of events to that many. */
  async cutEvents(partition: Partition, most: number): Promise<void> {
    const key = this.#scripts.partitionKey(partition, "events");
    await this.#scripts.ask((redis) => redis.xtrim(key, "MAXLEN", most));
  }

  /**
   * A note that the pool's record does not bear out: its creator or its deleter has died on the way, or its
   * partition is empty by now. `isToCome`: its record may still be written.
   */
  async #settleNote(pool: PoolId, noted: string, isToCome = false): Promise<void> {
    const { state } = await this.#scripts.poolRecord(partitionOf(pool));
    if (!state) return void (isToCome || (await this.forgetPool(pool)));
    if (noted !== "closing") await (state === "open" ? this.openPool(pool) : this.dropPool(pool));
  }
}

/** What browsers of one project had recorded when they ended by a fault. */
class RedisRecordings {
  constructor(
    private readonly scripts: ProjectScripts,
    private readonly limits: Pick<StoreLimits, "maxRecordings" | "tombstoneMs">,
  ) {}

  async keep(browser: BrowserId, recording: string): Promise<void> {
    const { maxRecordings: most, tombstoneMs: keepMs } = this.limits;
    await this.scripts.run("keep-recording", { browser, recording, most, keepMs });
  }

  async find(browser: BrowserId): Promise<StoredRecording | undefined> {
    const text = await this.scripts.ask((redis) => redis.hget(this.scripts.key("flightRecordings"), browser));
    return text === null ? undefined : storedRecordingParser.json(text);
  }

  /** The newest of browsers of that partition. */
  async newest(partition: Partition, most: number): Promise<readonly StoredRecording[]> {
    const all = await this.scripts.ask((redis) =>
      redis.zrevrange(this.scripts.key("flightRecordingOrder"), 0, -1),
    );
    const ids = all.filter((text) => {
      const id = findBrowserId(text);
      return id !== undefined && partitionOf(id) === partition;
    });
    if (ids.length === 0) return [];
    const texts = await this.scripts.ask((redis) =>
      redis.hmget(this.scripts.key("flightRecordings"), ...ids.slice(0, most)),
    );
    return texts.flatMap((text) => (text === null ? [] : storedRecordingParser.json(text)));
  }
}
