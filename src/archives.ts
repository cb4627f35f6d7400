import { join } from "node:path";
import { textOf } from "./base/log.js";
import { Stops } from "./base/stops.js";
import type { ArchiveCache, Staging } from "./blob/archives.js";
import { openCache } from "./blob/cache.js";
import { DirectoryArchives } from "./blob/directory-archives.js";
import type { KeptArchives } from "./blob/kept-archives.js";
import { openStaging } from "./blob/staging.js";
import type { Config } from "./config.js";
import type { Surroundings } from "./ground.js";

export interface ArchivesPart {
  readonly archives: KeptArchives;
  readonly staging: Staging;
  /** A node's. */
  readonly cache: ArchiveCache;
  readonly stops: Stops;
}

/** Archives of extensions and profiles, wired by hand. Once per daemon: what lies in staging and cache is emptied. */
export async function openArchives(config: Config, { clock, log }: Pick<Surroundings, "clock" | "log">): Promise<ArchivesPart> {
  const stops = new Stops(clock, config.stop.stepMs);
  const archives = new DirectoryArchives(config.archives.directory, clock);
  const staging = await openStaging(join(config.dataDir, "staging"));
  const cache = await openCache({
    archives, directory: join(config.dataDir, "archive-cache"), maxBytes: config.archives.cacheBytes,
    onFault: (error) => log.warn({ error: textOf(error) }, "archive was not removed from the cache"),
  });
  return { archives, staging, cache, stops };
}
