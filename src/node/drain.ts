import { type Clock, type Millis, pause } from "../base/clock.js";
import { type Partition, newRequestId, type NodeId, isOnDemand } from "../base/ids.js";
import { type Log, textOf } from "../base/log.js";
import { forEachConcurrently } from "../base/concurrently.js";
import type { Browser, RetireReason } from "../pool/browser.js";
import type { NodeStore } from "../pool/ports/node-store.js";
import type { PoolStore } from "../pool/ports/pool-store.js";
import type { Projects } from "../pool/ports/project-store.js";
import type { Slots } from "./slots.js";

interface DrainPorts {
  readonly node: NodeId;
  readonly poolStore: PoolStore;
  readonly projects: Pick<Projects, "partitions">;
  readonly nodes: NodeStore;
  readonly slots: Slots;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Idle browsers of a draining node stay in service so long, while their replacements are warmed elsewhere.
 */
const handOverMs: Millis = 30_000;
const lookEveryMs: Millis = 1000;
const partitionsAtOnce = 32;

interface Time {
  readonly spentMs: Millis;
  readonly limitMs: Millis;
}

/**
 * Empties a node: leases may end within the limit, replacements are warmed elsewhere first, then the rest is
 * retired.
 */
export class Drain {
  /** The partitions in which the browsers of this node are marked, so that they are not lent. */
  readonly #marked = new Set<Partition>();

  constructor(private readonly ports: DrainPorts) {}

  /** Lets leases end within `limitMs`, or until `hurry`; a limit of 0 does not wait. */
  async wait(limitMs: Millis, hurry: AbortSignal): Promise<void> {
    if (limitMs === 0 || hurry.aborted) return;
    const { clock, log } = this.ports;
    const startedAt = clock.monotonic();
    log.info({ limitMs }, "drain begun");
    for (let spent = 0; spent < limitMs && !hurry.aborted; spent = clock.monotonic() - startedAt) {
      if (await this.#mayEnd({ spentMs: spent, limitMs })) return;
      await pause(clock, lookEveryMs, hurry);
    }
    log.warn({ limitMs }, "drain limit reached");
  }

  /** Where Redis cannot be asked, the leases live on, and so does the drain. */
  #mayEnd(time: Time): Promise<boolean> {
    return this.#look(time).catch((error: unknown) => {
      this.ports.log.warn({ error: textOf(error) }, "drain could not be looked after");
      return false;
    });
  }

  async #look({ spentMs, limitMs }: Time): Promise<boolean> {
    const own = await this.#own();
    await this.#mark(own, limitMs - spentMs);
    const idle = partitionsWith(own, ({ state }) => state === "idle");
    // Nobody has to wait for what stands by, and nobody is to be lent it here.
    await this.#clear("idle", "drained", idle.filter(isOnDemand));
    const isAlone = (await this.ports.nodes.living()).every(
      (facts) => facts.id === this.ports.node || facts.isDraining,
    );
    const isHandedOver = isAlone || spentMs >= handOverMs;
    if (isHandedOver) await this.#clear("idle", "drained", idle);
    const left = [...own.values()].flat();
    return isHandedOver ? left.every(({ state }) => state !== "leased") : left.length === 0;
  }

  /** Takes its marks back, for a drain that was ended: what is left here is lent again. */
  async unmark(): Promise<void> {
    const { poolStore, node } = this.ports;
    const pools = [...this.#marked].filter((partition) => !isOnDemand(partition));
    const failures = await forEachConcurrently(pools, partitionsAtOnce, (partition) =>
      poolStore.reopenNode(partition, node),
    );
    if (failures.length > 0) throw failures[0];
  }

  /** Ends what is left on this node, which goes on running. */
  async empty(): Promise<void> {
    await this.#clear("all", "drained");
  }

  /**
   * Ends what is left on this node, records included; resolves when no process, directory or record of it is
   * left.
   */
  async finish(why: "drained" | "stopped"): Promise<void> {
    await this.#clear("all", why).catch((error: unknown) =>
      this.ports.log.warn({ error: textOf(error) }, "records left to the reaper"),
    );
    await this.ports.slots.close();
    await this.#clear("lost", why);
  }

  /** What an earlier run of this node has left in Redis: its processes are gone. */
  async forgetEarlierRun(): Promise<void> {
    await this.#clear("lost", "node_lost");
    await this.ports.nodes.clearRooms(this.ports.node);
  }

  /**
   * Clears what an earlier run of this node has left that was taken for lost: the control that cleared up
   * after it may have died.
   */
  async finishEarlierRun(): Promise<void> {
    await this.#clear("lost", "node_lost");
    await this.ports.nodes.forget(this.ports.node);
  }

  /** Again where a browser in service is not marked: a failover may have taken that back. */
  async #mark(own: Own, leftMs: Millis): Promise<void> {
    const { poolStore, node } = this.ports;
    const losers = new Set(partitionsWith(own, isUnmarked).filter((partition) => !isOnDemand(partition)));
    const unmarked = [...own.keys()].filter(
      (partition) => !this.#marked.has(partition) || losers.has(partition),
    );
    const failures = await forEachConcurrently(unmarked, partitionsAtOnce, async (partition) => {
      await poolStore.recycle(partition, {
        maxLeases: null,
        drains: { node, ms: leftMs },
        request: newRequestId(),
      });
      this.#marked.add(partition);
    });
    if (failures.length > 0) throw failures[0];
  }

  async #clear(
    which: "idle" | "all" | "lost",
    why: RetireReason,
    only?: readonly Partition[],
  ): Promise<void> {
    const { poolStore, projects, node } = this.ports;
    const failures = await forEachConcurrently(
      only ?? (await projects.partitions()),
      partitionsAtOnce,
      (partition) => poolStore.clearNode(partition, { node, why, which, request: newRequestId() }),
    );
    if (failures.length > 0) throw failures[0];
  }

  async #own(): Promise<Own> {
    const partitions = await this.ports.projects.partitions();
    const reads = await Promise.all(
      partitions.map((partition) => this.ports.poolStore.browsersOf(partition, this.ports.node)),
    );
    return new Map(partitions.map((partition, place) => [partition, reads[place]?.browsers ?? []]));
  }
}

