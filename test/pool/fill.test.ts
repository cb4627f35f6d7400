import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { newBrowserId, type NodeId } from "../../src/base/ids.js";
import { makeFill, makeFillSoon } from "../../src/pool/fill.js";
import { NodeCapacities, Placement } from "../../src/pool/placement.js";
import type { PoolStore } from "../../src/pool/ports/pool-store.js";
import { nodeA, nodeB, PoolBed } from "../support/store/pool-bed.js";
import { startRedis, type TestRedis } from "../support/store/redis.js";
import { claimOf, openStoreBed, request, type StoreBed } from "../support/store/store-bed.js";
import { nodeFacts } from "../support/store/node-facts.js";

let server: TestRedis;
let bed: StoreBed;
beforeEach(async () => {
  server = await startRedis();
  bed = await openStoreBed(server, { project: "fill" });
  await bed.nodes.beat(nodeFacts(nodeA, { maxBrowsers: 10 }));
});
afterEach(async () => {
  await bed.close();
  await server.stop();
});

const fillWith = (poolStore: PoolStore) =>
  makeFill({
    poolStore,
    nodes: bed.nodes,
    jobs: { add: async (jobs) => void bed.jobs.push(...jobs) },
    random: () => 0,
    recycle: { maxAgeMs: null, jitterRatio: 0 },
  });

test("a fill launches what the pool lacks, with a job and room for each", async () => {
  const pool = await PoolBed.create(bed, { size: 3 });
  await fillWith(bed.poolStore)(pool.partition);
  expect(await pool.counts()).toMatchObject({ launching: 3 });
  expect(bed.jobs).toHaveLength(3);
  expect(await bed.nodes.occupancy(nodeA)).toEqual({ browsers: 3, bytes: 3 * 2 ** 30 });
});

test("a pool that names labels has its browsers on nodes that have all of them, and says where none has", async () => {
  const fast = { disk: "fast" };
  const pool = await PoolBed.create(bed, { size: 3, node_selector: { ...fast, team: "x" } });
  await bed.nodes.beat(nodeFacts(nodeA, { maxBrowsers: 10, labels: fast }));
  await fillWith(bed.poolStore)(pool.partition);
  expect(await bed.poolStore.findPool(pool.partition)).toMatchObject({
    counts: { launching: 0 },
    fill: { reason: "capacity", last_error: "no node that launches has the labels disk=fast, team=x" },
  });
  await bed.nodes.beat(nodeFacts(nodeB, { maxBrowsers: 10, labels: { ...fast, team: "x", more: "1" } }));
  await fillWith(bed.poolStore)(pool.partition);
  expect(await pool.counts()).toMatchObject({ launching: 3 });
  expect([...(await bed.poolStore.spread(pool.partition)).ofNode]).toEqual([[nodeB, 3]]);
});

test("a pool whose engine no node has says so, and one for which there are no nodes wants more of them", async () => {
  const pool = await PoolBed.create(bed, { size: 1, engine: "headless-shell" });
  const lastError = async (): Promise<unknown> => {
    await fillWith(bed.poolStore)(pool.partition);
    return (await bed.poolStore.findPool(pool.partition))?.fill;
  };
  expect(await lastError()).toMatchObject({
    reason: "capacity",
    last_error: "no node that launches has headless-shell",
  });
  await bed.nodes.forget(nodeA);
  expect(await lastError()).toMatchObject({ reason: "capacity" });
  expect(await lastError()).not.toHaveProperty("last_error");
});

test("a pool's browsers are spread over zones, however many nodes each has", async () => {
  await bed.nodes.beat(nodeFacts(nodeA, { maxBrowsers: 10, zone: "north" }));
  const others = ["south-1", "south-2", "south-3"].map((id) => id as NodeId);
  for (const id of others) await bed.nodes.beat(nodeFacts(id, { maxBrowsers: 10, zone: "south" }));
  const pool = await PoolBed.create(bed, { size: 6 });
  await fillWith(bed.poolStore)(pool.partition);
  expect(Object.fromEntries((await bed.poolStore.spread(pool.partition)).ofNode)).toEqual({
    [nodeA]: 3,
    ...Object.fromEntries(others.map((id) => [id, 1])),
  });
});

