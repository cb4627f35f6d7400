import type { Clock, Millis } from "../base/clock.js";
import type { Digest } from "../base/ids.js";
import type { Log } from "../base/log.js";
import type { ArchiveEntry } from "./archives.js";
import type { ArchiveBackend } from "./kept-archives.js";

interface SweepPorts {
  readonly archives: Pick<ArchiveBackend, "list" | "removeStale" | "tidy">;
  /** Every digest that a registry names. */
  named(): Promise<ReadonlySet<Digest>>;
  readonly unusedMs: Millis;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Deletes archives that were not put, and that nothing has named, for `unusedMs` as far as this process has
 * seen, and what interrupted puts have left as long ago. A failover or a restored Redis may name again what
 * was replaced just before. Whoever names an archive anew has put it just before, which gives it another
 * time; so what still has its time when it is removed, and was not named after it was listed, will not be
 * named by anybody. Times are only told apart, and no wall clock is asked, since those of the store and of
 * several daemons differ, and jump (DECISIONS.md#188). A registry that cannot be read deletes nothing.
 */
export function makeSweep({ archives, named, unusedMs, clock, log }: SweepPorts): () => Promise<void> {
  const [unnamed, left] = [new Sightings(clock), new Sightings(clock)];
  return async () => {
    await archives.tidy((leftover) => left.ageMs(leftover) >= unusedMs);
    left.nextRound();
    const listed: ArchiveEntry[] = [];
    for await (const entry of archives.list()) listed.push(entry);
    const used = listed.length === 0 ? new Set() : await named();
    const stale = listed
      .filter(({ digest }) => !used.has(digest))
      .filter(({ digest, putAt }) => unnamed.ageMs(`${digest} ${putAt}`) >= unusedMs);
    unnamed.nextRound();
    for (const { digest, putAt } of stale)
      if ((await archives.removeStale(digest, putAt)) === "removed")
        log.info({ digest }, "unused archive deleted");
  };
}

/** For how long the same was seen in each round. */
class Sightings {
  #before: ReadonlyMap<string, Millis> = new Map();
  #now = new Map<string, Millis>();

  constructor(private readonly clock: Pick<Clock, "monotonic">) {}

  ageMs(seen: string): Millis {
    const now = this.clock.monotonic();
    const since = this.#before.get(seen) ?? now;
    this.#now.set(seen, since);
    return now - since;
  }

  nextRound(): void {
    [this.#before, this.#now] = [this.#now, new Map()];
  }
}
