import type { Millis } from "../base/clock.js";
import { type LeaseId, type NodeId, type Partition, partitionOf } from "../base/ids.js";
import { type Log, textOf } from "../base/log.js";
import { type Browser, leaseOf, type LeasedBrowser } from "../pool/browser.js";
import type { PoolStore } from "../pool/ports/pool-store.js";
import type { NodeReports } from "../pool/ports/node-reports.js";
import type { NetworkSync } from "./network-sync.js";
import type { Slot } from "./slot.js";
import type { Slots } from "./slots.js";

interface RegistrationPorts {
  readonly node: NodeId;
  readonly slots: Pick<Slots, "all">;
  readonly reports: Pick<NodeReports, "register">;
  readonly log: Log;
}

/**
 * A Redis that has failed over, or was started anew, lends nothing of this node before the node has told
 * which browsers are here, and which leases clients have opened: these go on, also where the failover has
 * taken them from the record.
 */
export class EpochRegistration {
  constructor(private readonly ports: RegistrationPorts) {}

  /** Harmless where no other epoch has begun. Throws where Redis cannot be asked. */
  async register(partition: Partition): Promise<void> {
    const { node, slots, reports, log } = this.ports;
    const here = slots.all().filter(({ id }) => partitionOf(id) === partition);
    const present = here.map(({ id }) => id);
    const told = await reports.register(partition, { node, present, opened: here.flatMap(openedOn) });
    if (told) log.info({ partition, ...told }, "node registered in another epoch of Redis");
  }

  /** The same for every pool of which a browser is here. */
  async registerAll(): Promise<void> {
    const partitions = new Set(this.ports.slots.all().map(({ id }) => partitionOf(id)));
    await Promise.all([...partitions].map((partition) => this.register(partition)));
  }
}

function openedOn({ record, activity, isEnding }: Slot): readonly LeasedBrowser[] {
  const isOpened = activity.registrations > 0 && record?.lease.id === activity.lease;
  return record && isOpened && !isEnding ? [record] : [];
}

interface LeaseHandoverPorts {
  readonly slots: Pick<Slots, "endUnder" | "retireNow">;
  readonly poolStore: Pick<PoolStore, "findBrowser">;
  readonly reports: Pick<NodeReports, "unknownLease">;
  readonly networkSync: Pick<NetworkSync, "restore" | "sync">;
  readonly registration: Pick<EpochRegistration, "register">;
  readonly log: Log;
}

/**
 * Takes a browser from one lease to the next. As a rule a fence has cut the earlier lease before. But a
 * failover may take from Redis what it has acknowledged, and then the record does not name who uses a
 * browser. A lease of the epoch before goes on, once this node has registered. Any other that this node knows
 * is cut before a lease begins here, as the record says, and what it has left is restored or retired, as its
 * release would have done.
 */
export class LeaseHandover {
  readonly #underWay = new WeakMap<Slot, Promise<unknown>>();

  constructor(private readonly ports: LeaseHandoverPorts) {}

  /**
   * The lease begins, and is the only one. False where it is over, or the browser is. Throws where Redis has
   * to be asked and cannot.
   */
  async begin(slot: Slot, lease: LeaseId, agoMs: Millis = 0): Promise<boolean> {
    const isSole = await this.#isSole(slot, lease, (record) => leaseOf(record)?.id === lease);
    if (isSole) slot.activity.begin(lease, agoMs);
    return isSole && !slot.activity.isOver(lease);
  }

  /** Cuts whoever uses a browser that its record calls idle. False where it is not idle after all. */
  async clear(slot: Slot): Promise<boolean> {
    return await this.#isSole(slot, undefined, (record) => record?.state === "idle");
  }

  /**
   * A lease is about to be cut, and what it has done to the browser is to be undone, or ended with it. Noted
   * until then: where Redis forgets the lease together with its end, nobody else gets the browser as it is.
   */
  noteCut(slot: Slot, lease: LeaseId): void {
    const isKnown = slot.activity.rivalsOf(undefined).includes(lease);
    if (isKnown && hasUsed(slot, lease)) slot.unknownLease ??= lease;
  }

