import type { Millis } from "../base/clock.js";
import { attemptEach } from "../base/concurrently.js";
import { type Partition, partitionOf, newRequestId, type ProfileId } from "../base/ids.js";
import type { PoolStore, RefreshPlace } from "./ports/pool-store.js";
import type { ProjectStore } from "./ports/project-store.js";
import type { ProfileRefs } from "../registry/profiles/selectors.js";

const partitionsAtOnce = 16;

interface PartitionPorts {
  readonly poolStore: PoolStore;
  readonly profiles: ProfileRefs;
}

/**
 * Flushes, after a save, the idle browsers of every pool that asks for it and starts from this profile. It
 * only makes them go at once; the recycle tick does the same by the records.
 */
export const makeRefresh =
  (ports: PartitionPorts & { readonly projects: ProjectStore }) =>
  async (profile: ProfileId): Promise<void> => {
    await attemptEach(await ports.projects.pools(), partitionsAtOnce, (id) =>
      refresh(ports, partitionOf(id), profile),
    );
  };

/** Refreshes one partition, whatever its pool starts from. */
export const makeRefreshPartition =
  (ports: PartitionPorts) =>
  (partition: Partition): Promise<void> =>
    refresh(ports, partition);

/**
 * Flushes only browsers that were claimed before the save: later ones have its state, or one that is yet
 * newer (docs/api.md#changing-a-pool).
 */
async function refresh(
  { poolStore, profiles }: PartitionPorts,
  partition: Partition,
  saved?: ProfileId,
): Promise<void> {
  const follows = await followedBy(poolStore, partition);
  if (!follows || (saved && saved !== follows)) return;
  const savedAt = (await profiles.find(follows))?.archive?.savedAt;
  if (savedAt !== undefined) await refreshAll(poolStore, partition, savedAt);
}

/** One script looks at 200 browsers, or retires 20; what more pieces would take is left to the next tick. */
const mostPieces = 5000;

async function refreshAll(poolStore: PoolStore, partition: Partition, before: Millis): Promise<void> {
  let after: RefreshPlace | undefined;
  for (let piece = 0; piece < mostPieces; piece += 1) {
    const request = newRequestId();
    after = await poolStore.refresh(partition, { before, ...(after && { after }), request });
    if (after.from === undefined) return;
  }
}

/** The record says it in one field where it can, else the specification does. */
async function followedBy(poolStore: PoolStore, partition: Partition): Promise<ProfileId | null | undefined> {
  const terms = await poolStore.findTerms(partition);
  if (terms?.follows !== undefined) return terms.follows;
  const spec = terms && (await poolStore.findPool(partition))?.spec;
  return spec?.refresh_on_profile_update ? spec.profile_id : null;
}
