import { type Partition, partitionOf, onDemandPartition } from "../base/ids.js";
import { onDemandLabel } from "../pool/pool-labels.js";
import type { NodeFacts } from "../pool/ports/node-store.js";
import type { Stores } from "./state.js";
import type { PoolGauge, Gauges } from "../observe/metrics.js";

/** What a control shows of the store at each scrape. */
export const gaugesOf = ({
  poolStore,
  projects,
  nodes,
}: Pick<Stores, "poolStore" | "projects" | "nodes">): Gauges => ({
  async pools() {
    const readingOf = async (pool: string, partition: Partition): Promise<PoolGauge> => {
      const { waiting, stale: _stale, ...states } = await poolStore.counts(partition);
      return { pool, states, waiting };
    };
    const named = (await projects.pools()).map(async (id) => {
      const terms = await poolStore.findTerms(partitionOf(id));
      return terms ? [await readingOf(terms.name ?? id, partitionOf(id))] : [];
    });
    return [...(await Promise.all(named)).flat(), await readingOf(onDemandLabel, onDemandPartition)];
  },
  async nodes() {
    const living = await nodes.living();
    const counts = { ready: 0, draining: 0, failing: 0 };
    for (const node of living) counts[stateOf(node)] += 1;
    return Object.entries(counts).map(([state, count]) => ({ state, count }));
  },
});

/** `failing`: its last launches have come to nothing. */
function stateOf({ isDraining, failing }: NodeFacts): "ready" | "draining" | "failing" {
  if (isDraining) return "draining";
  return failing ? "failing" : "ready";
}
