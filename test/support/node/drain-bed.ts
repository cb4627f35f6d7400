import type { BrowserId } from "../../../src/base/ids.js";
import type { Drain } from "../../../src/node/drain/drain.js";
import type { PoolStore } from "../../../src/pool/ports/pool-store.js";
import { silentLog } from "../browser/chromium-host.js";
import { nodeA, PoolBed } from "../store/pool-bed.js";
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
});

/** The nodes of which a pool knows that they drain or are silent. */
export const closedIn = async ({ bed }: NodeBed, pool: PoolBed): Promise<Record<string, object>> =>
  JSON.parse((await bed.redis.hget(pool.key("pool"), "closed")) ?? "{}") as Record<string, object>;
