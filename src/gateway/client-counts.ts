import type { ServerResponse } from "node:http";
import type { Millis } from "../base/clock.js";
import type { LeaseId } from "../base/ids.js";
import { type FairTurn, turns } from "../base/fair-turns.js";

/** What the clients of a lease may send in the long run. */
const bytesPerSecond = 8 * 1024 * 1024;

interface OfLease {
  count: number;
  readonly turn: FairTurn;
}

/**
 * Counts the clients that the holder of each lease has at this daemon, those included whose upgrade is not
 * settled and those that are relayed. Clients of a lease that is over, which are still closing, do not count
 * for the next holder.
 */
export class ClientCounts {
  readonly #leases = new Map<LeaseId, OfLease>();

  constructor(private readonly most: number) {}

  /**
   * The turn that clients of the lease share; undefined where there are as many as may be. As many `leave` as
   * `enter`.
   */
  enter(lease: LeaseId): FairTurn | undefined {
    const clients = this.#leases.get(lease) ?? { count: 0, turn: turns.open({ bytesPerSecond }) };
    if (clients.count >= this.most) return undefined;
    clients.count += 1;
    this.#leases.set(lease, clients);
    return clients.turn;
  }

  remove(lease: LeaseId): void {
    const clients = this.#leases.get(lease);
    if (!clients) return;
    clients.count -= 1;
    if (clients.count === 0) this.#leases.delete(lease);
  }
}

const mostPages = 16;
/** What one costs, with what is asked of Redis and Chromium for it. */
const pageMs: Millis = 0.5;

/** Pages of discovery that holders of leases ask for: so many at once, and in turns of the event loop. */
export class PageCounts {
  readonly #counts = new ClientCounts(mostPages);

  /** When it is the turn of the lease; false where its holder asks for too many. */
  async enter(lease: LeaseId, response: ServerResponse): Promise<boolean> {
    const turn = response.destroyed ? undefined : this.#counts.enter(lease);
    if (!turn) return false;
    response.once("close", () => this.#counts.remove(lease));
    await turn.come();
    turn.spend(pageMs);
    return true;
  }
}
