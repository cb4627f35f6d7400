import type { Clock, Millis } from "../base/clock.js";
import { forEachConcurrently } from "../base/concurrently.js";

interface RoundLimits {
  /** Looked at side by side: their round trips to Redis share the way. */
  readonly atOnce: number;
  /** A walk that takes longer leaves the rest to the next. */
  readonly limitMs: Millis;
}

/**
 * Goes round all partitions, or pools: none waits for the round trips of another, and no walk lasts longer
 * than its limit. The next one goes on where this one stopped. One at a time: whoever asks for another
 * meanwhile is told that nothing was done.
 */
export class Rounds<Stop extends string> {
  #nextStop: Stop | undefined;
  #isUnderWay = false;

  constructor(
    private readonly clock: Clock,
    private readonly limits: RoundLimits,
  ) {}

  /** Goes on past the failures of single visits, and gives them back. */
  async over(stops: readonly Stop[], visit: (stop: Stop) => Promise<unknown>): Promise<readonly unknown[]> {
    if (this.#isUnderWay) return [];
    this.#isUnderWay = true;
    try {
      return await forEachConcurrently(this.#round(stops), this.limits.atOnce, visit);
    } finally {
      this.#isUnderWay = false;
    }
  }

  *#round(stops: readonly Stop[]): Iterable<Stop> {
    const until = this.clock.monotonic() + this.limits.limitMs;
    const start = Math.max(0, this.#nextStop === undefined ? 0 : stops.indexOf(this.#nextStop));
    for (const stop of [...stops.slice(start), ...stops.slice(0, start)]) {
      this.#nextStop = stop;
      if (this.clock.monotonic() > until) return;
      yield stop;
    }
    this.#nextStop = undefined;
  }
}
