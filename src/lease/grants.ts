import { type Clock, type Millis } from "../base/clock.js";
import {
  type BrowserId,
  type ControlId,
  type Partition,
  partitionOf,
  type LeaseId,
  newRequestId,
  type RequestId,
} from "../base/ids.js";
import { type Log, textOf } from "../base/log.js";
import type { LeaseRequest } from "./lease-request.js";
import { Undos } from "./undos.js";
import { WaiterRecovery, type QueuedRequest } from "./waiter-recovery.js";
import type { Waiters } from "./waiters.js";
import type { PoolStore } from "../pool/ports/pool-store.js";
import type { Projects } from "../pool/ports/project-store.js";

/** What is kept of a request that was answered with a fault: its caller, an HTTP exchange, is not. */
interface Abandoned {
  readonly partition: Partition;
  readonly waiter: RequestId;
  readonly lease: LeaseId;
  readonly connection: RequestId;
  readonly name: string | undefined;
  /** Digest of the idempotency key. */
  readonly key: string | undefined;
}

interface GrantPorts {
  readonly poolStore: PoolStore;
  readonly projects: Pick<Projects, "at">;
  readonly waiters: Waiters;
  readonly clock: Clock;
  readonly log: Log;
  readonly beatPeriodMs: Millis;
}

/**
 * So many abandoned requests are kept, and what comes after them is not. A lease that one of those may have
 * been given ends at its own timeout, and its place in line when a browser is lent to it.
 */
const mostAbandoned = 10_000;

/** So many leases are known at least, and twice as many at most. */
const leastKnown = 10_000;

/** An LRU cache would find out with each lease which is the oldest; here the older half goes at once. */
class NewestLeases {
  #newer = new Map<LeaseId, BrowserId>();
  #older = new Map<LeaseId, BrowserId>();

  set(lease: LeaseId, browser: BrowserId): void {
    if (this.#newer.size >= leastKnown) [this.#older, this.#newer] = [this.#newer, new Map()];
    this.#newer.set(lease, browser);
  }

  get(lease: LeaseId): BrowserId | undefined {
    return this.#newer.get(lease) ?? this.#older.get(lease);
  }
}

/** Replies that were flushed are confirmed this often, in one script per partition. */
const confirmEveryMs: Millis = 50;

/**
 * The grants and waiters of this control: confirms what was delivered (batched, off the caller's path),
 * undoes what was lost, and beats in every partition where it has any, so that nobody takes them for a dead
 * control's. What Redis cannot be told is told again at each beat: as this control lives, nobody else takes
 * it back.
 */
export class Grants {
  readonly #delivered = new Map<Partition, LeaseId[]>();
  readonly #open = new Map<LeaseId, Partition>();
  /**
   * The browser of each lease whose grant a request here was told: a late message of the same grant says
   * nothing new.
   */
  readonly #granted = new NewestLeases();
  readonly #recovery: WaiterRecovery;
  readonly #undos: Undos;
  #notKept = 0;
  readonly #underWay = new Set<Promise<unknown>>();
  readonly #stops: (() => void)[];

  constructor(
    private readonly control: ControlId,
    private readonly ports: GrantPorts,
  ) {
    this.#undos = new Undos(ports.log);
    this.#recovery = new WaiterRecovery({
      ...ports,
      undo: (partition, lease) => this.settle(partition, lease, "lost"),
    });
    this.#stops = [
      ports.clock.every(confirmEveryMs, () => this.#confirm()),
      ports.clock.every(ports.beatPeriodMs, () => this.#beat()),
    ];
  }

  /** A lease whose reply is on its way. */
  opened(partition: Partition, lease: LeaseId, browser: BrowserId): void {
    this.#open.set(lease, partition);
    this.#granted.set(lease, browser);
  }

