import { type Done, refusal, type Refusal } from "../base/errors.js";
import { newRequestId, partitionOf } from "../base/ids.js";
import { withFaults } from "../registry/proxies/selectors.js";
import { resolveReferences } from "../registry/references.js";
import type { PoolPatch } from "../spec/bodies.js";
import type { PoolSpec } from "../spec/launch-template.js";
import type { Caller } from "../spec/caller.js";
import { findPool } from "./lookup.js";
import { mergePoolSpec } from "./merge-spec.js";
import type { Pool } from "./pool.js";
import { findOne, type PoolPorts, reserveSize, retireLeft, sizeRefusal, writeOf } from "./pool-operations.js";
import type { Reservation, ReservedSize } from "./ports/project-store.js";
import { changesLaunch, changesNetwork, isExpectedNetwork, startsRefresh } from "./spec-changes.js";

const updateTries = 10;

/**
 * PATCH /browser_pools/{x}: merged by compare-and-set on the pool's revision, so that nothing is written
 * over.
 */
export const makeUpdatePool =
  (ports: PoolPorts) =>
  async (ref: string, patch: PoolPatch, caller: Caller): Promise<Done<Pool> | Refusal> => {
    for (let tries = 0; tries < updateTries; tries += 1) {
      const pool = await findPool(ports, ref);
      if (!pool) return refusal("pool_not_found");
      const outcome = await updateOnce(ports, pool, patch);
      if (outcome === "written") return await findOne(ports, pool.id);
      if (outcome !== "changed") return outcome;
      if (caller.gone.aborted) break;
    }
    return refusal("conflict");
  };

/**
 * What a pool of an earlier release names, which had no extensions and profiles: resolved with its first
 * change.
 */
function unresolved({
  extensions,
  extension_ids,
  profile,
  profile_id,
}: PoolSpec): Pick<PoolPatch, "extensions" | "profile"> {
  return {
    ...(extensions && !extension_ids && { extensions: [...extensions] }),
    ...(profile && !profile_id && { profile }),
  };
}

async function updateOnce(
  ports: PoolPorts,
  pool: Pool,
  patch: PoolPatch,
): Promise<Refusal | "written" | "changed"> {
  const { expected_network, ...fields } = patch;
  const resolved = await resolveReferences(ports, { ...unresolved(pool.spec), ...fields });
  const merged = withFaults(mergePoolSpec(pool.spec, resolved.body, ports.defaults), resolved.faults);
  if (merged.kind === "refused") return merged;
  const tooLarge = patch.size === undefined ? undefined : sizeRefusal(ports, patch.size);
  if (tooLarge) return tooLarge;
  if (expected_network && !isExpectedNetwork(pool.spec.network, expected_network))
    return refusal("stale_network");
  const reserved = await reserve(ports, pool, merged.value);
  if (reserved.kind === "refused") return reserved;
  const written = await ports.poolStore.updatePool(partitionOf(pool.id), {
    revision: pool.revision,
    ...(pool.revisedAt !== undefined && { revisedAt: pool.revisedAt }),
    write: writeOf(merged.value),
    request: newRequestId(),
    discard: patch.discard_all_idle ?? false,
    isNewLaunch: changesLaunch(pool.spec, merged.value),
    isNewNetwork: changesNetwork(pool.spec, merged.value),
    isNewRefresh: startsRefresh(pool.spec, merged.value),
  });
  const after = merged.value;
  await giveBackName(ports, pool, { ...reserved, after, isWritten: written === "updated" });
  if (written !== "missing" && written !== "changed")
    await retireLeft(ports.poolStore, partitionOf(pool.id), { isToSize: after.size < pool.spec.size });
  // The next try may be refused, and reserves what it needs for itself.
  const isAgain = written === "changed" || written === "busy";
  if (reserved.size && isAgain) await ports.projects.giveBackSize(pool.id, reserved.size);
  if (reserved.size && !isAgain) await ports.projects.settleSize(pool.id, reserved.size);
  if (written === "missing") return refusal("pool_not_found");
  if (written === "updated") ports.kick(pool.id);
  return written === "updated" ? "written" : "changed";
}

/**
 * What a change has reserved: the new name, where there is one, and what of the old one it may give back; the
 * new size, where it is another.
 */
interface Reserved {
  readonly kind: "reserved";
  readonly size?: ReservedSize;
  readonly old?: Pick<Reservation, "deadline">;
  readonly fresh?: Reservation;
}

async function reserve(ports: PoolPorts, pool: Pool, after: PoolSpec): Promise<Refusal | Reserved> {
  const owner = pool.id;
  const renaming = after.name === pool.name ? {} : await rename(ports, pool, after.name ?? "");
  if (!renaming) return refusal("name_taken", { message: `A pool named ${after.name} exists` });
  if (after.size === pool.spec.size) return { kind: "reserved", ...renaming };
  const size = await reserveSize(ports, owner, after.size);
  if (size.kind === "reserved") return { kind: "reserved", ...renaming, size };
  await giveBackName(ports, pool, { ...renaming, after, isWritten: false });
  return size;
}

/** Undefined where the new name is another pool's. */
async function rename(
  { projects }: PoolPorts,
  { id: owner, name: before }: Pool,
  name: string,
): Promise<Pick<Reserved, "old" | "fresh"> | undefined> {
  // Looked at before: whoever gives the pool its old name again after this change has reserved it anew.
  const old = before === undefined ? undefined : await projects.findName("pool", before);
  const fresh = await projects.reserveName({ kind: "pool", name, owner, partition: partitionOf(owner) });
  return fresh && { fresh, ...(old?.owner === owner && { old }) };
}

/**
 * The old name after a change, the new one where the change was not written: not more than this change had
 * of them, since another change of the pool may be about to give it the same name.
 */
async function giveBackName(
  { projects }: PoolPorts,
  { id: owner, name: before }: Pool,
  change: Pick<Reserved, "old" | "fresh"> & { after: PoolSpec; isWritten: boolean },
): Promise<void> {
  const { after, isWritten, old, fresh } = change;
  if (isWritten && old && before !== undefined)
    await projects.freeName({ kind: "pool", name: before, owner, only: old });
  if (!isWritten && fresh?.isNew && after.name !== undefined)
    await projects.freeName({ kind: "pool", name: after.name, owner, only: fresh });
}
