import { once } from "node:events";
import { createReadStream } from "node:fs";
import type { Readable } from "node:stream";
import { type Clock, type Millis, pause } from "../base/clock.js";
import { untilAborted } from "../base/deadline.js";
import type { Digest, ProfileId } from "../base/ids.js";
import { isStoreAway } from "../base/store-fault.js";
import type { ProfileArchives, ProfileStore, SaveOptions } from "../registry/profiles/profile.js";
import {
  type ArchiveCache,
  type Archives,
  isArchiveMissing,
  type StagedArchive,
  type Staging,
} from "./archives.js";
import type { StreamStep } from "./chunks.js";
import type { StreamSeal } from "./stream-seal.js";
import { limitBytes, pipeThrough } from "./pipe-through.js";
import { compress, decompress } from "./formats/zstd.js";

interface ProfileArchivePorts {
  readonly profiles: Pick<ProfileStore, "find" | "commit">;
  readonly archives: Pick<Archives, "put" | "remove">;
  readonly staging: Pick<Staging, "take">;
  readonly seal: StreamSeal;
  readonly clock: Clock;
  /** The longest tar of a profile. */
  readonly maxBytes: number;
  /** The bytes of an archive: `archives.open`, or a node's cache (`openFrom`). */
  open(digest: Digest): Promise<Readable>;
}

export interface KeptProfiles extends ProfileArchives {
  /** Does what `open` does, but gives the tar still compressed with zstd. */
  openCompressed(id: ProfileId): Promise<Readable | undefined>;
}

/** Archives as a cache has them; each stays there until its stream is closed. */
export const openFrom =
  (cache: ArchiveCache) =>
  async (digest: Digest): Promise<Readable> => {
    const { path, release } = await cache.take(digest);
    return createReadStream(path).once("close", release);
  };

export function makeProfileArchives(ports: ProfileArchivePorts): KeptProfiles {
  const openAs = (id: ProfileId, ...steps: readonly StreamStep[]): Promise<Readable | undefined> =>
    openLatest(ports, { id }, async (digest) =>
      begun(pipeThrough(await ports.open(digest), ports.seal.open(id), ...steps)),
    );
  return {
    open: (id) => openAs(id, decompress),
    openCompressed: (id) => openAs(id),
    save: (id, tar, options) => save(ports, { id, tar, ...options }),
  };
}

/** The archive of a save that another has followed meanwhile may be gone: then there is a later one. */
async function openLatest(
  ports: ProfileArchivePorts,
  { id, gone }: { readonly id: ProfileId; readonly gone?: Digest },
  open: (digest: Digest) => Promise<Readable>,
): Promise<Readable | undefined> {
  const digest = (await ports.profiles.find(id))?.archive?.digest;
  if (digest === undefined) return undefined;
  try {
    return await open(digest);
  } catch (error) {
    if (!isArchiveMissing(error) || digest === gone) throw error;
    return openLatest(ports, { id, gone: digest }, open);
  }
}

/** Waits for its first bytes, so that what cannot be opened at all is told before a reader relies on it. */
async function begun(stream: Readable): Promise<Readable> {
  await once(stream, "readable");
  return stream;
}

interface Save extends SaveOptions {
  readonly id: ProfileId;
  readonly tar: Readable;
}

async function save(ports: ProfileArchivePorts, { packed, ...what }: Save): Promise<"committed" | "missing"> {
  const archive = await keep(ports, what);
  packed?.();
  const committed = await commit(ports, what, archive);
  // Every save is sealed with a salt of its own, so no two have the same bytes, and nobody else can have
  // named this one.
  if (committed === "missing") await ports.archives.remove(archive.digest);
  return committed;
}

async function keep(
  { archives, staging, seal, maxBytes }: ProfileArchivePorts,
  { id, tar, signal }: Save,
): Promise<NamedArchive> {
  const sealed = pipeThrough(tar, limitBytes(maxBytes), compress, seal.close(id));
  // The tar is bounded; what becomes of it is hardly larger.
  const staged = await staging.take(sealed, { maxBytes: Number.MAX_SAFE_INTEGER, signal });
  try {
    signal.throwIfAborted();
    await archives.put(staged.digest, staged.path);
    signal.throwIfAborted();
    return { digest: staged.digest, sizeBytes: staged.sizeBytes };
  } finally {
    await staged.discard();
  }
}

type NamedArchive = Pick<StagedArchive, "digest" | "sizeBytes">;

const commitAgainMs: Millis = 500;

/**
 * The browser is gone by now: a Redis that is away is waited for, for as long as a save may take. One whose
 * answer alone was lost is done, and is not done again.
 */
async function commit(
  { profiles, clock }: ProfileArchivePorts,
  { id, signal }: Pick<Save, "id" | "signal">,
  archive: NamedArchive,
): Promise<"committed" | "missing"> {
  let asking = profiles.commit(id, archive);
  for (;;) {
    try {
      return await asking;
    } catch (error) {
      await waitOut(error, clock, signal);
    }
    // A Redis that was away may take long to answer, and whoever has given up waits for it no more.
    asking = untilAborted(signal, profiles.commit(id, archive));
  }
}

async function waitOut(fault: unknown, clock: Clock, signal: AbortSignal): Promise<void> {
  if (!isStoreAway(fault)) throw fault;
  await pause(clock, commitAgainMs, signal);
  if (signal.aborted) throw fault;
}
