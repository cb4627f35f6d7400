import type { Clock, Millis } from "../base/clock.js";
import type { Partition } from "../base/ids.js";
import { forEachConcurrently } from "../base/concurrently.js";

export interface RoundLimits {
  /** Partitions looked at side by side: their round trips to Redis share the way. */
  readonly atOnce: number;
  /** A walk that takes longer leaves the rest to the next. */
  readonly limitMs: Millis;
}

/**
 * Goes round all partitions: none waits for the round trips of another, and no walk lasts longer than its
 * limit. The next one goes on where this one stopped. One at a time: whoever asks for another meanwhile is
 * told that nothing was done.
 */
export class PartitionRounds {
  #nextPartition: Partition | undefined;
  #isUnderWay = false;

  constructor(
    private readonly clock: Clock,
    private readonly limits: RoundLimits,
  ) {}

  /** `visit` must not throw. */
  async over(
    partitions: readonly Partition[],
    visit: (partition: Partition) => Promise<unknown>,
  ): Promise<void> {
    if (this.#isUnderWay) return;
    this.#isUnderWay = true;
    try {
      await forEachConcurrently(this.#round(partitions), this.limits.atOnce, visit);
    } finally {
      this.#isUnderWay = false;
    }
  }

  *#round(partitions: readonly Partition[]): Iterable<Partition> {
    const until = this.clock.monotonic() + this.limits.limitMs;
    const start = Math.max(
      0,
      this.#nextPartition === undefined ? 0 : partitions.indexOf(this.#nextPartition),
    );
    for (const partition of [...partitions.slice(start), ...partitions.slice(0, start)]) {
      this.#nextPartition = partition;
      if (this.clock.monotonic() > until) return;
      yield partition;
    }
    this.#nextPartition = undefined;
  }
}
