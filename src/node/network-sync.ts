import { isDeepStrictEqual } from "node:util";
import type { Clock, Millis } from "../base/clock.js";
import { within } from "../base/deadline.js";
import type { LeaseId } from "../base/ids.js";
import { type Log, textOf } from "../base/log.js";
import type { Rules } from "../egress/rules.js";
import { type Lease, leaseOf, type NetworkChange, type NetworkSettings } from "../pool/browser.js";
import type { PoolStore } from "../pool/ports/pool-store.js";
import type { NodeReports } from "../pool/ports/node-reports.js";
import type { Slot } from "./slot.js";

interface NetworkSyncPorts {
  readonly poolStore: PoolStore;
  readonly reports: NodeReports;
  readonly clock: Clock;
  readonly log: Log;
}

const settingsOf = ({ allowedHosts, proxy }: NetworkSettings): NetworkSettings => ({
  ...(allowedHosts !== undefined && { allowedHosts }),
  ...(proxy !== undefined && { proxy }),
});

/**
 * A change that is known and takes longer than this to put in force closes the browser's way out until it is.
 */
const shutAfterMs: Millis = 1000;
/** The limit for reading a record where the message itself says what is asked for. */
const readLimitMs: Millis = 1500;

/** A change as it was asked for, for where the record cannot be read. */
interface PendingChange {
  readonly lease: LeaseId;
  readonly change: NetworkChange;
  /** Whether its lease is not over yet, as far as is known. */
  isWanted(): boolean;
}

interface SyncRequest {
  readonly revision: number;
  readonly unread?: PendingChange;
}

interface Changing {
  readonly networkWanted: NetworkChange;
  readonly request: SyncRequest;
  readonly closing: EgressClosing;
}

/** Closes the way out of a browser that waits for a change. */
interface EgressClosing {
  /** Has to be called when a change is known. */
  arm(): void;
  /** Has to be called when it is in force, whatever is still to be done. */
  disarm(): void;
}

/**
 * Brings what browsers may reach in line with what their records say; one step at a time for each browser.
 */
export class NetworkSync {
  readonly #last = new WeakMap<Slot, Promise<unknown>>();
  /** Rules of a change that the record does not ask for yet. */
  readonly #prepared = new WeakMap<Slot, { readonly request: NetworkSettings; readonly rules: Rules }>();
  /** Browsers whose record still has to be read, or written. */
  readonly #behind = new WeakSet<Slot>();

  constructor(private readonly ports: NetworkSyncPorts) {}

