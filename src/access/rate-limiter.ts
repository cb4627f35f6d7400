import type { Millis } from "../base/clock.js";

/** A bucket of requests that is refilled all the time, and holds as many as are refilled in a minute. */
export interface RateLimiter {
  readonly perMinute: number;
  take(
    bucket: string,
  ): Promise<
    | { readonly kind: "taken"; readonly remaining: number }
    | { readonly kind: "refused"; readonly retryAfterMs: Millis }
  >;
}
