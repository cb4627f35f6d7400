import type { Millis } from "../base/clock.js";
import { type Partition, partitionOf, newBrowserId, newRequestId, type PoolId } from "../base/ids.js";
import type { LaunchFacts, LaunchingBrowser } from "./browser.js";
import { memoryBytes } from "../spec/bodies.js";
import { LaunchTemplates } from "./launch-templates.js";
import type { LaunchTemplate } from "../spec/launch-template.js";
import { type NodeCapacities, makeReadCapacities, Placement } from "./placement.js";
import type { NodeStore } from "./ports/node-store.js";
import type { LaunchCandidate, PoolStore, Job, Jobs, LaunchDemand } from "./ports/pool-store.js";

interface PoolFillPorts {
  readonly poolStore: PoolStore;
  readonly nodes: NodeStore;
  readonly jobs: Jobs;
  /**
   * When a browser counts as old; null means never. The jitter keeps those filled at once from ageing at
   * once.
   */
  readonly recycle: { readonly maxAgeMs: Millis | null; readonly jitterRatio: number };
  random(): number;
}

/** One script claims at most this many launches, so that nobody waits long for it. */
const mostAtOnce = 50;
/** A fill claims at most so many pieces of that; the next tick goes on. */
const mostPieces = 20;

export type FillPool = (partition: Partition, fleet?: () => Promise<NodeCapacities>) => Promise<void>;

/**
 * Launches what the pool lacks and may have now. Idempotent; may overlap with itself. `fleet`: shared with
 * other pools, or read anew.
 */
export const makeFill = (ports: PoolFillPorts): FillPool => {
  const templates = new LaunchTemplates(ports.poolStore);
  const readCapacities = makeReadCapacities(ports.nodes);
  return async (partition, read = readCapacities) => {
    const lack = await ports.poolStore.lackOf(partition);
    if (lack === "nothing") return;
    let known: Promise<NodeCapacities> | undefined;
    const fleet = (): Promise<NodeCapacities> => (known ??= read());
    if (lack === "room" && (await fleet()).isFull) return;
    // A large pool that has lost many is not to wait for as many ticks.
    for (let piece = 0; piece < mostPieces; piece += 1)
      if ((await fillOnce(ports, { partition, templates, fleet })) < mostAtOnce) return;
  };
};

interface PartitionFill {
  readonly partition: Partition;
  readonly templates: LaunchTemplates;
  readonly fleet: () => Promise<NodeCapacities>;
}

/** How many launches it has claimed. */
async function fillOnce(
  ports: PoolFillPorts,
  { partition, templates, fleet }: PartitionFill,
): Promise<number> {
  const wanted = await ports.poolStore.wanted(partition, mostAtOnce);
  if (wanted.count === 0) return 0;
  const pool = await ports.poolStore.findTerms(partition);
  const launch = pool && (await templates.find(partition, pool.templateKey));
  if (!launch) return 0;
  const { candidates, obstacle } = await candidatesFor(ports, {
    pool: pool.id,
    launch,
    wanted,
    capacities: await fleet(),
  });
  const claimed = await ports.poolStore.claimLaunches(partition, {
    candidates,
    madeFor: pool.templateKey,
    obstacle,
    request: newRequestId(),
  });
  const isClaimed = new Set(claimed.map((browser) => browser.id));
  await Promise.all(
    candidates.filter(({ id }) => !isClaimed.has(id)).map(({ id, node }) => ports.nodes.freeRoom(node, id)),
  );
  await ports.jobs.add(claimed.map(launchJob));
  return claimed.length;
}

/**
 * Fills a partition now rather than at the next tick, which is left what fails. One fill of a partition at a
 * time: whoever asks while one is under way is given one more after it, however many ask.
 */
export function makeFillSoon(
  fill: (partition: Partition) => Promise<void>,
  onFault: (partition: Partition, error: unknown) => void,
): (partition: Partition) => void {
  const underWay = new Map<Partition, boolean>();
  const run = async (partition: Partition): Promise<void> => {
    while (underWay.get(partition)) {
      underWay.set(partition, false);
      await fill(partition).catch((error: unknown) => onFault(partition, error));
    }
    underWay.delete(partition);
  };
  return (partition) => {
    const isRunning = underWay.has(partition);
    underWay.set(partition, true);
    if (!isRunning) void run(partition);
  };
}

export const launchJob = ({ node, id: browser, claim }: LaunchingBrowser): Job => ({
  kind: "launch",
  node,
  browser,
  claim,
});

async function candidatesFor(
  ports: PoolFillPorts,
  ask: { pool: PoolId; launch: LaunchTemplate; wanted: LaunchDemand; capacities: NodeCapacities },
): Promise<{ candidates: readonly LaunchCandidate[]; obstacle: string }> {
  const { pool: poolId, launch, wanted, capacities } = ask;
  const partition = partitionOf(poolId);
  const { ofNode: ofPool, at } = await ports.poolStore.spread(partition);
  const selector = launch.node_selector;
  const placement = new Placement(capacities, { engine: launch.engine, selector, ofPool, ...wanted });
  const { headless, stealth, kiosk_mode, memory, profile_id: profileId, vault_ids } = launch;
  const facts: LaunchFacts = {
    headless,
    stealth,
    kiosk_mode,
    memory,
    poolId,
    ...(profileId && { profileId }),
    ...(vault_ids?.length && { vaultIds: vault_ids }),
    ...(launch.telemetry && { captures: true }),
  };
  const ids = Array.from({ length: wanted.count }, () => newBrowserId(partition));
  const candidates = [...(await placement.reserveAll(ids, memoryBytes(memory)))].map(
    ([id, node]): LaunchCandidate => ({ id, node, facts: JSON.stringify(facts), ...ageLimit(ports, at) }),
  );
  return { candidates, obstacle: obstacleOf(capacities, launch) };
}

/** Why nodes launch nothing of this, where that is not for want of room alone. */
function obstacleOf(capacities: NodeCapacities, launch: LaunchTemplate): string {
  const { engine, node_selector: selector } = launch;
  if (capacities.able({ engine, selector }).length > 0) return capacities.obstacle;
  // Where no node launches anything, more of them would do.
  if (selector === undefined)
    return capacities.obstacle || (capacities.isEmpty ? "" : `no node that launches has ${engine}`);
  const labels = Object.entries(selector).map(([key, value]) => `${key}=${value}`);
  return `no node that launches has the labels ${labels.join(", ")}`.slice(0, 500);
}

function ageLimit({ recycle, random }: PoolFillPorts, at: Millis): { recycleAt?: Millis } {
  if (recycle.maxAgeMs === null) return {};
  return { recycleAt: Math.round(at + recycle.maxAgeMs * (1 - recycle.jitterRatio * random())) };
}
