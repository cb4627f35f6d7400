import { afterEach, beforeEach, expect, test } from "vitest";
import { systemClock } from "../../src/base/clock.js";
import { newPoolId, type NodeId, type Partition } from "../../src/base/ids.js";
import type { MaintenancePorts } from "../../src/pool/maintenance.js";
import { makeNodeOperations } from "../../src/pool/node-operations.js";
import type { Projects } from "../../src/pool/ports/project-store.js";
import { ageKeys } from "../support/store/age.js";
import { type Broken, failing } from "../support/failing.js";
import { nodeA, nodeB, PoolBed } from "../support/store/pool-bed.js";
import { costOf } from "../support/store/redis-cost.js";
import { startRedis, type TestRedis } from "../support/store/redis.js";
import { claimOf, openStoreBed, request, type StoreBed } from "../support/store/store-bed.js";
import { nodeFacts } from "../support/store/node-facts.js";
import { upkeepOf } from "../support/store/upkeep.js";

let server: TestRedis;
let bed: StoreBed;
let broken: Broken;
let dropped: NodeId[];
beforeEach(async () => {
  server = await startRedis();
  bed = await openStoreBed(server, { project: "upkeep" });
  broken = new Set();
  dropped = [];
});
afterEach(async () => {
  await bed.close();
  await server.stop();
});

const upkeepWith = (over: Partial<MaintenancePorts> = {}): ReturnType<typeof upkeepOf> =>
  upkeepOf(bed, {
    projects: failing<Projects>(bed.allProjects, broken),
    queues: { drop: async (node) => void dropped.push(node), keep: async () => {} },
    ...over,
  });

async function openPool(size: number): Promise<PoolBed> {
  const pool = await PoolBed.create(bed, { size });
  await bed.projects.addPool(pool.id);
  await bed.projects.openPool(pool.id);
  return pool;
}
const silenceBeats = async (): Promise<void> => ageKeys(bed.redis, await bed.redis.keys("*beats*"), 20_000);

test("a part of the reap that fails keeps none of the others from their work", async () => {
  await bed.nodes.beat(nodeFacts(nodeA));
  const room = { id: `${"0".repeat(12)}${"1".repeat(12)}` as never, bytes: 1 };
  await bed.nodes.reserveRoom(nodeFacts(nodeA), room);
  const pool = newPoolId();
  await bed.projects.addPool(pool);
  await bed.projects.dropPool(pool);
  await ageKeys(bed.redis, await bed.redis.keys("*room*"), 100_000);
  broken.add("sweepPendingTombstones").add("sweepNames");
  await upkeepWith().reap();
  expect(await bed.redis.keys("*pools*")).toEqual([]);
  expect(await bed.nodes.occupancy(nodeA)).toMatchObject({ browsers: 0 });
});

test("a partition whose reap or clearing fails keeps no other from its own", async () => {
  const pools = [await openPool(1), await openPool(1), await openPool(1)];
  for (const pool of pools) await pool.launch(1);
  await bed.nodes.beat(nodeFacts(nodeA));
  await silenceBeats();
  const [sick] = pools;
  const reaped: string[] = [];
  const poolStore = new Proxy(bed.poolStore, {
    get: (target, name) =>
      name !== "reap" && name !== "clearNode"
        ? Reflect.get(target, name).bind(target)
        : async (partition: Partition, ...given: never[]) => {
            if (partition === sick?.partition) throw new Error("Redis has failed for this one");
            if (name === "reap") reaped.push(partition);
            return await Reflect.apply(Reflect.get(target, name), target, [partition, ...given]);
          },
  });
  await upkeepWith({ poolStore }).reap();
  expect(await Promise.all(pools.map((pool) => pool.browsers()))).toMatchObject([[{}], [], []]);
  expect(reaped).toEqual(expect.arrayContaining(pools.slice(1).map(({ partition }) => partition)));
  // What is left of the node is cleared by the next look.
  expect(await bed.nodes.lost()).toEqual([nodeA]);
  await upkeepWith().reap();
  expect(await sick?.browsers()).toEqual([]);
});

