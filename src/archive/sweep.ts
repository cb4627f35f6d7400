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
 * Deletes archives that nothing names and that were put longer than `unusedMs` ago, and what interrupted puts
 * have left. Whoever names an archive has put it just before, which makes it fresh; so what is stale when it
 * is removed, and was not named after it was listed, will not be named by anybody. A registry that cannot be
 * read deletes nothing.
 */
export const makeSweep =
  ({ archives, named, unusedMs, clock, log }: SweepPorts) =>
  async (): Promise<void> => {
    const before = clock.now() - unusedMs;
    await archives.tidy(before);
    const stale: Digest[] = [];
    for await (const { digest, putAt } of archives.list()) if (putAt < before) stale.push(digest);
    if (stale.length === 0) return;
    const used = await named();
    for (const digest of stale) {
      if (used.has(digest)) continue;
      if ((await archives.removeStale(digest, before)) === "removed")
        log.info({ digest }, "unused archive deleted");
    }
  };
