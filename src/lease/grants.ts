import { LRUCache } from "lru-cache";
import { type Clock, type Millis, pause } from "../base/clock.js";
import {
  type BrowserId,
  type ControlId,
  type Partition,
  partitionOf,
  type LeaseId,
  newRequestId,
  onDemandPartition,
  type RequestId,
} from "../base/ids.js";
import { groupBy } from "../base/group-by.js";
import { type Log, textOf } from "../base/log.js";
import type { Waiters } from "./waiters.js";
import type { LeaseRequest } from "./lend.js";
import type { PoolStore } from "../pool/ports/pool-store.js";
import type { ProjectStore } from "../pool/ports/project-store.js";

interface Waiting {
  readonly partition: Partition;
  readonly lease: LeaseId;
  readonly connection: RequestId;
  readonly waiter: RequestId;
  readonly name?: string;
  /** As the store keeps it; that of a place in a pool's line. */
  readonly stored?: string;
}

/** A grant to be undone; the request makes every further try a repeat of the first. */
interface Lost {
  readonly partition: Partition;
  readonly request: RequestId;
}

interface GrantPorts {
  readonly poolStore: PoolStore;
  readonly projects: Pick<ProjectStore, "freeName" | "reserveName">;
  readonly waiters: Waiters;
  readonly clock: Clock;
  readonly log: Log;
  readonly beatPeriodMs: Millis;
}