test("a node that beats again while what it held is cleared counts as living when that is done", async () => {
  const pool = await openPool(2);
  await pool.launch(2);
  await bed.nodes.beat(nodeFacts(nodeA));
  await silenceBeats();
  expect(await bed.nodes.lost()).toEqual([nodeA]);
  expect(await bed.nodes.beat(nodeFacts(nodeA))).toEqual({ kind: "lost" });
  expect(await bed.nodes.living()).toEqual([]);
  await upkeepWith().reap();
  expect(await pool.browsers()).toEqual([]);
  await upkeepWith().reap();
  expect(await bed.nodes.beat(nodeFacts(nodeA))).toEqual({ kind: "accepted" });
});

test("a node that was taken for lost and comes back drains on, as it was asked to", async () => {
  await bed.nodes.beat(nodeFacts(nodeA));
  const drainsUntil = (await bed.nodes.drain(nodeA, 3_600_000)) ?? 0;
  await silenceBeats();
  await upkeepWith().reap();
  expect(await bed.nodes.known()).toEqual([]);
  const result = await bed.nodes.beat(nodeFacts(nodeA));
  expect(result).toMatchObject({ kind: "accepted", drainMs: expect.any(Number) as unknown });
  expect(await bed.nodes.living()).toMatchObject([
    { id: nodeA, isDraining: true, isStopping: false, drainsUntil },
  ]);
});

test("the drain of a node that was taken for lost can be ended before it comes back", async () => {
  const { endDrain } = makeNodeOperations(bed);
  await bed.nodes.beat(nodeFacts(nodeA));
  await bed.nodes.drain(nodeA, 3_600_000);
  await silenceBeats();
  await upkeepWith().reap();
  expect(await endDrain(nodeA)).toMatchObject({ kind: "done" });
  expect(await endDrain(nodeA)).toMatchObject({ code: "node_not_found" });
  expect(await bed.nodes.beat(nodeFacts(nodeA))).toEqual({ kind: "accepted" });
});

test("a node that has started anew meanwhile keeps what it has from then on", async () => {
  // More than are cleared side by side.
  const pools = await Promise.all(Array.from({ length: 80 }, () => openPool(1)));
  await bed.nodes.beat(nodeFacts(nodeA));
  await silenceBeats();
  const order = (await bed.projects.partitions()).slice(1);
  const last = pools.find(({ partition }) => partition === order.at(-1)) as PoolBed;
  const poolStore = new Proxy(bed.poolStore, {
    get: (target, name) =>
      name !== "nodesOf"
        ? Reflect.get(target, name).bind(target)
        : async (partition: Partition) => {
            const found = await target.nodesOf(partition);
            if (partition !== order[0]) return found;
            // It clears up after itself, and is filled again.
            await bed.nodes.forget(nodeA);
            await bed.nodes.beat(nodeFacts(nodeA));
            await last.launch(1);
            return found;
          },
  });
  await upkeepWith({ poolStore }).reap();
  expect(await last.counts()).toMatchObject({ idle: 1 });
});

test("a control that dies while it drops a lost node's queue leaves the rest to the next look", async () => {
  await bed.nodes.beat(nodeFacts(nodeB));
  await silenceBeats();
  const dies = {
    drop: async (): Promise<void> => {
      throw new Error("killed");
    },
    keep: async () => {},
  };
  await upkeepWith({ queues: dies }).reap();
  // Its node goes on with a queue that may be paused, but counts as living only when that is gone.
  expect(await bed.nodes.beat(nodeFacts(nodeB))).toEqual({ kind: "lost" });
  await upkeepWith().reap();
  expect(dropped).toEqual([nodeB]);
  expect(await bed.nodes.beat(nodeFacts(nodeB))).toEqual({ kind: "accepted" });
});

test("a walk that takes too long goes on where it stopped", async () => {
  for (let i = 0; i < 150; i += 1) await openPool(1);
  const visited = new Set<string>();
  let now = 0;
  const clock = { ...systemClock, monotonic: () => now };
  const maintenance = upkeepWith({
    clock,
    fill: async (partition) => {
      visited.add(partition);
      now += 100;
    },
  });
  await maintenance.fill();
  expect(visited.size).toBeLessThan(60);
  for (let ticks = 0; ticks < 3; ticks += 1) await maintenance.fill();
  expect(visited.size).toBe(151);
});

