import { type BrowserId, newLeaseId, onDemandPartition } from "../../../src/base/ids.js";
import type { Drain } from "../../../src/node/drain/drain.js";
import type { LaunchingBrowser } from "../../../src/pool/browser.js";
import type { PoolStore } from "../../../src/pool/ports/pool-store.js";
import { silentLog } from "../browser/chromium-host.js";
import { controlA, nodeA, PoolBed } from "../store/pool-bed.js";
import { candidateOn, poolSpec, request } from "../store/store-bed.js";
import type { NodeBed } from "./node-bed.js";

/** An empty pool, which its project lists. */
export async function openPool({ bed }: NodeBed, size = 1): Promise<PoolBed> {
  const pool = await PoolBed.create(bed, { size });
  await bed.projects.addPool(pool.id);
  await bed.projects.openPool(pool.id);
  return pool;
}

/** Launches a browser of a pool on this node. */
export async function launchHere(node: NodeBed, pool: PoolBed): Promise<BrowserId> {
  const [browser] = await pool.claim(1);
  if (!browser) throw new Error("nothing was claimed");
  await node.launch(browser);
  return browser.id;
}

/** A pool with an idle browser on this node, which runs it. */
export async function idleBrowser(
  node: NodeBed,
): Promise<{ readonly pool: PoolBed; readonly id: BrowserId }> {
  const pool = await openPool(node);
  return { pool, id: await launchHere(node, pool) };
}

/** A session on demand whose browser is to be launched on this node. */
export async function claimSession({ bed }: NodeBed): Promise<LaunchingBrowser> {
  const {
    size: _,
    fill_rate_per_minute: __,
    timeout_seconds: ___,
    reset_on_release: ____,
    ...template
  } = poolSpec();
  const claimed = await bed.poolStore.createSession(onDemandPartition, {
    candidate: candidateOn(onDemandPartition, nodeA),
    waiter: {
      id: request(),
      lease: newLeaseId(),
      control: controlA,
      connection: request(),
      timeoutSeconds: 60,
    },
    template,
  });
  if (claimed.kind !== "claimed") throw new Error(`not claimed: ${claimed.kind}`);
  return claimed.browser;
}

export const portsOf = (
  { bed, slots, clock }: NodeBed,
  poolStore: PoolStore,
): ConstructorParameters<typeof Drain>[0] => ({
  node: nodeA,
  poolStore,
  projects: bed.projects,
  nodes: bed.nodes,
  slots,
  clock,
  log: silentLog,
  holdsName: async () => true,
});

/** The nodes of which a pool knows that they drain or are silent. */
export const closedIn = async ({ bed }: NodeBed, pool: PoolBed): Promise<Record<string, object>> =>
  JSON.parse((await bed.redis.hget(pool.key("pool"), "closed")) ?? "{}") as Record<string, object>;
