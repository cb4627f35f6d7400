import { LRUCache } from "lru-cache";
import type { Clock, Millis } from "../base/clock.js";
import type { Partition } from "../base/ids.js";

const leftMs: Millis = 1000;
const mostLeft = 1000;

/**
 * Whether a warm script (lua/include/lease/warm.lua) is asked first in a partition. Where it has lately left
 * its work to the whole one, that is asked at once for a while: callers wait in line there, or each release
 * ends its browser.
 */
export class WarmScripts {
  readonly #leftUntil = new LRUCache<Partition, Millis>({ max: mostLeft });

  constructor(private readonly clock: Clock) {}

  areAsked(partition: Partition): boolean {
    const until = this.#leftUntil.get(partition);
    return until === undefined || this.clock.monotonic() >= until;
  }

  leave(partition: Partition): void {
    this.#leftUntil.set(partition, this.clock.monotonic() + leftMs);
  }
}
