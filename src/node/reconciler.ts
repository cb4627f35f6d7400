import type { Clock, Millis } from "../base/clock.js";
import { TimeLimitReached, within } from "../base/deadline.js";
import { groupBy } from "../base/group-by.js";
import {
  type BrowserId,
  isOnDemand,
  type LeaseId,
  type NodeId,
  type Partition,
  partitionOf,
} from "../base/ids.js";
import { type Log, textOf } from "../base/log.js";
import { type Browser, leaseOf, type LeasedBrowser } from "../pool/browser.js";
import { memoryBytes } from "../spec/bodies.js";
import type { NodeStore } from "../pool/ports/node-store.js";
import type { NodeBrowsers } from "../pool/ports/partition-overview.js";
import type { PoolStore } from "../pool/ports/pool-store.js";
import type { Projects } from "../pool/ports/project-store.js";
import type { NodeReports } from "../pool/ports/node-reports.js";
import type { Slot } from "./slot.js";
import type { Slots } from "./slots.js";
import type { LeaseHandover } from "./lease-handover.js";
import type { NameOwnership } from "./name-ownership.js";

interface ReconcilerPorts {
  readonly node: NodeId;
  /** A node that has lost its name must not change its records. */
  readonly nameOwnership: Pick<NameOwnership, "holds">;
  readonly slots: Slots;
  readonly poolStore: PoolStore;
  readonly projects: Pick<Projects, "partitions">;
  readonly nodes: Pick<NodeStore, "holdRoom" | "freeRoom">;
  readonly reports: NodeReports;
  readonly handover: LeaseHandover;
  /** Resolves when what Redis may have forgotten by now is written again (journal/recovery.ts). */
  recover(): Promise<void>;
  /** A pool that is here is on no list of its project: it comes back there, unless it is being deleted. */
  listAgain(partition: Partition): Promise<boolean>;
  /** A partition was read: what has changed is to be journalled. */
  noteRead(partition: Partition, read: NodeBrowsers): void;
  readonly clock: Clock;
  readonly log: Log;
  readonly expirePeriodMs: Millis;
  readonly probePeriodMs: Millis;
  readonly probeLimitMs: Millis;
}

/**
 * There is seldom a record of this node in a partition of which it has no browser, so only this many of them
 * are looked at each time, in turn.
 */
const othersPerLook = 32;

/**
 * Holds the browsers of this node and the records that name it against each other, both ways: a failover may
 * take from Redis what it has acknowledged. Ends inactive leases, probes idle browsers, ends browsers that no
 * record knows, and records without a browser.
 */
export class Reconciler {
  readonly #lastProbe = new WeakMap<Slot, Millis>();
  #looking: Promise<void> | undefined;
  /** Partitions that this round has still to look at. */
  #others: Partition[] = [];
  /** Browsers that an earlier look is still about. */
  readonly #busy = new WeakSet<Slot>();

  constructor(private readonly ports: ReconcilerPorts) {}

  /** Looks from now on; the result stops that. */
  start(): () => void {
    return this.ports.clock.every(this.ports.expirePeriodMs, () => void this.look());
  }

  /** Never throws. Whoever asks while a look is under way joins it. */
  look(): Promise<void> {
    this.#looking ??= this.#look()
      .catch((error: unknown) =>
        this.ports.log.warn({ error: textOf(error) }, "browsers could not be looked after"),
      )
      .finally(() => (this.#looking = undefined));
    return this.#looking;
  }

  /**
   * A client has come for a browser that is not here: where its record says that it is, the record is wrong.
   * Never throws.
   */
  async lookFor(id: BrowserId): Promise<void> {
    const { poolStore, slots, node, nameOwnership, log } = this.ports;
    try {
      if (!(await nameOwnership.holds())) return;
      const record = (await poolStore.findBrowser(id))?.browser;
      if (record?.node === node && standsForBrowser(record)) await slots.endMissing(id);
    } catch (error) {
      log.warn({ browser: id, error: textOf(error) }, "record not looked at");
    }
  }

  /** A browser that takes long, as one that is just ended, holds up no other: looks go on without it. */
  async #look(): Promise<void> {
    const { clock, log, expirePeriodMs: limitMs } = this.ports;
    await within(clock, { what: "a look", limitMs }, this.#lookAtAll()).catch((error: unknown) => {
      if (!(error instanceof TimeLimitReached)) throw error;
      log.debug({ limitMs }, "look goes on beside the next");
    });
  }