test.each([
  ["with browsers left", 2],
  ["with none", 0],
])("a delete whose control dies on the way leaves no name and no entry (%s)", async (_, size) => {
  const pool = await PoolBed.create(bed, { size: 2, name: "herd" });
  await bed.projects.addPool(pool.id);
  await bed.projects.reserveName({ kind: "pool", name: "herd", owner: pool.id, partition: pool.partition });
  await bed.projects.openPool(pool.id);
  await pool.launch(size);
  await bed.poolStore.deletePool(pool.partition, { force: false, request: request() });
  await upkeepWith().reap();
  expect(await bed.projects.findName("pool", "herd")).toBeUndefined();
  expect(await bed.projects.pools()).toEqual([]);
  for (const browser of await pool.browsers()) await bed.reports.gone(browser.id, claimOf(browser));
  await upkeepWith().reap();
  expect(await bed.redis.keys("*pools")).toEqual([]);
});

test("nodes that are lost together cost each partition one question, and one more for each that it has", async () => {
  const pools = await Promise.all(Array.from({ length: 20 }, () => openPool(2)));
  const lost = Array.from({ length: 30 }, (_, place) => `lost-${place}` as NodeId);
  for (const node of lost) await bed.nodes.beat(nodeFacts(node));
  await pools[0]?.launch(1, { node: lost[0] as NodeId });
  await pools[1]?.launch(1, { node: lost[1] as NodeId });
  await silenceBeats();
  const asked = { nodesOf: 0, clearNode: 0 };
  const poolStore = new Proxy(bed.poolStore, {
    get: (target, name) => {
      if (name === "nodesOf" || name === "clearNode") asked[name] += 1;
      return Reflect.get(target, name).bind(target);
    },
  });
  await upkeepWith({ poolStore }).reap();
  expect(asked).toEqual({ nodesOf: pools.length + 1, clearNode: 2 });
  expect(await bed.nodes.lost()).toHaveLength(2);
  await upkeepWith().reap();
  expect(await bed.nodes.lost()).toEqual([]);
  expect(await bed.nodes.known()).toEqual([]);
});

test("what a pool has noted of a node that is lost goes with it, also where it has nothing there", async () => {
  const pool = await openPool(1);
  await bed.nodes.beat(nodeFacts(nodeB));
  await pool.launch(1, { node: nodeB });
  await bed.poolStore.silenceNode(pool.partition, nodeB, 60_000);
  for (const { id } of await pool.browsers()) {
    const end = await bed.reports.end(id, "crashed", "");
    if (end.kind === "retiring") await bed.reports.gone(id, end.claim);
  }
  expect(await bed.redis.hget(pool.key("pool"), "closed")).toContain(nodeB);
  await silenceBeats();
  await upkeepWith().reap();
  expect(await bed.redis.hget(pool.key("pool"), "closed")).toBeNull();
});

test("rooms of a large fleet are looked at in turn, each within a few looks", async () => {
  const nodes = Array.from({ length: 150 }, (_, place) => `room-${place}` as NodeId);
  for (const node of nodes) {
    await bed.nodes.beat(nodeFacts(node));
    const room = { id: `${"0".repeat(12)}${"1".repeat(12)}` as never, bytes: 1 };
    await bed.nodes.reserveRoom(nodeFacts(node), room);
  }
  await ageKeys(bed.redis, await bed.redis.keys("*room*"), 100_000);
  const left = async (): Promise<number> => (await bed.redis.keys("*:room")).length;
  expect(await left()).toBe(150);
  const upkeep = upkeepWith();
  await upkeep.reap();
  expect(await left()).toBe(86);
  await upkeep.reap();
  await upkeep.reap();
  expect(await left()).toBe(0);
});

test("a recycling marks a large pool in pieces, none of which reads more than a piece", async () => {
  const pool = await openPool(400);
  await pool.launch(400, { recycleAt: 1 });
  const reads: number[] = [];
  const poolStore = new Proxy(bed.poolStore, {
    get: (target, name) =>
      name !== "recycle"
        ? Reflect.get(target, name).bind(target)
        : async (...given: Parameters<typeof bed.poolStore.recycle>) => {
            let marked = 0;
            const { reads: cost } = await costOf(bed.redis, async () => {
              marked = await target.recycle(...given);
            });
            reads.push(cost);
            return marked;
          },
  });
  await upkeepWith({ poolStore }).recycle();
  // A quarter of the pool, by 50 at a time, and a last piece that finds that to be enough; and sessions on
  // demand, of which there are none.
  expect(await bed.redis.scard(pool.key("replaceable"))).toBe(100);
  expect(reads).toHaveLength(4);
  for (const cost of reads) expect(cost).toBeLessThan(60);
});