  settle(partition: Partition, lease: LeaseId, outcome: "delivered" | "lost"): void {
    this.#open.delete(lease);
    if (outcome === "delivered") {
      this.#deliveredAt(partition).push(lease);
      return;
    }
    // The request makes every further try a repeat of the first.
    const request = newRequestId();
    const run = (): Promise<unknown> => this.ports.poolStore.undo(partition, lease, request);
    this.#undos.add({ partition, id: lease, what: "lost grant undone", run });
  }

  /**
   * A grant that no request here waits for: a failover has brought back a place that was given up, and nobody
   * else takes it back.
   */
  unwanted(lease: LeaseId, browser: BrowserId): void {
    if (this.#granted.get(lease) !== browser) this.settle(partitionOf(browser), lease, "lost");
  }

  /** A request that was answered with a fault, while a script may have granted it or put it in line. */
  abandon({ partition, waiter, idempotencyKey, caller }: LeaseRequest): void {
    if (this.#undos.size >= mostAbandoned) return void (this.#notKept += 1);
    const { lease, name } = waiter;
    const connection = caller.request;
    const abandoned = { partition, waiter: waiter.id, lease, connection, name, key: idempotencyKey?.key };
    const run = (): Promise<void> => this.#takeBack(abandoned);
    this.#undos.add({ partition, id: connection, what: "abandoned request taken back", run });
  }

  /** Watches a request that waits until the returned function is called. */
  watchWaiter(waiting: QueuedRequest): () => void {
    return this.#recovery.add(waiting);
  }

  /** Confirms and undoes what is left; resolves when nothing is under way. */
  async close(): Promise<void> {
    for (const stop of this.#stops) stop();
    this.#recovery.close();
    await this.idle();
    this.#confirm();
    this.#undos.tryAgain();
    await this.idle();
  }

  /** Resolves when nothing is under way. */
  async idle(): Promise<void> {
    await Promise.all([...this.#underWay, this.#undos.idle()]);
  }

  async #takeBack({ partition, waiter, lease, connection, name, key }: Abandoned): Promise<void> {
    const { poolStore, projects } = this.ports;
    // A retry under an idempotency key may have been given the lease or the place of its first attempt.
    const first = key === undefined ? undefined : await poolStore.findByKey(partition, key);
    const held = first ?? { waiter, lease };
    const reply = await poolStore.withdraw(partition, { ...held, connection });
    if (reply.kind === "granted") this.settle(partition, held.lease, "lost");
    const isOwn = held.lease === lease && reply.kind !== "unknown";
    if (name !== undefined && !isOwn)
      await projects.at(partition).freeName({ kind: "session", name, owner: lease });
  }

  #deliveredAt(partition: Partition): LeaseId[] {
    const leases = this.#delivered.get(partition) ?? [];
    this.#delivered.set(partition, leases);
    return leases;
  }

  #confirm(): void {
    for (const [partition, leases] of this.#delivered) {
      const confirmed = this.ports.poolStore.confirm(partition, leases).catch((error: unknown) => {
        // Tried again: an unconfirmed lease of a living control is only kept in doubt, never taken back.
        this.#deliveredAt(partition).push(...leases);
        throw error;
      });
      this.#background("delivered grants confirmed", confirmed);
    }
    this.#delivered.clear();
  }

  #beat(): void {
    const partitions = new Set([
      ...this.#open.values(),
      ...this.#delivered.keys(),
      ...this.#recovery.partitions(),
    ]);
    for (const partition of partitions)
      this.#background("control beaten", this.ports.poolStore.beat(partition, this.control));
    for (const recovered of this.#recovery.recoverAll()) this.#background("waiters recovered", recovered);
    this.#undos.tryAgain();
    if (this.#notKept > 0) this.ports.log.warn({ requests: this.#notKept }, "requests not taken back");
    this.#notKept = 0;
  }

  #background(what: string, work: Promise<unknown>): void {
    const watched = work.catch((error: unknown) =>
      this.ports.log.warn({ error: textOf(error), what }, "lease upkeep failed"),
    );
    this.#underWay.add(watched);
    void watched.finally(() => this.#underWay.delete(watched));
  }
}
