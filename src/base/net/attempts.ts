import { LRUCache } from "lru-cache";
import type { Clock, Millis } from "../clock.js";

const minuteMs: Millis = 60_000;
/** Some 100 bytes each. */
const mostKeys = 10_000;

/**
 * Counts attempts under a key, such as an address, at this daemon. Each key has a bucket that holds as many
 * as may come in a minute, and is refilled all the time.
 */
export class Attempts {
  /** When the bucket of a key is full again; those that came longest ago go first. */
  readonly #fullAt = new LRUCache<string, Millis>({ max: mostKeys });

  constructor(
    private readonly perMinute: number,
    private readonly clock: Clock,
  ) {}

  /** Takes one; how long to wait, where none is left. */
  take(key: string): Millis | undefined {
    const now = this.clock.monotonic();
    const fullAt = Math.max(this.#fullAt.get(key) ?? 0, now) + minuteMs / this.perMinute;
    if (fullAt > now + minuteMs) return fullAt - now - minuteMs;
    this.#fullAt.set(key, fullAt);
    return undefined;
  }
}
