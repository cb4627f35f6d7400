import type { Clock } from "../base/clock.js";
import { type BrowserPool, finalizer, forceAnnotation } from "./browser-pool.js";
import type { Cluster } from "./cluster.js";
import { type Creations, isOfAnother } from "./creations.js";
import { ApiRefusal, ApiUnavailable, type PoolApi, type RemotePool } from "./pool-api.js";
import { isApplied, type KnownPool, nextStatus, type Outcome } from "./pool-status.js";

interface ReconcileParts {
  readonly cluster: Pick<Cluster, "find" | "setFinalizers" | "applyStatus">;
  readonly api: Pick<PoolApi, "find" | "update" | "remove">;
  readonly creations: Pick<Creations, "make">;
  readonly clock: Clock;
}

/**
 * Makes the pool of a resource what the resource says, and writes down how it is. Any number of operators may
 * do so at once: each step is the same whoever takes it, those that must not meet name the version they
 * change, and nothing is changed for a resource that has changed itself since it was read.
 */
export const makeReconcile =
  (parts: ReconcileParts) =>
  async (resource: BrowserPool): Promise<void> => {
    const { metadata } = resource;
    const { finalizers = [] } = metadata;
    if (metadata.deletionTimestamp !== undefined) return await finish(parts, resource);
    // First, so that no pool exists whose resource may go without it.
    if (!finalizers.includes(finalizer))
      return await parts.cluster.setFinalizers(resource, [...finalizers, finalizer]);
    await tell(parts, resource, await outcomeOf(() => settle(parts, resource)));
  };

/** Without an outcome there is nothing to be told: another look at the resource sees to it. */
async function tell(
  { cluster, clock }: ReconcileParts,
  resource: BrowserPool,
  outcome: Outcome | undefined,
): Promise<void> {
  const status = outcome && nextStatus(resource, outcome, clock.now());
  if (status) await cluster.applyStatus(resource, status);
}

/**
 * A failure of Remuda's API is something to be told, too. `pool`: what is known of the pool that was to be
 * changed; without that, a refusal says nothing of the resource. Throws where Kubernetes fails.
 */
async function outcomeOf<Result>(work: () => Promise<Result>, pool?: KnownPool): Promise<Result | Outcome> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof ApiRefusal || error instanceof ApiUnavailable)) throw error;
    const isRefused = pool !== undefined && error instanceof ApiRefusal && error.isOfRequest;
    return { kind: isRefused ? "refused" : "unreachable", message: error.message, pool };
  }
}

/**
 * Creates what is absent and changes what differs; a pool of that name that was there before is taken over.
 */
async function settle(parts: ReconcileParts, resource: BrowserPool): Promise<Outcome | undefined> {
  const found = await findPool(parts, resource);
  if (found && isApplied(resource, found)) return { kind: "there", pool: found };
  if (!(await isUnchanged(parts, resource))) return undefined;
  return found
    ? await outcomeOf(() => change(parts.api, resource, found), found)
    : await outcomeOf(() => create(parts, resource), "absent");
}

/**
 * The pool that is called like the resource, else the one that was the resource's when it was last looked at
 * and has been renamed. That one is another resource's where one is called like it.
 */
async function findPool(
  { api, cluster }: ReconcileParts,
  { metadata: { name }, status }: BrowserPool,
): Promise<RemotePool | undefined> {
  const named = await api.find(name);
  if (named || status?.poolId === undefined) return named;
  const renamed = await api.find(status.poolId);
  // A pool may be called like the id of another.
  if (renamed?.id !== status.poolId) return undefined;
  return (await isOfAnother(cluster, renamed, name)) ? undefined : renamed;
}

/**
 * Whether a resource is as it was read. The last ones of a long list are come to when it is old, and an
 * operator may have stood still: others may have scaled, deleted or made it anew since.
 */
async function isUnchanged({ cluster }: ReconcileParts, { metadata }: BrowserPool): Promise<boolean> {
  const now = (await cluster.find(metadata.name))?.metadata;
  const isDeleted = metadata.deletionTimestamp !== undefined;
  return (
    now?.uid === metadata.uid &&
    now.generation === metadata.generation &&
    (now.deletionTimestamp !== undefined) === isDeleted
  );
}

async function create(
  { creations }: ReconcileParts,
  { metadata: { name, uid, generation }, spec, status }: BrowserPool,
): Promise<Outcome | undefined> {
  // Another body needs another key, and so does a pool in the place of one that somebody has deleted: under
  // the key of that one it is known to be gone.
  const key = `${uid}-${generation}-${status?.poolId ?? "first"}`;
  const pool = await creations.make({ name, uid, key, wanted: wantedOf({ spec }) });
  return pool && { kind: "there", pool };
}

const wantedOf = ({ spec }: Pick<BrowserPool, "spec">): { readonly size: number } => ({
  ...spec.pool,
  size: spec.replicas,
});

async function change(
  api: ReconcileParts["api"],
  resource: BrowserPool,
  found: RemotePool,
): Promise<Outcome> {
  const { name } = resource.metadata;
  const wanted = { ...wantedOf(resource), ...(found.name !== name && { name }) };
  const pool = await api.update(found.id, wanted);
  return pool
    ? { kind: "there", pool }
    : { kind: "unreachable", message: "The pool is being deleted", pool: found };
}

/** Deletes the pool, and then lets the resource go; one whose pool is gone already is let go at once. */
async function finish(parts: ReconcileParts, resource: BrowserPool): Promise<void> {
  const { finalizers = [] } = resource.metadata;
  if (!finalizers.includes(finalizer)) return;
  const removed = await outcomeOf(() => removePool(parts, resource));
  if (removed !== "gone") return await tell(parts, resource, removed);
  await parts.cluster.setFinalizers(
    resource,
    finalizers.filter((each) => each !== finalizer),
  );
}

async function removePool(
  parts: ReconcileParts,
  resource: BrowserPool,
): Promise<Outcome | "gone" | undefined> {
  const pool = await findPool(parts, resource);
  if (!pool) return "gone";
  if (!(await isUnchanged(parts, resource))) return undefined;
  return await outcomeOf(() => remove(parts.api, resource, pool), pool);
}

async function remove(
  api: ReconcileParts["api"],
  { metadata: { annotations } }: BrowserPool,
  pool: RemotePool,
): Promise<Outcome | "gone"> {
  try {
    // It is named by its id: one that another resource has since made under that name is not meant.
    await api.remove(pool.id, annotations?.[forceAnnotation] === "true");
    return "gone";
  } catch (error) {
    if (!(error instanceof ApiRefusal) || error.code !== "pool_in_use") throw error;
    const message = `Leases of the pool are waited for; ${forceAnnotation}=true ends them`;
    return { kind: "leased", message, pool };
  }
}