  async #lookAtAll(): Promise<void> {
    const { slots, nameOwnership } = this.ports;
    // An end that Redis does not take holds up no look at other browsers.
    void slots.retryEnds();
    if (!(await nameOwnership.holds())) return;
    // The browsers are listed before the records are read, so that a browser that comes meanwhile is not
    // taken for one without a record.
    const byPartition = groupBy(slots.all(), (slot) => partitionOf(slot.id));
    const partitions = [...byPartition.keys(), ...(await this.#othersWith(new Set(byPartition.keys())))];
    await Promise.all(
      partitions.map((partition) => this.#keepPartition(partition, byPartition.get(partition) ?? [])),
    );
  }

  /**
   * Further partitions in which this node may have a record: with many pools only some are asked at a time.
   */
  async #othersWith(known: ReadonlySet<Partition>): Promise<readonly Partition[]> {
    const { poolStore, projects, node } = this.ports;
    if (this.#others.length === 0) {
      this.#others = [...(await projects.partitions())];
      await this.#listAgain(known);
    }
    const next = this.#others.splice(0, othersPerLook);
    return await poolStore.partitionsOf(
      node,
      next.filter((partition) => !known.has(partition)),
    );
  }

  /**
   * In a Cluster the list of pools fails over apart from them: one that is on no list would be neither filled
   * nor found.
   */
  async #listAgain(own: ReadonlySet<Partition>): Promise<void> {
    const listed = new Set(this.#others);
    for (const partition of own) {
      if (isOnDemand(partition) || listed.has(partition)) continue;
      if (await this.ports.listAgain(partition)) this.ports.log.warn({ partition }, "pool listed again");
    }
  }

  async #keepPartition(partition: Partition, slots: readonly Slot[]): Promise<void> {
    const read = await this.ports.poolStore.browsersOf(partition, this.ports.node);
    const { browsers, at } = read;
    if (browsers.length > 0) this.ports.noteRead(partition, read);
    const records = new Map(browsers.map((browser) => [browser.id, browser]));
    for (const slot of slots) records.delete(slot.id);
    const own = new Map(browsers.map((browser) => [browser.id, browser]));
    const missing = [...records.values()].filter(standsForBrowser);
    await Promise.all([
      ...missing.map(({ id }) => this.ports.slots.endMissing(id)),
      ...slots.map((slot) => this.#keepApart(slot, own.get(slot.id), at)),
    ]);
  }

  async #keepApart(slot: Slot, record: Browser | undefined, at: Millis): Promise<void> {
    if (this.#busy.has(slot)) return;
    this.#busy.add(slot);
    await this.#keep(slot, record, at).finally(() => this.#busy.delete(slot));
  }

  async #keep(slot: Slot, record: Browser | undefined, at: Millis): Promise<void> {
    if (!record) return await this.#endUnknown(slot);
    if (record.state === "leased") return await this.#keepLeased(slot, record, at);
    if (record.state !== "idle") return;
    if (await this.ports.handover.clear(slot)) await this.#probe(slot);
  }

  /**
   * Its record, which is there before a browser is, is gone: this node was taken for lost, or Redis has
   * forgotten and it was not journalled. Nobody may use it any more, and as long as it lives it takes room.
   */
  async #endUnknown(slot: Slot): Promise<void> {
    const { node, nodes, slots, poolStore, log } = this.ports;
    // Another release writes records without updating the index.
    if (await poolStore.findBrowser(slot.id)) return;
    // Whether Redis has forgotten is asked after its record was missed, or it may be emptied in between.
    await this.ports.recover();
    if (await poolStore.findBrowser(slot.id)) return;
    await nodes.holdRoom(node, { id: slot.id, bytes: memoryBytes(slot.template.memory) });
    if (!slot.isEnding) log.warn({ browser: slot.id }, "browser without a record ended");
    // One that ends already may have given back its room before it was held here.
    await slots.end(slot);
    await nodes.freeRoom(node, slot.id);
  }

  async #keepLeased(slot: Slot, record: LeasedBrowser, at: Millis): Promise<void> {
    const { lease } = record;
    const { reports, clock, log, handover } = this.ports;
    const { activity } = slot;
    if (activity.isOver(lease.id)) return await this.#endForgotten(slot, lease.id);
    if (!(await handover.begin(slot, lease.id, at - lease.grantedAt))) return;
    slot.record = record;
    void slot.captures(lease.id, lease);
    const used = slot.leaseUsage.unreported(lease.id);
    if (used) await reports.used(slot.id, used);
    const since = activity.inactiveSinceMs;
    if (since === undefined || activity.hasVisitors) return;
    if (clock.monotonic() - since < lease.timeoutSeconds * 1000) return;
    const isExpired = await reports.expire({
      browser: slot.id,
      lease: lease.id,
      registrations: lease.registrations,
    });
    if (isExpired) log.info({ browser: slot.id, lease: lease.id }, "lease expired");
  }

  /**
   * Its end was acknowledged, and its holder is gone: nobody would end it again. Read once more, for the
   * record may be the older word.
   */
  async #endForgotten(slot: Slot, lease: LeaseId): Promise<void> {
    const record = (await this.ports.poolStore.findBrowser(slot.id))?.browser;
    if (slot.isEnding || leaseOf(record)?.id !== lease) return;
    this.ports.log.warn(
      { browser: slot.id, lease },
      "browser ended: Redis has forgotten the end of its lease",
    );
    await this.ports.slots.retireNow(slot, "not_clean", "Redis has forgotten the end of its lease");
  }

  async #probe(slot: Slot): Promise<void> {
    const { clock, log, slots, probePeriodMs, probeLimitMs } = this.ports;
    const now = clock.monotonic();
    if (
      slot.isEnding ||
      slot.restarting ||
      now - (this.#lastProbe.get(slot) ?? slot.bornAtMs) < probePeriodMs
    )
      return;
    this.#lastProbe.set(slot, now);
    try {
      await slot.chromium.probe(probeLimitMs);
    } catch (error) {
      if (slot.isEnding) return;
      log.warn({ browser: slot.id, error: textOf(error) }, "idle browser did not answer");
      await slots.retireNow(slot, "unhealthy", textOf(error));
    }
  }
}

/** Launching and retiring ones have jobs, which come again. */
const standsForBrowser = ({ state }: Browser): boolean =>
  state === "idle" || state === "leased" || state === "resetting";
