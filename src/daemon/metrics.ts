import { instantOf } from "../audit/entry.js";
import { type BrowserId, isOnDemand, type Partition, type ProjectId } from "../base/ids.js";
import type { Config } from "../config/config.js";
import type { Stops } from "../base/stops.js";
import type { AcquireMeter } from "../lease/metered-acquire.js";
import type { SlotPorts } from "../node/slots.js";
import { ClockWatch } from "../observe/clock-watch.js";
import type { ExportGauge } from "../observe/export-metrics.js";
import { type Gauges, Metrics, type PoolGauge } from "../observe/metrics.js";
import type { StandbyGauge } from "../observe/standby-metrics.js";
import type { BrowserState } from "../pool/browser.js";
import { labelOf } from "../pool/pool-labels.js";
import { makeReadScaling, type ReadScaling } from "../pool/scaling.js";
import type { NodeFacts } from "../pool/ports/node-store.js";
import type { DaemonContext } from "./boot.js";
import type { DaemonParts } from "./parts.js";
import type { Stores } from "./stores.js";

/**
 * Metrics of this process. A lease is counted where the script ran that ended it; what the store holds is
 * shown by controls.
 */
export function openMetrics(
  { role, node, standby }: Pick<Config, "role" | "node" | "standby">,
  { log, clock }: Pick<DaemonContext, "log" | "clock">,
  { stores, labels, stops }: Pick<DaemonParts, "stores" | "labels"> & { readonly stops: Stops },
): Metrics {
  const watch = new ClockWatch({ clock, log, storeNow: () => stores.poolStore.now() });
  stops.add("clock watch", watch.start());
  const metrics = new Metrics({
    clock,
    log,
    aheadMs: () => watch.aheadMs(),
    ...(role !== "node" && {
      gauges: {
        ...gaugesOf(stores),
        exports: () => exportGauges(stores),
        scaling: openScaling(stores, node.overcommit),
        standby: () => (standby.length > 0 ? standbyGauge(stores) : { idle: 0, launching: 0 }),
      },
    }),
  });
  stores.signals.on("lease.ended", ({ partition, why, heldMs }) =>
    countAs(labels.ofPartition(partition), (pool) => {
      metrics.leaseEnded(pool, why);
      metrics.scaling.held(pool, heldMs);
    }),
  );
  return metrics;
}

/** Reads what a scaler is told. */
export const openScaling = (
  { nodes, poolStore, scaling, projects }: Pick<Stores, "nodes" | "poolStore" | "scaling" | "projects">,
  overcommit: number,
): ReadScaling =>
  makeReadScaling({ nodes, pools: poolStore, scaling, overcommit, partitions: () => projects.partitions() });

/** A label that cannot be read costs a count, never what is counted. */
const countAs = (label: Promise<string>, add: (pool: string) => void): void => void label.then(add, () => {});

export const acquireMeter = ({ labels, metrics }: DaemonParts, project: ProjectId): AcquireMeter => ({
  acquired: (ref, outcome, waitedMs) =>
    countAs(labels.ofRef(project, ref), (pool) => metrics.acquired(pool, outcome, waitedMs)),
});

export function slotMeter({ labels, metrics }: DaemonParts): SlotPorts["meter"] {
  const countFor = ({ id }: { id: BrowserId }, add: (pool: string) => void): void =>
    countAs(labels.ofBrowser(id), add);
  return {
    launched: (browser) => countFor(browser, (pool) => metrics.launched(pool)),
    failed: (browser, reason) => countFor(browser, (pool) => metrics.launchFailed(pool, reason)),
  };
}

/** What a control shows of the store at each scrape. */
export const gaugesOf = ({
  poolStore,
  projects,
  nodes,
}: Pick<Stores, "poolStore" | "projects" | "nodes">): Gauges => ({
  async pools() {
    const gaugeOf = async (pool: string, partition: Partition): Promise<PoolGauge> => {
      const { waiting, stale: _stale, ...states } = await poolStore.counts(partition);
      return { pool, states, waiting };
    };
    const gauges = (await projects.partitions()).map(async (partition) => {
      const label = await labelOf(poolStore, partition);
      return label === undefined ? [] : [await gaugeOf(label, partition)];
    });
    return (await Promise.all(gauges)).flat();
  },
  async nodes() {
    const living = await nodes.living();
    const counts = { ready: 0, draining: 0, failing: 0 };
    for (const node of living) counts[stateOf(node)] += 1;
    return Object.entries(counts).map(([state, count]) => ({ state, count }));
  },
});

/** Where active export destinations stand. */
async function exportGauges({ destinations }: Pick<Stores, "destinations">): Promise<readonly ExportGauge[]> {
  const [all, now] = await Promise.all([destinations.all(), destinations.now()]);
  return all.flatMap(({ id, cursor, failures }) =>
    cursor === undefined ? [] : [{ destination: id, lagMs: now - instantOf(cursor), failures }],
  );
}

/** What stands by in all partitions of sessions on demand. */
async function standbyGauge({
  projects,
  standby,
}: Pick<Stores, "projects" | "standby">): Promise<StandbyGauge> {
  const partitions = (await projects.partitions()).filter(isOnDemand);
  const found = (await Promise.all(partitions.map((partition) => standby.find(partition)))).flatMap(
    ({ browsers }) => browsers,
  );
  const countOf = (wanted: BrowserState): number => found.filter(({ state }) => state === wanted).length;
  return { idle: countOf("idle"), launching: countOf("launching") };
}

/** `failing`: its last launches have come to nothing. */
function stateOf({ isDraining, failing }: NodeFacts): "ready" | "draining" | "failing" {
  if (isDraining) return "draining";
  return failing ? "failing" : "ready";
}
