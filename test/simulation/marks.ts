import { type BrowserId, newRequestId, type Partition, partitionOf } from "../../src/base/ids.js";
import type { FakeNode } from "./model.js";
import type { World } from "./world.js";

/** Whether a partition has browsers on a node; nothing is noted there where it has none. */
export const hasAny = (world: World, partition: Partition, { id }: FakeNode): boolean =>
  [...world.shadow.browsers.values()].some(
    (browser) => browser.partition === partition && browser.node === id,
  );

/** Says in a pool that a node drains. */
export async function mark(world: World, partition: Partition, node: FakeNode): Promise<void> {
  const leftMs = Math.max(0, (node.drain?.until ?? 0) - world.now);
  const isThere = hasAny(world, partition, node);
  await world.bed.poolStore.recycle(partition, {
    maxLeases: null,
    drains: { node: node.id, ms: leftMs },
    request: newRequestId(),
  });
  await world.look();
  // The script has counted from a time that is not later than the one that is read now.
  if (isThere && partition === world.pool?.partition)
    world.closed.drain(partition, node.id, world.now + leftMs);
}

/** Does what a draining node does before it reports a launch (node/drain/closed-pools.ts). */
export async function markLaunch(world: World, node: FakeNode, browser: BrowserId): Promise<void> {
  if (node.drain) await mark(world, partitionOf(browser), node);
}
