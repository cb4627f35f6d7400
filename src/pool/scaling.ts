import { forEachConcurrently } from "../base/concurrently.js";
import type { NodeId, Partition } from "../base/ids.js";
import { memoryBytes } from "../spec/bodies.js";
import { LaunchTemplates } from "./launch-templates.js";
import type { LivingNode, NodeStore } from "./ports/node-store.js";
import type { PoolStore } from "./ports/pool-store.js";
import type { ScalingStore } from "./ports/scaling-store.js";
import type { BrowserCounts } from "./pool.js";

/** A node as a scaler sees it. `leased` is what its end would cost, or make it wait for. */
export interface NodeLoad {
  readonly id: NodeId;
  readonly isDraining: boolean;
  /** It drains since it was told to end: nobody who sets how many nodes there are counts it any more. */
  readonly isStopping: boolean;
  /** It may be given launches. */
  readonly isServing: boolean;
  readonly admittedBytes: number;
  readonly maxBrowsers: number;
  readonly held: { readonly browsers: number; readonly bytes: number };
  readonly leased: number;
  /** Its drain may not see the end of what is lent there. */
  readonly outlastsDrain: boolean;
}

/** A pool as a scaler sees it; `browserBytes` is the memory class of its browsers. */
export interface PoolLoad {
  readonly counts: BrowserCounts;
  readonly lacking: number;
  readonly ending: number;
  readonly replaced: number;
  readonly isHeldUp: boolean;
  /** Something else than room holds it up as well, such as labels that no node has. */
  readonly isObstructed: boolean;
  readonly browserBytes: number;
}

/** When to scale nodes, and by how much (docs/deployment.md#scaling). */
export interface Scaling {
  /** So many nodes would hold all that exists and all that is lacking, beside those that drain on request. */
  readonly wantedNodes: number;
  readonly serving: number;
  readonly draining: number;
  readonly admittedBytes: number;
  readonly heldBytes: number;
  readonly freeBytes: number;
  readonly lacking: number;
  /** Counts those of the lacking for which no node has room. */
  readonly unplaceable: number;
  readonly idle: number;
  readonly leased: number;
  readonly waiting: number;
  readonly nodes: readonly NodeLoad[];
}

const sumOf = <Item>(items: readonly Item[], amount: (item: Item) => number): number =>
  items.reduce((sum, item) => sum + amount(item), 0);

/**
 * How many browsers a pool is to hold beyond those that have room now. One whose place another has taken, or
 * is to take, counts once: it goes, and while it is there its own node holds it.
 */
const changeOf = ({ lacking, ending, replaced }: PoolLoad): number => lacking - ending - replaced;

/**
 * Does not count the nodes that are there but what they are to hold, so that taking one away does not change
 * what is wanted. Those that drain on request and go on running come on top: for whoever sets how many there
 * are, each of them is one, and it holds nothing of what is to come.
 */
function wantedOf(nodes: readonly NodeLoad[], pools: readonly PoolLoad[]): number {
  const bytes =
    sumOf(nodes, ({ held }) => held.bytes) + sumOf(pools, (pool) => changeOf(pool) * pool.browserBytes);
  const browsers = sumOf(nodes, ({ held }) => held.browsers) + sumOf(pools, changeOf);
  if (browsers <= 0) return 0;
  const drained = nodes.filter(({ isDraining, isStopping }) => isDraining && !isStopping).length;
  const serving = nodes.filter(({ isServing }) => isServing);
  // Nothing tells how much a node holds before there is one.
  if (serving.length === 0) return 1 + drained;
  const perNode = (amount: (node: NodeLoad) => number): number => sumOf(serving, amount) / serving.length;
  const byMemory = Math.ceil(bytes / perNode(({ admittedBytes }) => admittedBytes));
  const byNumber = Math.ceil(browsers / perNode(({ maxBrowsers }) => maxBrowsers));
  // Room that is left in pieces too small for a browser is no room. A pool that something else holds up would
  // be held up on one node more as well, and want the next at each reading. What ends leaves room.
  const isTried = pools.some((pool) => pool.isHeldUp && !pool.isObstructed && pool.lacking > pool.ending);
  const byTrial = isTried ? serving.length + 1 : 1;
  return Math.max(byMemory, byNumber, byTrial) + drained;
}

