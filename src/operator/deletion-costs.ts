import { attemptEach } from "../base/concurrently.js";
import type { Log } from "../base/log.js";
import type { Cluster } from "./cluster.js";
import { ApiRefusal, type NodeLeases, type PoolApi } from "./pool-api.js";

/**
 * The steps are coarse, so that the API of Kubernetes is written to when a pod's worth changes, not with each
 * lease.
 */
const steps = [
  { from: 17, cost: 1000 },
  { from: 5, cost: 100 },
  { from: 1, cost: 10 },
] as const;
/** More than any number of leases whose end the drain waits for. */
const costBeyondDrain = 1_000_000;
/** So many pods are written at once. */
const width = 8;

const costOf = ({ leased, outlastsDrain }: NodeLeases): number =>
  (steps.find(({ from }) => leased >= from)?.cost ?? 0) + (outlastsDrain ? costBeyondDrain : 0);

interface CostParts {
  readonly cluster: Pick<Cluster, "nodePods" | "setCost">;
  readonly api: Pick<PoolApi, "leasesByNode">;
  readonly log: Log;
}

/**
 * Tells Kubernetes which node pods are the cheapest to take away: a hint for a ReplicaSet that shrinks, while
 * the drain is what keeps leases (docs/deployment.md#stopping). A pod of which the API says nothing keeps its
 * cost. One that cannot be written to, since it has just gone, keeps no other from being told.
 */
async function writeDeletionCosts({ cluster, api }: Omit<CostParts, "log">): Promise<void> {
  const [pods, leases] = await Promise.all([cluster.nodePods(), api.leasesByNode()]);
  await attemptEach(pods, width, async ({ name, cost }) => {
    const held = leases.get(name);
    const next = held && String(costOf(held));
    if (next !== undefined && next !== (cost ?? "0")) await cluster.setCost(name, next);
  });
}

/** An operator whose key is of one project may not know what nodes hold, and says so once. */
export function makeCostWriter({ cluster, api, log }: CostParts): () => Promise<void> {
  let isAllowed = true;
  return async () => {
    try {
      await writeDeletionCosts({ cluster, api });
      isAllowed = true;
    } catch (error) {
      if (!(error instanceof ApiRefusal) || error.code !== "insufficient_scope") throw error;
      if (isAllowed) log.info({ error: error.message }, "costs of pods are not written");
      isAllowed = false;
    }
  };
}
