import type { ServerResponse } from "node:http";
import type { Millis } from "../base/clock.js";
import type { LeaseId } from "../base/ids.js";
import { type FairTurn, type FairTurns, turns } from "../base/fair-turns.js";

interface ClientLimits {
  readonly most: number;
  /** What the clients of a lease may send in the long run; undefined: no limit. */
  readonly bytesPerSecond: number | undefined;
}

interface OfLease {
  count: number;
  readonly turn: FairTurn;
}

/**
 * Counts the clients that the holder of each lease has at this daemon, those included whose upgrade is not
 * settled and those that are relayed. Clients of a lease that is over, which are still closing, do not count
 * for the next holder. What the clients of a lease have used is held against those that come after them:
 * who connects again has no more for it.
 */
export class ClientCounts {
  readonly #leases = new Map<LeaseId, OfLease>();
  /** Turns of leases without clients, in the order in which the last one went. */
  readonly #left = new Map<LeaseId, FairTurn>();

  constructor(
    private readonly limits: ClientLimits,
    private readonly opens: Pick<FairTurns, "open"> = turns,
  ) {}

  /**
   * The turn that clients of the lease share; undefined where there are as many as may be. Each that was let
   * in has to be followed by one `remove`.
   */
  enter(lease: LeaseId): FairTurn | undefined {
    const clients = this.#leases.get(lease) ?? { count: 0, turn: this.#turnOf(lease) };
    if (clients.count >= this.limits.most) return undefined;
    clients.count += 1;
    this.#leases.set(lease, clients);
    return clients.turn;
  }

  remove(lease: LeaseId): void {
    const clients = this.#leases.get(lease);
    if (!clients) return;
    clients.count -= 1;
    if (clients.count > 0) return;
    this.#leases.delete(lease);
    this.#left.set(lease, clients.turn);
    this.#forgetRested();
  }

  #turnOf(lease: LeaseId): FairTurn {
    const turn = this.#left.get(lease) ?? this.opens.open(this.limits);
    this.#left.delete(lease);
    return turn;
  }

  /**
   * Forgets turns that have as much left as new ones. It stops at the first that has not, since those after
   * it were used later.
   */
  #forgetRested(): void {
    for (const [lease, turn] of this.#left) {
      if (!turn.isRested) return;
      this.#left.delete(lease);
    }
  }
}

const mostPages = 16;
/** What a page of discovery costs, with the questions to Redis and Chromium. */
const pageMs: Millis = 0.5;

/** Pages of discovery that holders of leases ask for: so many at once, and in turns of the event loop. */
export class PageCounts {
  readonly #counts = new ClientCounts({ most: mostPages, bytesPerSecond: undefined });

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
