import type { LeaseId } from "../base/ids.js";
import { type FairTurn, turns } from "../base/fair-turns.js";

interface OfLease {
  count: number;
  readonly turn: FairTurn;
}

/**
 * How many clients the holder of each lease has at this daemon, those whose upgrade is not settled and those
 * relayed included. Those of a lease that is over, still closing, are not counted for the next holder.
 */
export class ClientCounts {
  readonly #leases = new Map<LeaseId, OfLease>();

  constructor(private readonly most: number) {}

  /**
   * The turn that clients of the lease share; undefined where there are as many as may be. As many `leave` as
   * `enter`.
   */
  enter(lease: LeaseId): FairTurn | undefined {
    const clients = this.#leases.get(lease) ?? { count: 0, turn: turns.open() };
    if (clients.count >= this.most) return undefined;
    clients.count += 1;
    this.#leases.set(lease, clients);
    return clients.turn;
  }

  leave(lease: LeaseId): void {
    const clients = this.#leases.get(lease);
    if (!clients) return;
    clients.count -= 1;
    if (clients.count === 0) this.#leases.delete(lease);
  }
}
