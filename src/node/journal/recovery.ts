import { forEachConcurrently, shareRuns } from "../../base/concurrently.js";
import { RemudaError } from "../../base/errors.js";
import { isOnDemand, type NodeId, partitionOf } from "../../base/ids.js";
import { type Log, textOf } from "../../base/log.js";
import { type Browser, leaseOf } from "../../pool/browser.js";
import type { Dataset, DatasetStore } from "../../pool/ports/dataset-store.js";
import type { BeatResult, NodeFacts, NodeStore } from "../../pool/ports/node-store.js";
import { memoryBytes } from "../../spec/bodies.js";
import type { Slot } from "../slot.js";
import type { Slots } from "../slots.js";
import type { Journal, JournalEntry } from "./journal.js";

/** How much was written again. */
export interface RecoveryCounts {
  pools: number;
  browsers: number;
  leases: number;
}

interface RecoveryPorts {
  readonly node: NodeId;
  readonly journal: Journal;
  readonly store: DatasetStore;
  readonly slots: Pick<Slots, "all" | "find">;
  readonly nodes: Pick<NodeStore, "holdRoom" | "beatIn">;
  readonly log: Log;
  readonly meter: { recovered(counts: Readonly<RecoveryCounts>): void };
}

const entriesAtOnce = 16;
/** A Redis that is emptied again and again takes no beat. */
const mostBeats = 3;
const refusals = {
  foreign: "Redis is not the one that this node knew: nothing was restored into it",
  late: "Redis was emptied while this node was away: nothing was restored, since others may have changed it",
};

/**
 * Redis may be found empty: emptied, or started anew without its data. Then this node writes again, from its
 * journal and from what runs here, whatever nobody has written meanwhile.
 */
export class Recovery {
  #restored: NodeFacts["restored"];

  constructor(private readonly ports: RecoveryPorts) {}

  /** What it has written again last; undefined where it never had to. */
  get restored(): NodeFacts["restored"] {
    return this.#restored;
  }

  /**
   * Asks Redis whether it has what it had. Resolves when whatever it had forgotten by this call is written
   * again. Throws where it does not answer. There is one check at a time; all who ask during one share the
   * next.
   */
  readonly check: () => Promise<void> = shareRuns(() => this.#check());

  /**
   * Beats where Redis has what it had; where it has forgotten, that is written again before anything more is
   * placed here. Gives undefined where `isOver` says meanwhile that there is nothing more to tell.
   */
  async beat(facts: () => NodeFacts, isOver: () => boolean): Promise<BeatResult | undefined> {
    const { journal, nodes } = this.ports;
    for (let beats = 0; beats < mostBeats; beats += 1) {
      const known = journal.dataset;
      const told = known && (await nodes.beatIn(known.name, facts()));
      if (known && told) {
        journal.saw({ name: known.name, seenAt: told.at });
        return told.result;
      }
      await this.check();
      if (isOver()) return undefined;
    }
    throw new Error(`Redis had another dataset at each of ${mostBeats} beats`);
  }

  async #check(): Promise<void> {
    const { journal, store, log } = this.ports;
    const known = journal.dataset;
    const { kind, dataset } = await store.join(known);
    if (kind === "same") return journal.saw(dataset);
    if (kind === "emptied") await this.#recover(dataset);
    if (kind === "foreign" || kind === "late")
      log.error({ known: known?.name, found: dataset.name }, refusals[kind]);
    await journal.adopt(dataset);
  }

  async #recover(dataset: Dataset): Promise<void> {
    const { journal, slots, log, meter } = this.ports;
    const counts: RecoveryCounts = { pools: 0, browsers: 0, leases: 0 };
    const all = slots.all().length;
    const failures = await forEachConcurrently(journal.entries(), entriesAtOnce, (entry) =>
      this.#restore(entry, counts),
    );
    // One that cannot be restored keeps no other from it, and is tried no more; a Redis that is away is.
    const fault = failures.find(isStoreFault);
    if (fault) throw fault;
    const facts = {
      dataset: dataset.name,
      ...counts,
      lost: all - counts.browsers,
      failures: failures.map(textOf),
    };
    log.error(
      facts,
      "Redis was found empty: what this node has journalled was restored, but no API keys, projects, vaults or other records",
    );
    meter.recovered(counts);
    this.#restored = { at: dataset.seenAt, ...counts };
  }

  async #restore(entry: JournalEntry, counts: RecoveryCounts): Promise<void> {
    const { store, log } = this.ports;
    const { partition, pool } = entry;
    const living = this.#recordsOf(entry).flatMap((record) => this.#asItIs(record) ?? []);
    if (isOnDemand(partition) && living.length === 0) return;
    const leased = living.filter((record) => leaseOf(record));
    const restored = await store.restorePool(partition, pool, leased.length > 0);
    if (restored.isRemnant)
      log.error(
        { partition, leases: leased.length },
        "pool not restored, but for its leases: its project or its name is gone",
      );
    if (restored.kind === "restored" && !isOnDemand(partition)) counts.pools += 1;
    const wanted = restored.isRemnant ? leased : living;
    for (const record of wanted) await this.#holdRoom(record);
    const ids = new Set(await store.restoreBrowsers(partition, wanted));
    counts.browsers += ids.size;
    counts.leases += leased.filter(({ id }) => ids.has(id)).length;
  }

  /** A lease whose client has come since the entry was written is known from then. */
  #recordsOf({ partition, browsers }: JournalEntry): readonly Browser[] {
    const known = new Map(browsers.map((record) => [record.id, record]));
    for (const { id, record, activity } of this.ports.slots.all()) {
      if (partitionOf(id) !== partition || !record || record.lease.id !== activity.lease) continue;
      if (leaseOf(known.get(id))?.id !== record.lease.id) known.set(id, record);
    }
    return [...known.values()];
  }

  /**
   * The record as it has to be now; undefined where the browser has gone on since it was journalled, so that
   * nobody knows whose it is.
   */
  #asItIs(record: Browser): Browser | undefined {
    const slot = this.ports.slots.find(record.id);
    if (!slot || slot.isEnding || slot.unknownLease) return undefined;
    if (record.state === "idle") return isFree(slot, record) ? record : undefined;
    if (record.state !== "leased") return undefined;
    const { activity } = slot;
    const { lease } = record;
    if (activity.isOver(lease.id) || activity.rivalsOf(lease.id).length > 0) return undefined;
    const seen = activity.lease === lease.id ? activity.registrations : 0;
    return { ...record, lease: { ...lease, registrations: Math.max(lease.registrations, seen) } };
  }

  async #holdRoom({ id, standby }: Browser): Promise<void> {
    const { node, nodes, slots } = this.ports;
    const slot = slots.find(id);
    const standsBy = standby !== undefined;
    if (slot) await nodes.holdRoom(node, { id, bytes: memoryBytes(slot.template.memory), standsBy });
  }
}

/**
 * No lease is known here but the one that was over when the record was written: what another has left may not
 * be undone yet.
 */
function isFree({ activity, leaseUsage: { total } }: Slot, { lastLease }: Browser): boolean {
  return activity.rivalsOf(undefined).length === 0 && (total === undefined || total.lease === lastLease);
}

const isStoreFault = (error: unknown): boolean =>
  error instanceof RemudaError && error.code === "store_unavailable";