/** Whoever has neither a browser nor a place is looked for again after it. */
const lookAgainMs: Millis = 100;
/** How often replies that were flushed are confirmed, in one script per partition. */
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
   * Which browser each lease had of which a request here was told: a message of the same that comes late says
   * nothing new.
   */
  readonly #told = new LRUCache<LeaseId, BrowserId>({ max: 10_000 });
  readonly #waiting = new Map<RequestId, Waiting>();
  readonly #lost = new Map<LeaseId, Lost>();
  readonly #abandoned = new Map<RequestId, LeaseRequest>();
  readonly #underWay = new Set<Promise<unknown>>();
  readonly #stops: (() => void)[];
  readonly #closing = new AbortController();

  constructor(
    private readonly control: ControlId,
    private readonly ports: GrantPorts,
  ) {
    this.#stops = [
      ports.clock.every(confirmEveryMs, () => this.#confirm()),
      ports.clock.every(ports.beatPeriodMs, () => this.#beat()),
    ];
  }

  /** A lease whose reply is on its way. */
  opened(partition: Partition, lease: LeaseId, browser: BrowserId): void {
    this.#open.set(lease, partition);
    this.#told.set(lease, browser);
  }

  settle(partition: Partition, lease: LeaseId, outcome: "delivered" | "lost"): void {
    this.#open.delete(lease);
    if (outcome === "delivered") {
      this.#deliveredAt(partition).push(lease);
      return;
    }
    this.#lost.set(lease, { partition, request: newRequestId() });
    this.#background("lost grant undone", this.#undo(lease));
  }

  /**
   * A grant that no request here waits for: a failover has brought back a place that was given up, and nobody
   * else takes it back.
   */
  unwanted(lease: LeaseId, browser: BrowserId): void {
    if (this.#told.get(lease) !== browser) this.settle(partitionOf(browser), lease, "lost");
  }

  /** A wish whose caller was answered with a fault, while a script may have granted it or put it in line. */
  abandon(wanted: LeaseRequest): void {
    this.#abandoned.set(wanted.caller.request, wanted);
    this.#background("abandoned wish taken back", this.#takeBack(wanted));
  }

  waits(waiting: Waiting): () => void {
    this.#waiting.set(waiting.connection, waiting);
    return () => this.#waiting.delete(waiting.connection);
  }

  /** Confirms and undoes what is left; resolves when nothing is under way. */
  async close(): Promise<void> {
    for (const stop of this.#stops) stop();
    this.#closing.abort();
    await Promise.all(this.#underWay);
    this.#confirm();
    this.#tryAgain();
    await Promise.all(this.#underWay);
  }

  #tryAgain(): void {
    for (const lease of this.#lost.keys()) this.#background("lost grant undone", this.#undo(lease));
    for (const wanted of this.#abandoned.values())
      this.#background("abandoned wish taken back", this.#takeBack(wanted));
  }

  async #undo(lease: LeaseId): Promise<void> {
    const lost = this.#lost.get(lease);
    if (!lost) return;
    await this.ports.poolStore.undo(lost.partition, lease, lost.request);
    this.#lost.delete(lease);
  }

  async #takeBack({ partition, waiter, keyed, caller }: LeaseRequest): Promise<void> {
    const { poolStore, projects } = this.ports;
    // A retry under a key is given its first attempt's lease or place.
    const stands = (keyed && (await poolStore.findKeyed(partition, keyed.key))) ?? {
      waiter: waiter.id,
      lease: waiter.lease,
    };
    const reply = await poolStore.withdraw(partition, { ...stands, connection: caller.request });
    if (reply.kind === "granted") this.settle(partition, stands.lease, "lost");
    const isOwn = stands.lease === waiter.lease && reply.kind !== "unknown";
    if (waiter.name !== undefined && !isOwn)
      await projects.freeName({ kind: "session", name: waiter.name, owner: waiter.lease });
    this.#abandoned.delete(caller.request);
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
      ...[...this.#waiting.values()].map((waiting) => waiting.partition),
    ]);
    for (const partition of partitions)
      this.#background("control beaten", this.ports.poolStore.beat(partition, this.control));
    for (const [partition, waiting] of groupBy(this.#waiting.values(), (one) => one.partition))
      this.#background("lost grants looked for", this.#look(partition, waiting));
    this.#tryAgain();
  }

  /** The message of a grant may have been lost, and the place of whoever waits; the record is the truth. */
  async #look(partition: Partition, waiting: readonly Waiting[]): Promise<void> {
    const [held, missing] = await this.#find(partition, waiting);
    for (const one of held) await this.#deliver(partition, one);
    if (missing.length === 0) return;
    // One that was just being served is not missing the second time.
    const { signal } = this.#closing;
    await pause(this.ports.clock, lookAgainMs, signal);
    if (signal.aborted) return;
    const [, lost] = await this.#find(
      partition,
      missing.filter((one) => this.#isWaiting(one)),
    );
    if (lost.length > 0)
      await (partition === onDemandPartition ? this.#giveUp(lost) : this.#rejoin(partition, lost));
  }

  /** Who has a browser, and who has neither that nor a place. */
  async #find(
    partition: Partition,
    waiting: readonly Waiting[],
  ): Promise<readonly [held: Waiting[], missing: Waiting[]]> {
    if (waiting.length === 0) return [[], []];
    const { poolStore } = this.ports;
    const standing = new Set(
      await poolStore.standingAmong(
        partition,
        waiting.map(({ waiter }) => waiter),
      ),
    );
    const others = waiting.filter(({ waiter }) => !standing.has(waiter));
    const held = new Set(
      others.length === 0
        ? []
        : await poolStore.heldAmong(
            partition,
            others.map(({ lease }) => lease),
          ),
    );
    return [others.filter(({ lease }) => held.has(lease)), others.filter(({ lease }) => !held.has(lease))];
  }

  async #deliver(partition: Partition, { lease, connection, waiter }: Waiting): Promise<void> {
    const found = await this.ports.poolStore.findHeld(partition, lease);
    if (!found) return;
    const { browser, at } = found;
    this.ports.waiters.deliver(connection, {
      kind: "granted",
      waiter,
      connection,
      browser: JSON.stringify(browser),
      at,
    });
  }

  /**
   * They were taken for a dead control's, since this one stood still: they get their places back, as far as
   * those are remembered.
   */
  async #rejoin(partition: Partition, lost: readonly Waiting[]): Promise<void> {
    const { poolStore, log } = this.ports;
    const named = await Promise.all(
      lost.map(async (one) => ((await this.#reserve(one)) ? one : this.#forget(one))),
    );
    const able = named.flatMap((one) => (one?.stored === undefined ? [] : [{ ...one, stored: one.stored }]));
    if (able.length === 0) return;
    const words = await poolStore.rejoin(
      partition,
      able.map(({ stored }) => stored),
    );
    log.warn({ partition, waiters: able.length }, "waiters put back in line");
    await Promise.all(able.map((one, at) => this.#settleRejoined(one, words[at])));
  }

  async #settleRejoined(
    one: Waiting,
    word: Awaited<ReturnType<PoolStore["rejoin"]>>[number] | undefined,
  ): Promise<void> {
    const { partition, lease, connection, waiter } = one;
    if (word === "deleted" || word === "superseded")
      this.ports.waiters.deliver(connection, { kind: word, waiter, connection });
    if (word === "over") this.#forget(one);
    if (word !== "waiting" || this.#isWaiting(one)) return;
    // Its caller has gone meanwhile.
    const reply = await this.ports.poolStore.withdraw(partition, { waiter, connection, lease });
    if (reply.kind === "granted") this.settle(partition, lease, "lost");
  }

  /** Its name was given back with its place. */
  async #reserve({ partition, name, lease }: Waiting): Promise<boolean> {
    if (name === undefined) return true;
    return (
      (await this.ports.projects.reserveName({ kind: "session", name, owner: lease, partition })) !==
      undefined
    );
  }

  #giveUp(lost: readonly Waiting[]): void {
    for (const one of lost) this.#forget(one);
  }

  #forget({ connection, waiter }: Waiting): undefined {
    this.ports.waiters.deliver(connection, { kind: "forgotten", waiter, connection });
  }

  #isWaiting({ connection }: Waiting): boolean {
    return this.#waiting.has(connection);
  }

  #background(what: string, work: Promise<unknown>): void {
    const watched = work.catch((error: unknown) =>
      this.ports.log.warn({ error: textOf(error), what }, "grant keeping failed"),
    );
    this.#underWay.add(watched);
    void watched.finally(() => this.#underWay.delete(watched));
  }
}
