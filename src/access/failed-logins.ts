import type { Clock, Millis } from "../base/clock.js";
import { Attempts } from "../base/net/attempts.js";
import { subscriberOf } from "../base/net/client-address.js";
import { refusal, type Refusal } from "../base/errors.js";

/**
 * Counts credentials that were not good by the address they came from, at this daemon. A credential is judged
 * before, so that a good one is let in whatever others behind its address do; what fails more often than it
 * may is told to wait.
 */
export class FailedLogins {
  readonly #attempts: Attempts | undefined;

  /** `perMinute` is null where as many may fail as come. */
  constructor(perMinute: number | null, clock: Clock) {
    this.#attempts = perMinute === null ? undefined : new Attempts(perMinute, clock);
  }

  /** Notes one; why it is to wait, where more have failed than may. */
  note(address: string): Refusal | undefined {
    const waitMs = this.#attempts?.take(subscriberOf(address));
    return waitMs === undefined ? undefined : tooMany(waitMs);
  }
}

const tooMany = (retryAfterMs: Millis): Refusal =>
  refusal("rate_limit_exceeded", { message: "Too many logins have failed from this address", retryAfterMs });
