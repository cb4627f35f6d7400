import { join } from "node:path";
import type { Clock } from "../base/clock.js";
import { textOf } from "../base/log.js";
import { openWhole, Stops } from "../base/stops.js";
import { openCache } from "../archive/cache.js";
import { DirectoryArchives } from "../archive/directory-archives.js";
import type { ArchiveBackend } from "../archive/kept-archives.js";
import { type KeptProfiles, makeProfileArchives } from "../archive/profile-archives.js";
import { openStaging } from "../archive/staging.js";
import type { Config } from "../config/config.js";
import type { ProfileStore } from "../registry/profiles/profile.js";
import type { DaemonContext } from "./boot.js";
import type { ArchivesPart, DaemonParts } from "./parts.js";

type ArchivesContext = Pick<DaemonContext, "clock" | "log">;

/** States of profiles, read through `open`: from the archives themselves, or from a node's cache. */
export const profileArchivesOf = (
  { config, clock, keys, archives: { archives, staging } }: DaemonParts,
  profiles: Pick<ProfileStore, "find" | "commit">,
  open: Parameters<typeof makeProfileArchives>[0]["open"],
): KeptProfiles =>
  makeProfileArchives({
    profiles,
    archives,
    staging,
    clock,
    seal: keys.streamSeal,
    maxBytes: config.profiles.maxBytes,
    open,
  });

/**
 * Archives of extensions and profiles. Opened once per daemon, since what lies in staging and cache is
 * emptied.
 */
export async function openArchives(config: Config, around: ArchivesContext): Promise<ArchivesPart> {
  const stops = new Stops(around.clock, config.stop.stepMs);
  return await openWhole(stops, () => openAll(config, around, stops));
}

async function openAll(config: Config, { clock, log }: ArchivesContext, stops: Stops): Promise<ArchivesPart> {
  const archives = await openKeptArchives(config, clock, stops);
  if (isOwnAlone(config))
    log.warn(
      { directory: config.archives.directory },
      "archives are kept in this daemon's own directory; all daemons have to share one, or a bucket",
    );
  const staging = await openStaging(join(config.dataDir, "staging"));
  const cache = await openCache({
    archives,
    directory: join(config.dataDir, "archive-cache"),
    maxBytes: config.archives.cacheBytes,
    onFault: (error) => log.warn({ error: textOf(error) }, "archive was not removed from the cache"),
  });
  return { archives, staging, cache, stops };
}

/** Whether this is one of several daemons and keeps archives in its own data directory. */
const isOwnAlone = ({ role, dataDir, archives }: Config): boolean =>
  role !== "all" && archives.s3Bucket === null && archives.directory === join(dataDir, "archives");

/** The archives alone, of which nothing is emptied by opening them. */
export async function openKeptArchives(
  { archives }: Config,
  clock: Clock,
  stops: Stops,
): Promise<ArchiveBackend> {
  const {
    s3Bucket: bucket,
    s3Endpoint: endpoint,
    s3AccessKeyId: accessKeyId,
    s3SecretAccessKey: secretAccessKey,
  } = archives;
  if (bucket === null) return new DirectoryArchives(archives.directory, clock);
  // Large, and of no use to a deployment that keeps archives in a directory.
  const { S3Archives } = await import("../archive/s3-archives.js");
  const kept = new S3Archives({
    bucket,
    prefix: archives.s3Prefix ?? "",
    region: archives.s3Region,
    isPathStyle: archives.s3PathStyle,
    limitMs: archives.s3LimitMs,
    ...(endpoint !== null && { endpoint }),
    ...(accessKeyId && secretAccessKey && { credentials: { accessKeyId, secretAccessKey } }),
  });
  stops.add("s3", () => kept.close());
  return kept;
}