test("a pool that lacks one browser goes from a sick node to a well one, and to another sick one where none has room", async () => {
  const pool = await PoolBed.create(bed, { size: 1 });
  const well = "well" as NodeId;
  const fill = fillWith(bed.poolStore);
  const nodesOfPool = async (): Promise<NodeId[]> => [
    ...(await bed.poolStore.spread(pool.partition)).ofNode.keys(),
  ];
  const failAt = async (node: NodeId): Promise<void> => {
    const [browser] = await pool.claim(1, { node });
    if (!browser) throw new Error("nothing was claimed");
    await bed.reports.launchFailed(browser.id, claimOf(browser), "no display");
    // From then on it would be tried again.
    await pool.age(2100);
  };
  await failAt(nodeA);
  await failAt(nodeB);
  for (const node of [nodeA, nodeB]) await bed.nodes.beat(nodeFacts(node, { maxBrowsers: 10 }));
  await bed.nodes.beat(nodeFacts(well, { maxBrowsers: 1 }));

  await fill(pool.partition);
  expect(await nodesOfPool()).toEqual([well]);

  await pool.update({ size: 2 });
  await fill(pool.partition);
  expect((await nodesOfPool()).toSorted()).toEqual([nodeA, well]);
});

test("room for many is asked for at once, and again only what a node had no room for after all", async () => {
  await bed.nodes.beat(nodeFacts(nodeB, { maxBrowsers: 10 }));
  const pool = await PoolBed.create(bed, { size: 8 });
  const capacities = await NodeCapacities.read(bed.nodes);
  // Somebody else takes most of a node meanwhile.
  for (let i = 0; i < 9; i += 1) {
    const id = newBrowserId(pool.partition);
    await bed.nodes.reserveRoom(nodeFacts(nodeB, { maxBrowsers: 10 }), { id, bytes: 1 });
  }
  let answered = 0;
  /** How many had been answered when each was asked for. */
  const answeredBefore: number[] = [];
  const counting = new Proxy(capacities, {
    get: (target, name) =>
      name === "reserve"
        ? async (...given: Parameters<NodeCapacities["reserve"]>) => {
            answeredBefore.push(answered);
            const isReserved = await target.reserve(...given);
            answered += 1;
            return isReserved;
          }
        : Reflect.get(target, name).bind?.(target),
  });
  const ids = Array.from({ length: 8 }, () => newBrowserId(pool.partition));
  const placed = await new Placement(counting, { engine: "chromium", ofPool: new Map() }).reserveAll(ids, 1);
  expect([...placed.values()].filter((node) => node === nodeB)).toHaveLength(1);
  expect(placed.size).toBe(8);
  expect(answeredBefore).toEqual([...Array(8).fill(0), ...Array(3).fill(8)]);
});

test("several controls that fill at once never give a node more than it has room for", async () => {
  await bed.nodes.beat(nodeFacts(nodeB, { maxBrowsers: 7 }));
  const pools = await Promise.all(Array.from({ length: 6 }, () => PoolBed.create(bed, { size: 5 })));
  // Each has read the nodes before any has placed anything.
  const fleet = await NodeCapacities.read(bed.nodes);
  const readings = await Promise.all(pools.map(() => NodeCapacities.read(bed.nodes)));
  await Promise.all(
    pools.flatMap(({ partition }, place) => [
      fillWith(bed.poolStore)(partition, async () => readings[place] ?? fleet),
      fillWith(bed.poolStore)(partition, async () => fleet),
    ]),
  );
  const placed = async (): Promise<number[]> =>
    await Promise.all([nodeA, nodeB].map(async (id) => (await bed.nodes.occupancy(id)).browsers));
  const [onA = 0, onB = 0] = await placed();
  expect([onA <= 10, onB <= 7]).toEqual([true, true]);
  // What was given back, since two fills of one pool had asked for the same, goes to the next.
  for (const { partition } of pools) await fillWith(bed.poolStore)(partition);
  expect(await placed()).toEqual([10, 7]);
  const counts = await Promise.all(pools.map((pool) => pool.counts()));
  expect(counts.reduce((sum, { launching }) => sum + launching, 0)).toBe(17);
});

test("a pool that is changed while its browsers are placed is filled by the next fill, with room for what it is now", async () => {
  const pool = await PoolBed.create(bed, { size: 1 });
  let isChanged = false;
  const poolStore = new Proxy<PoolStore>(bed.poolStore, {
    get: (target, name) =>
      name !== "spread" || isChanged
        ? Reflect.get(target, name).bind(target)
        : async (...given: Parameters<PoolStore["spread"]>) => {
            isChanged = true;
            await pool.update({ headless: false, memory: "8GiB" }, { isNewLaunch: true });
            return await target.spread(...given);
          },
  });
  await fillWith(poolStore)(pool.partition);
  expect(await pool.counts()).toMatchObject({ launching: 0 });
  expect(await bed.nodes.occupancy(nodeA)).toEqual({ browsers: 0, bytes: 0 });
  await fillWith(poolStore)(pool.partition);
  expect(await pool.counts()).toMatchObject({ launching: 1 });
  expect(await bed.nodes.occupancy(nodeA)).toEqual({ browsers: 1, bytes: 8 * 2 ** 30 });
});

