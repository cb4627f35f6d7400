import { expect, test } from "vitest";
import { makeReadScaling } from "../../../../src/pool/scaling.js";
import type { NodeFacts } from "../../../../src/pool/ports/node-store.js";
import { onBoth } from "../../../support/store/on-both.js";
import { nodeA, nodeB, PoolBed } from "../../../support/store/pool-bed.js";
import { request } from "../../../support/store/store-bed.js";

const gib = 2 ** 30;

onBoth("what a scaler is told", ({ bed }) => {
  const factsOf = (id: NodeFacts["id"], more: Partial<NodeFacts> = {}): NodeFacts => ({
    id,
    host: "10.0.0.1",
    port: 4700,
    memoryBytes: 8 * gib,
    maxBrowsers: 50,
    isDraining: false,
    canLaunch: true,
    engines: ["chromium"],
    ...more,
  });
  const read = (...pools: PoolBed[]) =>
    makeReadScaling({
      nodes: bed().nodes,
      pools: bed().poolStore,
      scaling: bed().scaling,
      overcommit: 1,
      partitions: async () => pools.map(({ partition }) => partition),
    })();
  const callsOf = async (...names: string[]): Promise<number> => {
    const text = await bed().redis.info("commandstats");
    const calls = names.map((name) => new RegExp(`^cmdstat_${name}:calls=(\\d+)`, "m").exec(text)?.[1] ?? 0);
    return calls.reduce((sum: number, count) => sum + Number(count), 0);
  };

  test("counts what each node has lent, in all pools", async () => {
    await bed().nodes.beat(factsOf(nodeA));
    await bed().nodes.beat(factsOf(nodeB, { isDraining: true }));
    const first = await PoolBed.create(bed(), { size: 3 });
    const held = [...(await first.launch(2, { node: nodeA }))];
    await first.lend();
    const second = await PoolBed.create(bed(), { size: 1 });
    await second.launch(1, { node: nodeA });
    await second.lend();
    for (const id of held) await bed().nodes.holdRoom(nodeA, { id, bytes: gib });

    const scaling = await read(first, second);
    expect(scaling.nodes).toMatchObject([
      { id: nodeA, isServing: true, held: { browsers: 2, bytes: 2 * gib }, leased: 2 },
      { id: nodeB, isServing: false, isDraining: true, leased: 0 },
    ]);
    expect(scaling).toMatchObject({ lacking: 1, unplaceable: 0, idle: 1, leased: 2, serving: 1 });
  });

  test("asks no more of many nodes than of few, and of pools that have lent nothing not where their browsers are", async () => {
    const asked = async (nodes: readonly NodeFacts["id"][]): Promise<number> => {
      for (const id of nodes) await bed().nodes.beat(factsOf(id));
      const pools = [await PoolBed.create(bed(), { size: 1 }), await PoolBed.create(bed(), { size: 1 })];
      for (const pool of pools) await pool.launch(1, { node: nodeA });
      await pools[0]?.lend();
      const before = await callsOf("zrange", "hexists");
      expect((await read(...pools)).leased).toBe(1);
      return (await callsOf("zrange", "hexists")) - before;
    };
    const few = await asked([nodeA]);
    const many = ["c", "d", "e", "f", "g"].map((letter) => `node-${letter}` as NodeFacts["id"]);
    expect(await asked([nodeA, nodeB, ...many])).toBe(few);
    // The leases and the places of the one pool that has lent something.
    expect(few).toBe(2);
  });

  test("counts leases in a pool of more browsers than are read at once", async () => {
    await bed().nodes.beat(factsOf(nodeA));
    await bed().nodes.beat(factsOf(nodeB));
    const pool = await PoolBed.create(bed(), { size: 1200, fill_rate_per_minute: 100_000 });
    await pool.launch(1100, { node: nodeA });
    await pool.launch(50, { node: nodeB });
    const { leased } = await read(pool);
    expect(leased).toBe(0);
    for (let lent = 0; lent < 20; lent += 1) await pool.lend();
    const counts = await bed().scaling.leasedByNode(pool.partition);
    const records = await pool.browsers();
    const onA = records.filter(({ state, node }) => state === "leased" && node === nodeA).length;
    expect([counts.get(nodeA) ?? 0, counts.get(nodeB) ?? 0]).toEqual([onA, 20 - onA]);
  });

  test("wants a node more where there is no room for a pool, and none for one that no node may have", async () => {
    const beat = async (id: NodeFacts["id"]): Promise<void> => {
      await bed().nodes.beat(factsOf(id, { maxBrowsers: 1000, memoryBytes: 1000 * gib }));
    };
    await beat(nodeA);
    const pool = await PoolBed.create(bed(), { size: 5 });
    const holdUp = async (obstacle: string): Promise<void> => {
      const { partition } = pool;
      await bed().poolStore.wanted(partition, 100);
      await bed().poolStore.claimLaunches(partition, { candidates: [], obstacle, request: request() });
    };
    await holdUp("");
    expect(await read(pool)).toMatchObject({ lacking: 5, unplaceable: 5, wantedNodes: 2 });
    await holdUp("no node that launches has the labels pool=gpu");
    expect(await read(pool)).toMatchObject({ lacking: 5, unplaceable: 5, serving: 1, wantedNodes: 1 });
    // Nor when nodes have come all the same, each of which would want the next.
    await beat(nodeB);
    expect(await read(pool)).toMatchObject({ lacking: 5, unplaceable: 5, serving: 2, wantedNodes: 1 });
  });

  test("tells apart what ends, what others have replaced, and what is only above a size", async () => {
    const pool = await PoolBed.create(bed(), { size: 4 });
    const told = async () => await bed().scaling.findDemand(pool.partition);
    const drains = { node: nodeA, ms: 540_000 };
    await pool.launch(3, { node: nodeA });
    for (let lent = 0; lent < 3; lent += 1) await pool.lend();
    await pool.launch(1, { node: nodeA });
    await bed().poolStore.recycle(pool.partition, { maxLeases: null, drains, request: request() });
    expect(await told()).toMatchObject({ lacking: 0, ending: 0, replaced: 0 });
    // The first replacement ends the one that is idle.
    await pool.launch(1, { node: nodeB });
    expect(await told()).toMatchObject({ lacking: 0, ending: 1, replaced: 0 });
    await pool.launch(2, { node: nodeB });
    expect(await told()).toMatchObject({ lacking: 0, ending: 1, replaced: 2 });
    await pool.clear();
    expect(await told()).toMatchObject({ lacking: 0, ending: 0, replaced: 2 });

    const shrunk = await PoolBed.create(bed(), { size: 3 });
    await shrunk.launch(3, { node: nodeB });
    for (let lent = 0; lent < 3; lent += 1) await shrunk.lend();
    await shrunk.update({ size: 1 });
    expect(await bed().scaling.findDemand(shrunk.partition)).toMatchObject({ lacking: 0, replaced: 0 });
    expect(await bed().poolStore.flush(pool.partition, request())).toBe("flushed");
    expect(await told()).toMatchObject({ lacking: 1, ending: 3, replaced: 0 });
  });

  test("leaves out a pool that is deleted, and fails where Redis does", async () => {
    const pool = await PoolBed.create(bed(), { size: 5 });
    expect(await read(pool)).toMatchObject({ lacking: 5, wantedNodes: 1 });
    await bed().poolStore.deletePool(pool.partition, { force: true, request: "r1" as never });
    expect(await read(pool)).toMatchObject({ lacking: 0, wantedNodes: 0 });
  });
});
