import type { LeaseId } from "../../base/ids.js";
import type { TrafficUsage } from "../../pool/browser.js";
import type { LeaseUsage } from "../../pool/ports/node-reports.js";

const minus = (now: TrafficUsage, before: TrafficUsage): TrafficUsage => ({
  requests: now.requests - before.requests,
  denied: now.denied - before.denied,
  bytesSent: now.bytesSent - before.bytesSent,
  bytesReceived: now.bytesReceived - before.bytesReceived,
});

/**
 * Counts what the present lease of a browser has used, or the last one. It begins when this node first learns
 * of the lease: what the browser did between two leases is no holder's.
 */
export class LeaseUsageCount {
  #lease: LeaseId | undefined;
  #before: TrafficUsage;
  #reported = "";

  /** With `fromNow`, for a session on demand, the usage of its first lease counts from the beginning. */
  constructor(
    private readonly count: () => TrafficUsage,
    private readonly fromNow: boolean,
  ) {
    this.#before = count();
  }

  begin(lease: LeaseId): void {
    if (this.#lease !== undefined || !this.fromNow) this.#before = this.count();
    this.#lease = lease;
  }

  /** Undefined where there was no lease yet. */
  get total(): LeaseUsage | undefined {
    return this.#lease && { lease: this.#lease, usage: minus(this.count(), this.#before) };
  }

  /** The usage of `lease` that has not been reported; a second call gives only what came since. */
  unreported(lease: LeaseId): LeaseUsage | undefined {
    const { total } = this;
    const text = JSON.stringify(total);
    if (total?.lease !== lease || text === this.#reported || isNothing(total.usage)) return undefined;
    this.#reported = text;
    return total;
  }
}

const isNothing = (usage: TrafficUsage): boolean => Object.values(usage).every((count) => count === 0);
