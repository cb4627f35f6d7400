import { afterEach, beforeEach, expect, test } from "vitest";
import type { BrowserId, NodeId } from "../../src/base/ids.js";
import { nodeFacts } from "../support/store/node-facts.js";
import { nodeA, PoolBed } from "../support/store/pool-bed.js";
import { startRedis, type TestRedis } from "../support/store/redis.js";
import { openStoreBed, type StoreBed } from "../support/store/store-bed.js";
import { upkeepOf } from "../support/store/upkeep.js";

let server: TestRedis;
let bed: StoreBed;
let dropped: NodeId[];
beforeEach(async () => {
  server = await startRedis();
  bed = await openStoreBed(server, { project: "lost" });
  dropped = [];
});
afterEach(async () => {
  await bed.close();
  await server.stop();
});

test.each([
  ["a browser", 1],
  ["none in a pool", 0],
])(
  "a look for lost nodes that is out of date takes nothing from one that lives again with %s",
  async (_, size) => {
    const pool = await PoolBed.create(bed, { size: 1 });
    await bed.projects.addPool(pool.id);
    await bed.projects.openPool(pool.id);
    await bed.nodes.beat(nodeFacts(nodeA));
    const room = { id: `${"0".repeat(12)}${"1".repeat(12)}` as BrowserId, bytes: 1 };
    await bed.nodes.reserveRoom(nodeFacts(nodeA), room);
    await pool.launch(size);
    // Another control has forgotten it since, and it has beaten.
    const nodes = new Proxy(bed.nodes, {
      get: (target, name) => (name === "lost" ? async () => [nodeA] : Reflect.get(target, name).bind(target)),
    });
    const queues = { drop: async (node: NodeId) => void dropped.push(node), keep: async () => {} };
    await upkeepOf(bed, { nodes, queues }).sweep();
    expect(dropped).toEqual([]);
    expect(await bed.nodes.living()).toMatchObject([{ id: nodeA }]);
    expect(await bed.nodes.occupancy(nodeA)).toMatchObject({ browsers: 1 });
    expect(await pool.browsers()).toHaveLength(size);
  },
);
