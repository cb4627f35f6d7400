import { afterEach, beforeEach, expect, onTestFinished, test } from "vitest";
import { systemClock } from "../../src/base/clock.js";
import { isOnDemand, type Partition } from "../../src/base/ids.js";
import { PartitionScripts } from "../../src/store/partition-scripts.js";
import { RedisPoolStore } from "../../src/store/pool-store.js";
import { connect } from "../../src/store/redis/connect.js";
import { ScriptStore } from "../../src/store/redis/redis.js";
import { silentLog } from "../support/browser/chromium-host.js";
import { nodeA, PoolBed } from "../support/store/pool-bed.js";
import { startRedisCluster } from "../support/store/redis-cluster.js";
import { startRedis, type TestRedis } from "../support/store/redis.js";
import { openStoreBed, request, type StoreBed } from "../support/store/store-bed.js";
import { defaultLimits } from "../support/store/store-limits.js";
import { upkeepOf } from "../support/store/upkeep.js";

let server: TestRedis;
let bed: StoreBed;
let now: number;
let reaped: Partition[];
beforeEach(async () => {
  server = await startRedis();
  bed = await openStoreBed(server, { project: "rest", limits: { maxLeases: null } });
  now = 0;
  reaped = [];
});
afterEach(async () => {
  await bed.close();
  await server.stop();
});

/** The ticks of a control by a driven clock, of which the whole reaps are noted. */
function noted(store = bed.poolStore): () => Promise<void> {
  const poolStore = new Proxy(store, {
    get: (target, name) =>
      name !== "reap"
        ? Reflect.get(target, name).bind(target)
        : async (partition: Partition) => {
            reaped.push(partition);
            return await target.reap(partition);
          },
  });
  const clock = { ...systemClock, monotonic: () => now };
  return upkeepOf(bed, { poolStore, clock, queues: { drop: async () => {}, keep: async () => {} } }).reap;
}

async function filledPool(): Promise<PoolBed> {
  const pool = await PoolBed.filled(bed, { size: 2 });
  await bed.projects.addPool(pool.id);
  await bed.projects.openPool(pool.id);
  return pool;
}

const timesReaped = (pool: PoolBed): number =>
  reaped.filter((partition) => partition === pool.partition).length;

const tickMs = 5000;

test("a pool at rest is reaped whole once in 30 s, and one more control does so at once", async () => {
  const pool = await filledPool();
  const reap = noted();
  const at: number[] = [];
  for (now = 0; now <= 120_000; now += tickMs) {
    const before = timesReaped(pool);
    await reap();
    if (timesReaped(pool) > before) at.push(now);
  }
  const [first, second = Infinity, ...later] = at;
  expect(first).toBe(0);
  expect(second).toBeLessThanOrEqual(30_000);
  expect(later.slice(0, 2)).toEqual([second + 30_000, second + 60_000]);
  const times = timesReaped(pool);
  await noted()();
  expect(timesReaped(pool)).toBe(times + 1);
});

test("pools at rest are reaped whole at different ticks, but for the first of a control", async () => {
  const pools = 60;
  for (let count = 0; count < pools; count += 1) {
    const pool = await PoolBed.create(bed, { size: 0 });
    await bed.projects.addPool(pool.id);
    await bed.projects.openPool(pool.id);
  }
  const reap = noted();
  const atTick: number[] = [];
  for (now = 0; now <= 60_000; now += tickMs) {
    reaped = [];
    await reap();
    atTick.push(reaped.filter((partition) => !isOnDemand(partition)).length);
  }
  const [first, ...later] = atTick;
  expect(first).toBe(pools);
  expect(Math.max(...later)).toBeLessThan(pools / 2);
  const round = 30_000 / tickMs;
  expect(later.slice(round)).toEqual(later.slice(0, round));
  expect(later.slice(round).reduce((sum, count) => sum + count)).toBe(pools);
});

test("sessions on demand, which have no size, are reaped each time", async () => {
  const reap = noted();
  await reap();
  await reap();
  expect(reaped).toHaveLength(2);
});

test("a lease that is confirmed keeps its pool from no rest", async () => {
  const pool = await filledPool();
  const reap = noted();
  const { lease } = await pool.lend();
  await bed.poolStore.confirm(pool.partition, [lease]);
  await reap();
  await reap();
  expect(timesReaped(pool)).toBe(1);
});

