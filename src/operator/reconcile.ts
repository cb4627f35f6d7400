import type { Clock } from "../base/clock.js";
import { type BrowserPool, finalizer, forceAnnotation } from "./browser-pool.js";
import type { Cluster } from "./cluster.js";
import { ApiRefusal, type PoolApi, type RemotePool } from "./pool-api.js";
import { nextStatus, type Outcome } from "./pool-status.js";

interface ReconcileParts {
  readonly cluster: Pick<Cluster, "setFinalizers" | "applyStatus">;
  readonly api: Pick<PoolApi, "find" | "create" | "update" | "remove">;
  readonly clock: Clock;
}

/**
 * Makes the pool of a resource what the resource says, and writes down how it is. Any number of operators may
 * do so at once: each step is the same whoever takes it, and those that must not meet name the version they
 * change.
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

async function tell(
  { cluster, clock }: ReconcileParts,
  resource: BrowserPool,
  outcome: Outcome,
): Promise<void> {
  const status = nextStatus(resource, outcome, clock.now());
  if (status) await cluster.applyStatus(resource, status);
}

/** A failure of the API is something to be told, too. */
async function outcomeOf(work: () => Promise<Outcome>): Promise<Outcome> {
  try {
    return await work();
  } catch (error) {
    const message = error instanceof Error ? error.message : "the API could not be asked";
    const isRefused = error instanceof ApiRefusal && error.isOfRequest;
    return { kind: isRefused ? "refused" : "unreachable", message };
  }
}

/**
 * Creates what is absent and changes what differs; a pool of that name that was there before is taken over.
 */
async function settle({ api }: ReconcileParts, { metadata, spec, status }: BrowserPool): Promise<Outcome> {
  const { name, uid, generation } = metadata;
  const wanted = { ...spec.pool, size: spec.replicas };
  const found = await api.find(name);
  if (!found) {
    // The generation is in the key, so that a creation that was refused may be tried again with another body.
    const pool = await api.create({ ...wanted, name }, `${uid}-${generation}`);
    return { kind: "there", pool };
  }
  if (status?.appliedGeneration === generation && found.size === spec.replicas)
    return { kind: "there", pool: found };
  return await change(api, { name, wanted, found });
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
  const { name, finalizers = [], annotations } = resource.metadata;
  if (!finalizers.includes(finalizer)) return;
  try {
    await parts.api.remove(name, annotations?.[forceAnnotation] === "true");
  } catch (error) {
    if (!(error instanceof ApiRefusal) || error.code !== "pool_in_use") {
      await tell(parts, resource, await outcomeOf(() => Promise.reject(error)));
      return;
    }
    const message = `Leases of the pool are waited for; ${forceAnnotation}=true ends them`;
    return await tell(parts, resource, { kind: "leased", message });
  }
  await parts.cluster.setFinalizers(
    resource,
    finalizers.filter((each) => each !== finalizer),
  );
}
