import type { Clock } from "../base/clock.js";
import { type BrowserPool, finalizer, forceAnnotation } from "./browser-pool.js";
import type { Cluster } from "./cluster.js";
import { ApiRefusal, ApiUnavailable, type PoolApi, type RemotePool } from "./pool-api.js";
import { isApplied, nextStatus, type Outcome } from "./pool-status.js";

interface ReconcileParts {
  readonly cluster: Pick<Cluster, "find" | "setFinalizers" | "applyStatus">;
  readonly api: Pick<PoolApi, "find" | "create" | "update" | "remove">;
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

/** A failure of Remuda's API is something to be told, too. Throws where Kubernetes fails. */
async function outcomeOf<Result>(work: () => Promise<Result>): Promise<Result | Outcome> {
  try {
    return await work();
  } catch (error) {
    const isRefused = error instanceof ApiRefusal && error.isOfRequest;
    if (!(error instanceof ApiRefusal || error instanceof ApiUnavailable)) throw error;
    return { kind: isRefused ? "refused" : "unreachable", message: error.message };
  }
}

/**
 * Creates what is absent and changes what differs; a pool of that name that was there before is taken over.
 */
async function settle(parts: ReconcileParts, resource: BrowserPool): Promise<Outcome | undefined> {
  const { metadata, spec } = resource;
  const { name } = metadata;
  const found = await parts.api.find(name);
  if (found && isApplied(resource, found)) return { kind: "there", pool: found };
  if (!(await isUnchanged(parts, resource))) return undefined;
  const wanted = { ...spec.pool, size: spec.replicas };
  return found ? await change(parts.api, { name, wanted, found }) : await create(parts, resource, wanted);
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
  { api, cluster }: ReconcileParts,
  { metadata: { name, uid, generation }, status }: BrowserPool,
  wanted: { readonly size: number },
): Promise<Outcome | undefined> {
  // Another body needs another key, and so does a pool in the place of one that somebody has deleted: under
  // the key of that one it is known to be gone.
  const pool = await api.create({ ...wanted, name }, `${uid}-${generation}-${status?.poolId ?? "first"}`);
  // One that was deleted meanwhile has nobody who would delete this pool; while it is there, its end does.
  if ((await cluster.find(name))?.metadata.uid === uid) return { kind: "there", pool };
  await api.remove(pool.id, false);
  return undefined;
}

async function change(
  api: ReconcileParts["api"],
  { name, wanted, found }: { name: string; wanted: object; found: RemotePool },
): Promise<Outcome> {
  try {
    const pool = await api.update(name, wanted);
    return pool ? { kind: "there", pool } : { kind: "unreachable", message: "The pool is being deleted" };
  } catch (error) {
    if (error instanceof ApiRefusal && error.isOfRequest)
      return { kind: "refused", message: error.message, pool: found };
    throw error;
  }
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
  const { name, annotations } = resource.metadata;
  const pool = await parts.api.find(name);
  if (!pool) return "gone";
  if (!(await isUnchanged(parts, resource))) return undefined;
  try {
    // By its id: one that another resource has made under that name since then is not meant.
    await parts.api.remove(pool.id, annotations?.[forceAnnotation] === "true");
    return "gone";
  } catch (error) {
    if (!(error instanceof ApiRefusal) || error.code !== "pool_in_use") throw error;
    return {
      kind: "leased",
      message: `Leases of the pool are waited for; ${forceAnnotation}=true ends them`,
    };
  }
}
