import type { Millis } from "../base/clock.js";
import { refusal, type Refusal } from "../base/errors.js";

/** What a bucket that holds a minute's worth of requests was found to hold, after one was taken out. */
export interface Rate {
  readonly perMinute: number;
  readonly remaining: number;
  /** Set where none was left, and nothing was taken: until there is one. */
  readonly retryAfterMs?: Millis;
}

/** A bucket of requests that is refilled all the time, and holds as many as are refilled in a minute. */
export interface RateLimiter {
  take(bucket: string): Promise<Rate>;
}

/** Why a request is not let in for which nothing was left. */
export const refusedBy = ({ retryAfterMs }: Rate): Refusal | undefined =>
  retryAfterMs === undefined ? undefined : refusal("rate_limit_exceeded", { retryAfterMs });
