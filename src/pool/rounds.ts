import type { Clock, Millis } from "../base/clock.js";
import type { Home } from "../base/ids.js";
import { sideBySide } from "../base/concurrently.js";

export interface WalkLimits {
  /** Homes looked at side by side: their round trips to Redis share the way. */
  readonly atOnce: number;
  /** A walk that takes longer leaves the rest to the next. */
  readonly limitMs: Millis;
}

/**
 * Goes round all homes: none waits for the round trips of another, and no walk lasts longer than its limit. The next one goes on
 * where this one stopped. One at a time: whoever asks for another meanwhile is told that nothing was done.
 */
export class Walk {
  #nextHome: Home | undefined;
  #isUnderWay = false;

  constructor(private readonly clock: Clock, private readonly limits: WalkLimits) {}

  /** `visit` must not throw. */
  async over(homes: readonly Home[], visit: (home: Home) => Promise<unknown>): Promise<void> {
    if (this.#isUnderWay) return;
    this.#isUnderWay = true;
    try {
      await sideBySide(this.#round(homes), this.limits.atOnce, visit);
    } finally {
      this.#isUnderWay = false;
    }
  }

  *#round(homes: readonly Home[]): Iterable<Home> {
    const until = this.clock.monotonic() + this.limits.limitMs;
    const start = Math.max(0, this.#nextHome === undefined ? 0 : homes.indexOf(this.#nextHome));
    for (const home of [...homes.slice(start), ...homes.slice(0, start)]) {
      this.#nextHome = home;
      if (this.clock.monotonic() > until) return;
      yield home;
    }
    this.#nextHome = undefined;
  }
}
