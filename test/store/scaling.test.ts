import { expect, test } from "vitest";
import { makeReadScaling } from "../../src/pool/scaling.js";
import type { NodeFacts } from "../../src/pool/ports/node-store.js";
import { onBoth } from "../support/store/on-both.js";
import { nodeA, nodeB, PoolBed } from "../support/store/pool-bed.js";

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

  test("leaves out a pool that is deleted, and fails where Redis does", async () => {
    const pool = await PoolBed.create(bed(), { size: 5 });
    expect(await read(pool)).toMatchObject({ lacking: 5, wantedNodes: 1 });
    await bed().poolStore.deletePool(pool.partition, { force: true, request: "r1" as never });
    expect(await read(pool)).toMatchObject({ lacking: 0, wantedNodes: 0 });
  });
});
