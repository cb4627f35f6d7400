import type { LeaseId } from "../../base/ids.js";
import type { GatewayLimits } from "../limits.js";

/** Counts the BiDi clients of each lease and of the daemon: each has a process. */
export class BidiSeats {
  readonly #leases = new Map<LeaseId, number>();
  #all = 0;

  constructor(private readonly limits: GatewayLimits["bidiClients"]) {}

  /** False where there are as many as may be. As many are released as enter. */
  enter(lease: LeaseId): boolean {
    const own = this.#leases.get(lease) ?? 0;
    if (own >= this.limits.lease || this.#all >= this.limits.daemon) return false;
    this.#leases.set(lease, own + 1);
    this.#all += 1;
    return true;
  }

  release(lease: LeaseId): void {
    const own = (this.#leases.get(lease) ?? 0) - 1;
    this.#all -= 1;
    if (own > 0) this.#leases.set(lease, own);
    else this.#leases.delete(lease);
  }
}
