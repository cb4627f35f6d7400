import type { LeaseId } from "../../../src/base/ids.js";
import type { Slot } from "../../../src/node/slot.js";
import { PoolBed } from "../store/pool-bed.js";
import type { NodeBed } from "./node-bed.js";

/** A pool of one that the project knows, its browser idle and running on the node. */
export async function oneSlot(
  node: NodeBed,
  over: Parameters<typeof PoolBed.create>[1] = {},
): Promise<{ pool: PoolBed; slot: Slot }> {
  const pool = await PoolBed.create(node.bed, { size: 1, ...over });
  await node.bed.projects.addPool(pool.id);
  const [browser] = await pool.claim(1);
  if (!browser) throw new Error("nothing was claimed");
  await node.launch(browser);
  const slot = node.slots.find(browser.id);
  if (!slot) throw new Error("it did not start");
  return { pool, slot };
}

/** Moves the node's clock on; whether the slot's browser is leased once the node has looked. */
export async function isHeldAfter(
  { bed, pool, slot }: { readonly bed: NodeBed; readonly pool: PoolBed; readonly slot: Slot },
  ms: number,
): Promise<boolean> {
  await bed.clock.advance(ms);
  // The first may join a look that began earlier.
  await bed.reconciler.look();
  await bed.reconciler.look();
  return (await pool.state(slot.id)) === "leased";
}

/** Seats a client of a lease as the gateway does; `cuts` takes why it is cut. */
export async function seatClient(
  { bed, handover }: NodeBed,
  slot: Slot,
  { lease, cuts = [] }: { lease: LeaseId; cuts?: string[] },
): Promise<boolean> {
  const visit = slot.activity.enter(lease, { cut: async (why: string) => void cuts.push(why) });
  const reply = await bed.reports.connect(slot.id, lease);
  if (reply.kind !== "connected" || !(await handover.begin(slot, lease))) return false;
  slot.record = reply.browser;
  return visit?.confirm() ?? false;
}

/** All that Redis holds, to be put back as a failover does. */
export async function takeSnapshot({ bed: { redis } }: NodeBed): Promise<() => Promise<void>> {
  const keys = await redis.keys("*");
  const dumps = await Promise.all(keys.map(async (key) => [key, await redis.dumpBuffer(key)] as const));
  return async () => {
    await redis.flushall();
    for (const [key, dump] of dumps) if (dump) await redis.restore(key, 0, dump);
  };
}