export function scalingOf(nodes: readonly NodeLoad[], pools: readonly PoolLoad[]): Scaling {
  const serving = nodes.filter(({ isServing }) => isServing);
  const admittedBytes = sumOf(serving, (node) => node.admittedBytes);
  const heldBytes = sumOf(serving, ({ held }) => held.bytes);
  return {
    wantedNodes: wantedOf(nodes, pools),
    serving: serving.length,
    draining: nodes.filter(({ isDraining }) => isDraining).length,
    admittedBytes,
    heldBytes,
    freeBytes: Math.max(0, admittedBytes - heldBytes),
    lacking: sumOf(pools, ({ lacking }) => lacking),
    unplaceable: sumOf(pools, ({ isHeldUp, lacking }) => (isHeldUp ? lacking : 0)),
    idle: sumOf(pools, ({ counts }) => counts.idle),
    leased: sumOf(pools, ({ counts }) => counts.leased),
    waiting: sumOf(pools, ({ counts }) => counts.waiting),
    nodes: nodes.toSorted((one, other) => (one.id < other.id ? -1 : 1)),
  };
}

interface ScalingPorts {
  readonly nodes: Pick<NodeStore, "living" | "occupancy">;
  readonly pools: Pick<PoolStore, "counts" | "findTemplate">;
  readonly scaling: ScalingStore;
  readonly overcommit: number;
  partitions(): Promise<readonly Partition[]>;
}

export type ReadScaling = () => Promise<Scaling>;

/** So many pools or nodes are asked at once. */
const width = 32;

/** Throws where one could not be read: a fleet that is known in part would look smaller than it is. */
async function each<Item>(items: readonly Item[], read: (item: Item) => Promise<void>): Promise<void> {
  const [failure] = await forEachConcurrently(items, width, read);
  if (failure !== undefined) throw failure;
}

/** Whoever asks during a reading shares it, so that many scrapers cost no more than one. */
export function makeReadScaling(ports: ScalingPorts): ReadScaling {
  const templates = new LaunchTemplates(ports.pools);
  let underWay: Promise<Scaling> | undefined;
  const read = async (): Promise<Scaling> => {
    const [partitions, living] = await Promise.all([ports.partitions(), ports.nodes.living()]);
    const pools: PoolLoad[] = [];
    const nodes: NodeLoad[] = [];
    const leased = new Map<NodeId, number>();
    await each(partitions, async (partition) => {
      const load = await loadOfPool(ports, templates, partition);
      if (!load) return;
      pools.push(load);
      // One that has lent nothing need not be asked on which nodes.
      if (load.counts.leased === 0) return;
      for (const [node, count] of await ports.scaling.leasedByNode(partition))
        leased.set(node, (leased.get(node) ?? 0) + count);
    });
    await each(living, async (facts) => {
      nodes.push(await loadOfNode(ports, facts, leased));
    });
    return scalingOf(nodes, pools);
  };
  return () => (underWay ??= read().finally(() => (underWay = undefined)));
}

const nothingLacking = {
  lacking: 0,
  ending: 0,
  replaced: 0,
  isHeldUp: false,
  isObstructed: false,
  browserBytes: 0,
};

async function loadOfPool(
  { pools, scaling }: ScalingPorts,
  templates: LaunchTemplates,
  partition: Partition,
): Promise<PoolLoad | undefined> {
  const [demand, counts] = await Promise.all([scaling.findDemand(partition), pools.counts(partition)]);
  // What stands by for sessions on demand gives way to whatever is launched.
  if (!demand) return { counts: { ...counts, idle: 0 }, ...nothingLacking };
  const template = await templates.find(partition, demand.templateKey);
  return template && { ...demand, counts, browserBytes: memoryBytes(template.memory) };
}

async function loadOfNode(
  { nodes, overcommit }: ScalingPorts,
  facts: LivingNode,
  leased: ReadonlyMap<NodeId, number>,
): Promise<NodeLoad> {
  const { id, isDraining, isStopping, isLate, canLaunch, maxBrowsers } = facts;
  return {
    id,
    isDraining,
    isStopping,
    isServing: !isDraining && !isLate && canLaunch,
    admittedBytes: facts.memoryBytes * overcommit,
    maxBrowsers,
    held: await nodes.occupancy(id),
    leased: leased.get(id) ?? 0,
    outlastsDrain: facts.outlastsDrain === true,
  };
}
