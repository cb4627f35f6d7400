import { isDeepStrictEqual } from "node:util";
import type { Clock, Millis } from "../base/clock.js";
import type { LeaseId } from "../base/ids.js";
import { type Log, textOf } from "../base/log.js";
import type { Rules } from "../egress/rules.js";
import type { Lease, NetworkChange } from "../pool/browser.js";
import type { Homes, NodeReports } from "../pool/ports.js";
import type { Slot } from "./slot.js";

export interface NetworkPorts {
  readonly homes: Homes;
  readonly reports: NodeReports;
  readonly clock: Clock;
  readonly log: Log;
}

type Asked = Pick<NetworkChange, "allowedHosts" | "proxy">;
const askedOf = ({ allowedHosts, proxy }: Asked): Asked => ({
  ...(allowedHosts !== undefined && { allowedHosts }), ...(proxy !== undefined && { proxy }),
});

/**
 * A change that takes longer than this to put in force shuts the browser's way out until it is: whoever asked is told after 5 s
 * that it is closed (session-update.ts), and it has to be by then.
 */
const shutAfterMs: Millis = 1000;

/** Brings what browsers may reach in line with what their records say; one step at a time for each browser. */
export class Networks {
  readonly #last = new WeakMap<Slot, Promise<unknown>>();
  /** Rules of a change that the record does not ask for yet. */
  readonly #prepared = new WeakMap<Slot, { readonly asked: Asked; readonly rules: Rules }>();

  constructor(private readonly ports: NetworkPorts) {}

  /**
   * Puts in force what the record says of the lease's network, asked for or in force already. Resolves with whether the change
   * `revision`, or a later one, is. Throws where Redis cannot be asked; the way out is then shut until the next look.
   */
  sync(slot: Slot, revision = 0): Promise<boolean> {
    return this.#inTurn(slot, async () => {
      const cancel = this.ports.clock.after(shutAfterMs, () => slot.door.shut());
      try {
        return await this.#sync(slot, revision);
      } catch (error) {
        slot.door.shut();
        throw error;
      } finally {
        cancel();
      }
    });
  }

  /**
   * Makes ready what the record will ask for next, so that it cannot be refused then. False where it cannot be, or the lease is over; nothing
   * has changed either way.
   */
  async prepare(slot: Slot, lease: LeaseId, asked: Asked): Promise<boolean> {
    const record = (await this.ports.homes.findBrowser(slot.id))?.browser.lease;
    if (record?.id !== lease) return false;
    const all = { ...askedOf(record.networkWanted ?? record.network ?? {}), ...asked };
    try {
      this.#prepared.set(slot, { asked: all, rules: await slot.door.rulesWith({ revision: 0, ...all }) });
      return true;
    } catch (error) {
      this.ports.log.warn({ browser: slot.id, lease, error: textOf(error) }, "network change refused");
      return false;
    }
  }

  async #rulesFor(slot: Slot, wanted: NetworkChange): Promise<Rules> {
    const prepared = this.#prepared.get(slot);
    this.#prepared.delete(slot);
    return prepared && isDeepStrictEqual(prepared.asked, askedOf(wanted)) ? prepared.rules : await slot.door.rulesWith(wanted);
  }

  /** The launch's own rules again: nothing of the lease's is left. */
  restore(slot: Slot): Promise<void> {
    return this.#inTurn(slot, () => this.#restore(slot));
  }

  async #restore(slot: Slot): Promise<void> {
    if (slot.network === undefined) return;
    await slot.door.apply();
    slot.network = undefined;
  }

  async #sync(slot: Slot, revision: number): Promise<boolean> {
    const lease = (await this.ports.homes.findBrowser(slot.id))?.browser.lease;
    const { network, networkWanted } = lease ?? {};
    if (lease && networkWanted) return (await this.#change(slot, lease, networkWanted)) && networkWanted.revision >= revision;
    if (lease && network && network.revision !== slot.network?.revision) await this.#put({ slot, lease: lease.id }, network, await slot.door.rulesWith(network));
    else if (lease && !network) await this.#restore(slot);
    await slot.door.reopen();
    return (network?.revision ?? 0) >= revision;
  }

  /** In force first, then in the record: the record never tells of rules that do not hold. */
  async #change(slot: Slot, { id: lease }: Lease, wanted: NetworkChange): Promise<boolean> {
    const { reports, log } = this.ports;
    const { revision } = wanted;
    const rules = await this.#rulesFor(slot, wanted).catch((error: unknown) => {
      log.warn({ browser: slot.id, lease, error: textOf(error) }, "network change refused");
      return undefined;
    });
    if (rules) await this.#put({ slot, lease }, wanted, rules);
    else await slot.door.reopen();
    const noted = await reports.applied({ browser: slot.id, lease, revision, outcome: rules ? "applied" : "refused" });
    if (rules) log.info({ browser: slot.id, lease, revision }, "network changed");
    // Another has taken the place of what could not be put in force, or the lease is over: the record says which.
    return rules !== undefined || (noted === "stale" && (await this.#sync(slot, revision)));
  }

  async #put({ slot, lease }: { slot: Slot; lease: LeaseId }, { revision, proxy }: NetworkChange, rules: Rules): Promise<void> {
    await slot.door.apply(rules);
    slot.network = { lease, revision, hasProxy: proxy !== undefined };
  }

  #inTurn<Result>(slot: Slot, work: () => Promise<Result>): Promise<Result> {
    const turn = (this.#last.get(slot) ?? Promise.resolve()).then(work, work);
    this.#last.set(slot, turn.catch(() => {}));
    return turn;
  }
}