  /**
   * Puts in force what the record says of the lease's network, asked for or in force already. Resolves with
   * whether the change `revision`, or a later one, is. Where Redis cannot be asked it puts in force what it
   * was told, or throws. A browser with a change that is known and not in force is closed; one of which
   * nothing is known goes on.
   */
  sync(slot: Slot, revision = 0, unread?: PendingChange): Promise<boolean> {
    return this.#inTurn(slot, async () => {
      let cancel: (() => void) | undefined;
      const arm = (): void => void (cancel ??= this.ports.clock.after(shutAfterMs, () => slot.egress.shut()));
      const disarm = (): void => {
        cancel?.();
        cancel = undefined;
      };
      if (revision > 0) arm();
      this.#behind.delete(slot);
      try {
        return await this.#sync(slot, { revision, ...(unread && { unread }) }, { arm, disarm });
      } catch (error) {
        this.#behind.add(slot);
        if (cancel) slot.egress.shut();
        throw error;
      } finally {
        disarm();
      }
    });
  }

  /** Whether what is in force and the record are to be compared again. */
  isBehind(slot: Slot): boolean {
    return this.#behind.has(slot) || slot.egress.isShut;
  }

  /**
   * Makes ready what the record will ask for next, so that it cannot be refused then. False where it cannot
   * be, or the lease is over; nothing has changed either way.
   */
  async prepare(slot: Slot, lease: LeaseId, request: NetworkSettings): Promise<boolean> {
    const record = leaseOf((await this.ports.poolStore.findBrowser(slot.id))?.browser);
    if (record?.id !== lease) return false;
    const all = { ...settingsOf(record.networkWanted ?? record.network ?? {}), ...request };
    try {
      this.#prepared.set(slot, { request: all, rules: await slot.egress.rulesWith({ revision: 0, ...all }) });
      return true;
    } catch (error) {
      this.ports.log.warn({ browser: slot.id, lease, error: textOf(error) }, "network change refused");
      return false;
    }
  }

  async #rulesFor(slot: Slot, wanted: NetworkChange): Promise<Rules> {
    const prepared = this.#prepared.get(slot);
    this.#prepared.delete(slot);
    return prepared && isDeepStrictEqual(prepared.request, settingsOf(wanted))
      ? prepared.rules
      : await slot.egress.rulesWith(wanted);
  }

  /** The launch's own rules again where a lease that is over had others; those of a holder stay. */
  restore(slot: Slot): Promise<void> {
    return this.#inTurn(slot, async () => {
      if (slot.network && slot.activity.isOver(slot.network.lease)) await this.#restore(slot);
    });
  }

  async #restore(slot: Slot): Promise<void> {
    if (slot.network === undefined) return;
    await slot.egress.apply();
    slot.network = undefined;
  }

  async #sync(slot: Slot, request: SyncRequest, closing: EgressClosing): Promise<boolean> {
    const read = await this.#read(slot, request);
    if (read === undefined) return await this.#putUnread(slot, request);
    const { revision } = request;
    const { lease } = read;
    const { network, networkWanted } = lease ?? {};
    const isOld = network !== undefined && network.revision !== slot.network?.revision;
    if (networkWanted || isOld) closing.arm();
    if (lease && networkWanted) {
      const isChanged = await this.#change(slot, lease, { networkWanted, request, closing });
      return isChanged && networkWanted.revision >= revision;
    }
    if (lease && isOld)
      await this.#put({ slot, lease: lease.id }, network, await slot.egress.rulesWith(network));
    else if (lease && !network) await this.#restore(slot);
    await slot.egress.reopen();
    return (network?.revision ?? 0) >= revision;
  }

  /** Undefined where the record cannot be read, and is not needed. */
  async #read(
    slot: Slot,
    { unread }: SyncRequest,
  ): Promise<{ readonly lease: Lease | undefined } | undefined> {
    const reading = this.ports.poolStore
      .findBrowser(slot.id)
      .then((found) => ({ lease: leaseOf(found?.browser) }));
    if (!unread) return await reading;
    return await within(
      this.ports.clock,
      { what: "reading the record", limitMs: readLimitMs },
      reading,
    ).catch(() => undefined);
  }

  /** The record is brought in line by whoever asked, and by the next look. */
  async #putUnread(slot: Slot, { revision, unread }: SyncRequest): Promise<boolean> {
    if (!unread?.isWanted()) return false;
    const { lease, change } = unread;
    const known = slot.network?.lease === lease ? slot.network : undefined;
    // A later one, or one that a failover took from Redis, whose numbers begin anew: only the record tells.
    if (known && known.revision > revision)
      throw new Error("another change is in force, and the record cannot be read");
    if (known?.revision === revision && isDeepStrictEqual(known.settings, settingsOf(change))) return true;
    const rules = await slot.egress.rulesWith(change);
    if (!unread.isWanted()) return false;
    await this.#put({ slot, lease }, change, rules);
    this.#behind.add(slot);
    this.ports.log.info({ browser: slot.id, revision }, "network changed without the record");
    return true;
  }

  /**
   * Puts rules in force first, and then into the record, so that the record never tells of rules that do not
   * hold.
   */
  async #change(
    slot: Slot,
    { id: lease }: Lease,
    { networkWanted: wanted, request, closing }: Changing,
  ): Promise<boolean> {
    const { log } = this.ports;
    const { revision } = wanted;
    const rules = await this.#rulesFor(slot, wanted).catch((error: unknown) => {
      log.warn({ browser: slot.id, lease, error: textOf(error) }, "network change refused");
      return undefined;
    });
    if (rules) await this.#put({ slot, lease }, wanted, rules);
    else await slot.egress.reopen();
    if (rules && revision >= request.revision) closing.disarm();
    const noted = await this.#report(slot, {
      browser: slot.id,
      lease,
      revision,
      outcome: rules ? "applied" : "refused",
    });
    if (rules) log.info({ browser: slot.id, lease, revision }, "network changed");
    // Another change has taken the place of the one that could not be put in force, or the lease is over: the
    // record says which.
    return (
      rules !== undefined ||
      (noted === "stale" && (await this.#sync(slot, { ...request, revision }, closing)))
    );
  }

  /** What is in force holds, whether the record can be written now or later. */
  async #report(slot: Slot, report: Parameters<NodeReports["applied"]>[0]): Promise<"applied" | "stale"> {
    try {
      return await this.ports.reports.applied(report);
    } catch (error) {
      if (report.outcome === "refused") throw error;
      this.#behind.add(slot);
      this.ports.log.warn(
        { browser: slot.id, error: textOf(error) },
        "network change in force and not told yet",
      );
      return "applied";
    }
  }

  async #put(
    { slot, lease }: { slot: Slot; lease: LeaseId },
    change: NetworkChange,
    rules: Rules,
  ): Promise<void> {
    await slot.egress.apply(rules);
    slot.network = { lease, revision: change.revision, settings: settingsOf(change) };
  }

  #inTurn<Result>(slot: Slot, work: () => Promise<Result>): Promise<Result> {
    const turn = (this.#last.get(slot) ?? Promise.resolve()).then(work, work);
    this.#last.set(
      slot,
      turn.catch(() => {}),
    );
    return turn;
  }
}