/** A beat comes a little earlier or later than the one before. */
const sameMs: Millis = 5000;

/** The drain of a node that goes on running, as Redis asks for it by the answers to beats. */
export class RequestedDrain {
  #under:
    | { readonly end: AbortController; readonly until: Millis; readonly drain: Drain; ran: Promise<void> }
    | undefined;
  /** Settles when the marks of the drain before are taken back, which could be those of the next one. */
  #unmarked: Promise<void> = Promise.resolve();

  constructor(private readonly ports: DrainPorts) {}

  /** `drainMs`: for how long it is still to drain; undefined where it is not to. */
  follow(drainMs: Millis | undefined): void {
    if (drainMs === undefined) return this.#revoke();
    const until = this.ports.clock.monotonic() + drainMs;
    // A drain whose time is over has ended by itself; one with another end is another drain.
    if (this.#under && (drainMs === 0 || Math.abs(this.#under.until - until) < sameMs)) return;
    this.close();
    const [end, drain] = [new AbortController(), new Drain(this.ports)];
    const ran = this.#unmarked.then(() => this.#run(drain, drainMs, end.signal));
    this.#under = { end, until, drain, ran };
  }

  close(): void {
    this.#under?.end.abort();
    this.#under = undefined;
  }

  /**
   * Pools were told already that the drain is over, by whoever has ended it; but this node heard of that at
   * its next beat only, and may have marked them once more.
   */
  #revoke(): void {
    const under = this.#under;
    if (!under) return;
    this.close();
    const { log } = this.ports;
    this.#unmarked = under.ran
      .then(() => under.drain.unmark())
      .catch((error: unknown) => log.warn({ error: textOf(error) }, "marks of an ended drain were left"));
  }

  async #run(drain: Drain, limitMs: Millis, end: AbortSignal): Promise<void> {
    try {
      await drain.wait(limitMs, end);
      if (!end.aborted) await drain.empty();
    } catch (error) {
      this.ports.log.warn({ error: textOf(error) }, "drain is tried again");
      if (!end.aborted) this.#under = undefined;
    }
  }
}

type Own = ReadonlyMap<Partition, readonly Browser[]>;

const partitionsWith = (own: Own, fits: (browser: Browser) => boolean): readonly Partition[] =>
  [...own].flatMap(([partition, browsers]) => (browsers.some(fits) ? [partition] : []));

const isUnmarked = ({ state, replaceable }: Browser): boolean =>
  state !== "launching" && state !== "retiring" && !replaceable;
