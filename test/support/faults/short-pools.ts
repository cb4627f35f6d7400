import { partitionOf, newPoolId, type PoolId } from "../../../src/base/ids.js";
import { forEachConcurrently } from "../../../src/base/concurrently.js";
import { age } from "../store/age.js";
import type { TestRedis } from "../store/redis.js";
import { openStoreBed, poolSpec, request, writeOf } from "../store/store-bed.js";

/**
 * Pools that want more than any node has room for, written without a daemon. Their names and sizes were
 * reserved long ago, so that each reap looks whether a pool still bears them.
 */
export async function makeShortPools(redis: TestRedis, count: number): Promise<readonly PoolId[]> {
  const bed = await openStoreBed(redis, { project: "default" });
  const ids = Array.from({ length: count }, newPoolId);
  const failures = await forEachConcurrently(ids.entries(), 50, async ([place, id]) => {
    await bed.projects.addPool(id);
    const [name, size] = [`short-${place}`, 5];
    await bed.projects.reserveName({ kind: "pool", name, owner: id, partition: partitionOf(id) });
    await bed.projects.reserveSize(id, size, { pooledSessions: null, maxPools: 2000 });
    await bed.poolStore.createPool(partitionOf(id), {
      id,
      write: writeOf(poolSpec({ size, name })),
      request: request(),
    });
    await bed.projects.openPool(id);
  });
  await age(bed.redis, "remuda:*:names", 121_000);
  await age(bed.redis, "remuda:*:reservations", 121_000);
  await bed.close();
  if (failures.length > 0) throw failures[0];
  return ids;
}