test("in a cluster, whose masters have an id each, a pool at rest is reaped whole each time", async () => {
  const cluster = await startRedisCluster();
  onTestFinished(() => cluster.stop());
  const limits = { connectTimeoutMs: 2000, commandTimeoutMs: 20_000 };
  const store = new ScriptStore(connect({ url: cluster.url, isCluster: true, ...limits }), silentLog);
  onTestFinished(() => store.close());
  await store.open(new AbortController().signal);
  const at = { unnamed: bed.project, limits: defaultLimits };
  const { serverId } = new RedisPoolStore(new PartitionScripts(store, bed.effects, at));
  expect(await serverId()).toBeUndefined();
  const pool = await filledPool();
  const reap = noted(Object.assign(bed.poolStore, { serverId }));
  await reap();
  await reap();
  expect(timesReaped(pool)).toBe(2);
});

const restless: readonly [what: string, disturb: (pool: PoolBed) => Promise<unknown>][] = [
  ["a lease whose reply may be lost", (pool) => pool.lend()],
  [
    "a browser that its node is to fence",
    async (pool) => {
      const held = await pool.lend();
      await pool.connect(held);
      await pool.release(held);
    },
  ],
  ["a browser that its node is to end", async (pool) => pool.release(await pool.lend(), { reuse: false })],
  [
    "a launch",
    async (pool) => {
      await pool.update({ size: 3 });
      await pool.claim(1);
    },
  ],
  [
    "a caller in line",
    async (pool) => {
      await bed.poolStore.confirm(pool.partition, [(await pool.lend()).lease, (await pool.lend()).lease]);
      await pool.ask();
    },
  ],
  [
    "a lease that was undone",
    async (pool) => {
      const { waiter } = await pool.ask();
      await bed.poolStore.undo(pool.partition, waiter.lease, request());
    },
  ],
  ["another size", (pool) => pool.update({ size: 3 })],
  ["a closed node", (pool) => bed.poolStore.silenceNode(pool.partition, nodeA, 1000)],
  ["a deletion", (pool) => bed.poolStore.deletePool(pool.partition, { force: true, request: request() })],
  ["another server than has written it", (pool) => bed.redis.hset(pool.key("pool"), "replicationId", "0f")],
];
test.each(restless)("%s has its pool reaped at the next tick", async (_, disturb) => {
  const pool = await filledPool();
  const reap = noted();
  await reap();
  await disturb(pool);
  await reap();
  expect(timesReaped(pool)).toBe(2);
});

/** Each alone, as no move of a pool leaves it, so that each look is needed. */
const alone: readonly [what: string, write: (pool: PoolBed) => Promise<unknown>][] = [
  ...(
    ["launching", "resetting", "retiring", "discarded", "waitQueue", "provisional", "endedLeases"] as const
  ).map(
    (part) => [part, (pool: PoolBed) => bed.redis.zadd(pool.key(part), 1, "one")] satisfies [string, unknown],
  ),
  ["replaceable", (pool) => bed.redis.sadd(pool.key("replaceable"), "one")],
  ["waiterRecords", (pool) => bed.redis.hset(pool.key("waiterRecords"), "one", "{}")],
  ...["closed", "failing", "discards", "indexing", "boundTo"].map(
    (field) =>
      [field, (pool: PoolBed) => bed.redis.hset(pool.key("pool"), field, "one")] satisfies [string, unknown],
  ),
  ["state", (pool) => bed.redis.hset(pool.key("pool"), "state", "deleted")],
  ["size", (pool) => bed.redis.hset(pool.key("pool"), "size", 3)],
  ["replicationId", (pool) => bed.redis.hset(pool.key("pool"), "replicationId", "0f")],
];
test.each(alone)("a pool of which nothing but `%s` is other is not at rest", async (_, write) => {
  const pool = await filledPool();
  const id = await bed.poolStore.serverId();
  const isAtRest = (): Promise<boolean> => bed.poolStore.isAtRest(pool.partition, id ?? "");
  expect(await isAtRest()).toBe(true);
  await write(pool);
  expect(await isAtRest()).toBe(false);
});
