import { LRUCache } from "lru-cache";
import type { Clock, Millis } from "../base/clock.js";
import { subscriberOf } from "../base/net/client-address.js";
import { refusal, type Refusal } from "../base/errors.js";

const minuteMs: Millis = 60_000;
/** Some 100 bytes each. */
const mostAddresses = 10_000;

/**
 * Counts credentials that were not good by the address they came from, at this daemon. A credential is judged
 * before, so that a good one is let in whatever others behind its address do; what fails more often than it
 * may is told to wait.
 */
export class FailedLogins {
  /** When the bucket of an address is full again; the ones that failed longest ago go first. */
  readonly #fullAt = new LRUCache<string, Millis>({ max: mostAddresses });

  constructor(
    /** Null: as many as come. */
    private readonly perMinute: number | null,
    private readonly clock: Clock,
  ) {}

  /** Notes one; why it is to wait, where more have failed than may. */
  note(address: string): Refusal | undefined {
    if (this.perMinute === null) return undefined;
    const intervalMs = minuteMs / this.perMinute;
    const now = this.clock.monotonic();
    const subscriber = subscriberOf(address);
    const fullAt = Math.max(this.#fullAt.get(subscriber) ?? 0, now) + intervalMs;
    if (fullAt > now + minuteMs) return tooMany(fullAt - now - minuteMs);
    this.#fullAt.set(subscriber, fullAt);
    return undefined;
  }
}

const tooMany = (retryAfterMs: Millis): Refusal =>
  refusal("rate_limit_exceeded", { message: "Too many logins have failed from this address", retryAfterMs });