  async #isSole(
    slot: Slot,
    lease: LeaseId | undefined,
    isMeant: (record: Browser | undefined) => boolean,
  ): Promise<boolean> {
    if (slot.egress.isClosed) return await this.#endShut(slot);
    if (isClear(slot, lease) && !this.#underWay.has(slot)) return true;
    const earlier = this.#underWay.get(slot) ?? Promise.resolve();
    const turn = earlier.then(() => this.#become(slot, lease, isMeant));
    const settled = turn.catch(() => {});
    this.#underWay.set(slot, settled);
    void settled.then(() => void (this.#underWay.get(slot) === settled && this.#underWay.delete(slot)));
    return await turn;
  }

  /**
   * This node was told directly that the browser is over, and a failover has taken that from Redis: it would
   * be lent again and again, and reach nothing.
   */
  async #endShut(slot: Slot): Promise<false> {
    if (!slot.isEnding) await this.ports.slots.retireNow(slot, "not_clean", "its egress is closed");
    return false;
  }

  /**
   * Reads the record again: either the record that somebody has read or the message that this node was sent
   * may be the newer.
   */
  async #become(
    slot: Slot,
    lease: LeaseId | undefined,
    isMeant: (record: Browser | undefined) => boolean,
  ): Promise<boolean> {
    if (isClear(slot, lease)) return true;
    if (slot.activity.rivalsOf(lease).some((rival) => hasUsed(slot, rival)))
      await this.ports.registration.register(partitionOf(slot.id));
    if (!isMeant((await this.ports.poolStore.findBrowser(slot.id))?.browser)) return false;
    try {
      await this.#cut(slot, lease);
    } catch (error) {
      await this.ports.slots.retireNow(slot, "reset_failed", textOf(error));
      return false;
    }
    return slot.unknownLease === undefined || (await this.#settle(slot, slot.unknownLease));
  }

  /**
   * What one of them has done to the browser is noted on the slot until it is settled: nobody gets it before,
   * whatever fails. One that nobody came under is no sign of a failover: it ends in its record alone, and
   * this node, whose looks have begun it, hears of that by the next.
   */
  async #cut(slot: Slot, lease: LeaseId | undefined): Promise<void> {
    const rivals = slot.activity.rivalsOf(lease);
    const used = rivals.filter((rival) => hasUsed(slot, rival));
    slot.unknownLease ??= used[0];
    for (const rival of used)
      this.ports.log.warn({ browser: slot.id, lease: rival }, "lease cut: Redis has forgotten it");
    await Promise.all(rivals.map((rival) => slot.activity.cutLease(rival, "superseded")));
  }

  async #settle(slot: Slot, unknown: LeaseId): Promise<boolean> {
    const { slots, reports } = this.ports;
    const reply = await reports.unknownLease(slot.id, { lease: unknown, isAltered: isAltered(slot) });
    if (reply.kind === "kept") return await this.#restore(slot, unknown);
    if (reply.kind === "held") return false;
    await slots.endUnder(slot, reply.claim);
    return false;
  }

  async #restore(slot: Slot, unknown: LeaseId): Promise<boolean> {
    const { networkSync } = this.ports;
    try {
      await slot.inTurn(() => slot.restoreViewport());
      if (slot.network?.lease === unknown) await networkSync.restore(slot);
      // The new holder may have changed it already.
      await networkSync.sync(slot);
    } catch (error) {
      await this.ports.slots.retireNow(slot, "reset_failed", textOf(error));
      return false;
    }
    slot.unknownLease = undefined;
    return true;
  }
}

const isClear = (slot: Slot, lease: LeaseId | undefined): boolean =>
  slot.unknownLease === undefined && slot.activity.rivalsOf(lease).length === 0;

/** A lease that nobody came under has changed nothing. */
function hasUsed({ activity, started, viewport, network }: Slot, lease: LeaseId): boolean {
  const hasCome = activity.lease !== lease || activity.registrations > 0;
  return hasCome || started?.lease === lease || viewport !== undefined || network?.lease === lease;
}

/** It has what its launch did not give it, and no pool takes back. */
const isAltered = ({ uploads, network, profile, template }: Slot): boolean =>
  uploads.length > 0 || network?.settings.proxy !== undefined || profile?.id !== template.profile_id;
