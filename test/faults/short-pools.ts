import { partitionOf, newPoolId, type PoolId } from "../../src/base/ids.js";
import { forEachConcurrently } from "../../src/base/concurrently.js";
import type { TestRedis } from "../support/store/redis.js";
import { openStoreBed, poolConfig, request, writeOf } from "../support/store/store-bed.js";

/** Pools that want more than any node has room for, written without a daemon. */
export async function makeShortPools(redis: TestRedis, count: number): Promise<readonly PoolId[]> {
  const bed = await openStoreBed(redis, { project: "default" });
  const ids = Array.from({ length: count }, newPoolId);
  const failures = await forEachConcurrently(ids.entries(), 50, async ([place, id]) => {
    await bed.projects.addPool(id);
    await bed.poolStore.createPool(partitionOf(id), {
      id,
      write: writeOf(poolConfig({ size: 5, name: `short-${place}` })),
      request: request(),
    });
    await bed.projects.openPool(id);
  });
  await bed.close();
  if (failures.length > 0) throw failures[0];
  return ids;
}