describe("a node that fails launches is given another trial at once", () => {
  beforeEach(async () => {
    await bed.nodes.beat(nodeFacts(nodeA, { failing: { failures: 1, error: "no display" } }));
    await bed.nodes.beat(nodeFacts(nodeB));
  });
  const launchedOn = (): readonly string[] =>
    bed.jobs.filter(({ kind }) => kind === "launch").map(({ node }) => node);

  test("where the launch of the last was claimed by another fill, on another node", async () => {
    const pool = await PoolBed.create(bed, { size: 1 });
    const overtaken = new Proxy<PoolStore>(bed.poolStore, {
      get: (target, name) =>
        name !== "claimLaunches"
          ? Reflect.get(target, name).bind(target)
          : async (...given: Parameters<PoolStore["claimLaunches"]>) => {
              await fillWith(target)(pool.partition);
              return await target.claimLaunches(...given);
            },
    });
    await fillWith(overtaken)(pool.partition);
    expect(launchedOn()).toEqual([nodeB]);
    await pool.update({ size: 2 });
    await fillWith(bed.poolStore)(pool.partition);
    expect(launchedOn()).toEqual([nodeB, nodeA]);
  });

  test("where the last was called off before its launch began", async () => {
    const [pool, other] = [await PoolBed.create(bed, { size: 1 }), await PoolBed.create(bed, { size: 1 })];
    await fillWith(bed.poolStore)(pool.partition);
    await bed.poolStore.deletePool(pool.partition, { force: true, request: request() });
    await bed.effects.idle();
    const retired = bed.jobs.filter(({ kind }) => kind === "retire");
    for (const { browser, claim } of retired) await bed.reports.gone(browser, claim);
    await bed.effects.idle();
    await fillWith(bed.poolStore)(other.partition);
    expect(launchedOn()).toEqual([nodeA, nodeA]);
  });
});

test("a node that fails launches and is being tried is asked for room once by a pool whose own launch has just failed", async () => {
  await bed.nodes.beat(nodeFacts(nodeA, { failing: { failures: 1, error: "no display" } }));
  await bed.nodes.beat(nodeFacts(nodeB));
  await fillWith(bed.poolStore)((await PoolBed.create(bed, { size: 1 })).partition);
  const pool = await PoolBed.create(bed, { size: 1 });
  const [failed] = await pool.claim(1, { node: nodeB });
  if (!failed) throw new Error("nothing was claimed");
  await bed.reports.launchFailed(failed.id, claimOf(failed), "no display");
  await pool.age(2100);
  await fillWith(bed.poolStore)(pool.partition);
  expect([...(await bed.poolStore.spread(pool.partition)).ofNode.keys()]).toEqual([nodeB]);
});

test("however many ask for a fill while one is under way, one more follows it, and a failure keeps nobody from the next", async () => {
  const ends: ((error?: Error) => void)[] = [];
  const faults: unknown[] = [];
  const fill = (): Promise<void> =>
    new Promise((resolve, reject) => void ends.push((error) => (error ? reject(error) : resolve())));
  const kick = makeFillSoon(fill, (_, error) => faults.push(error));
  const { partition } = await PoolBed.create(bed, { size: 1 });
  const { partition: other } = await PoolBed.create(bed, { size: 1 });
  for (let asked = 0; asked < 5; asked += 1) kick(partition);
  expect(ends).toHaveLength(1);
  kick(other);
  expect(ends).toHaveLength(2);
  const failure = new Error("no Redis");
  ends[0]?.(failure);
  await expect.poll(() => ends.length).toBe(3);
  expect(faults).toEqual([failure]);
  ends[2]?.();
  await expect
    .poll(() => {
      kick(partition);
      return ends.length;
    })
    .toBeGreaterThan(3);
});

test.each([
  ["none", true],
  ["state", true],
  ["relaunch", false],
] as const)(
  "a node hears whether a browser of a pool with %s may have a second holder",
  async (reset_on_release, mayReset) => {
    const pool = await PoolBed.create(bed, { size: 1, reset_on_release });
    const [browser] = await pool.claim(1);
    if (!browser) throw new Error("nothing was claimed");
    expect(await bed.reports.beginLaunch(browser.id, claimOf(browser))).toMatchObject({ mayReset });
  },
);
