import type { Clock, Millis } from "../base/clock.js";
import type { Digest } from "../base/ids.js";
import type { Log } from "../base/log.js";
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
 * Deletes archives that were put longer than `unusedMs` ago and that nothing has named for as long, as far as
 * this process has seen, and what interrupted puts have left. A failover or a restored Redis may name again
 * what was replaced just before. Whoever names an archive anew has put it just before, which makes it fresh;
 * so what is stale when it is removed, and was not named after it was listed, will not be named by anybody. A
 * registry that cannot be read deletes nothing.
 */
export function makeSweep({ archives, named, unusedMs, clock, log }: SweepPorts): () => Promise<void> {
  /** The instant (monotonic) at which each was found to be stale and without a name. */
  let unnamed: ReadonlyMap<Digest, Millis> = new Map();
  return async () => {
    const before = clock.now() - unusedMs;
    await archives.tidy(before);
    const stale: Digest[] = [];
    for await (const { digest, putAt } of archives.list()) if (putAt < before) stale.push(digest);
    const used = stale.length === 0 ? new Set() : await named();
    const now = clock.monotonic();
    unnamed = new Map(
      stale.filter((digest) => !used.has(digest)).map((digest) => [digest, unnamed.get(digest) ?? now]),
    );
    for (const [digest, since] of unnamed) {
      if (now - since < unusedMs) continue;
      if ((await archives.removeStale(digest, before)) === "removed")
        log.info({ digest }, "unused archive deleted");
    }
  };
}
