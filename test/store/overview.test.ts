import { expect, test } from "vitest";
import { newControlId, type NodeId } from "../../src/base/ids.js";
import { checkIndex } from "../support/store/index-check.js";
import { onBoth } from "../support/store/on-both.js";
import { nodeA, nodeB, PoolBed } from "../support/store/pool-bed.js";
import { claimOf, request } from "../support/store/store-bed.js";

const indexParts = ["nodeIndex", "generationIndex", "ageIndex", "leaseCountIndex", "nodeStamps"] as const;

onBoth("the index of browsers", ({ bed }) => {
  const check = async (pool: PoolBed): Promise<void> =>
    checkIndex(bed(), pool.partition, await pool.browsers());
  const idsOn = async (pool: PoolBed, node: NodeId): Promise<string[]> =>
    (await bed().poolStore.browsersOf(pool.partition, node)).browsers.map(({ id }) => id).toSorted();
  const mixed = async (): Promise<PoolBed> => {
    const pool = await PoolBed.create(bed(), { size: 6 });
    await pool.launch(2, { node: nodeA, recycleAt: 1 });
    await pool.launch(3, { node: nodeB });
    return pool;
  };
  /** Leaves Redis as a release left it that had no index. */
  const forgetIndex = (pool: PoolBed): Promise<unknown> =>
    bed().redis.del(...indexParts.map((part) => pool.key(part)));

  test("follows every browser from its claim to its end", async () => {
    const pool = await mixed();
    await pool.claim(1, { node: nodeB });
    await check(pool);
    const held = await pool.lend();
    await pool.release(held);
    const kept = await pool.lend();
    await pool.connect(kept);
    await pool.release(kept);
    await check(pool);
    await pool.freed(kept.id);
    await pool.update({ headless: false }, { isNewLaunch: true });
    await bed().poolStore.recycle(pool.partition, { maxLeases: 1, request: request() });
    await check(pool);
    await bed().poolStore.flush(pool.partition, request());
    await check(pool);
    await pool.clear();
    await check(pool);
    await bed().poolStore.clearNode(pool.partition, {
      node: nodeB,
      why: "node_lost",
      which: "lost",
      request: request(),
    });
    await check(pool);
    expect(await idsOn(pool, nodeB)).toEqual([]);
  });

  test("counts all nodes, and reads all records, where these are more than one command gives", async () => {
    const nodes = Array.from({ length: 450 }, (_, place) => `node-${place}` as NodeId);
    const pool = await PoolBed.create(bed(), { size: 600 });
    for (const node of nodes) await pool.claim(1, { node });
    await pool.claim(150, { node: nodeA });
    const { ofNode } = await bed().poolStore.spread(pool.partition);
    expect(ofNode.size).toBe(451);
    expect(nodes.filter((node) => ofNode.get(node) !== 1)).toEqual([]);
    expect(ofNode.get(nodeA)).toBe(150);
    expect(new Set((await pool.browsers()).map(({ id }) => id)).size).toBe(600);
  });

  test("gives the browsers of a node, of which none stands for a node whose name begins alike", async () => {
    const pool = await PoolBed.create(bed(), { size: 4 });
    const one = await pool.launch(2, { node: "node" as NodeId });
    const other = await pool.launch(2, { node: "node-1" as NodeId });
    expect([await idsOn(pool, "node" as NodeId), await idsOn(pool, "node-1" as NodeId)]).toEqual([
      one.toSorted(),
      other.toSorted(),
    ]);
    expect(Object.fromEntries((await bed().poolStore.spread(pool.partition)).ofNode)).toEqual({
      node: 2,
      "node-1": 2,
    });
  });

  test("tells a node in which partitions it has browsers", async () => {
    const [pool, other] = [await mixed(), await PoolBed.create(bed(), { size: 1 })];
    await other.launch(1, { node: nodeB });
    const partitionsOf = (node: NodeId): Promise<readonly string[]> =>
      bed().poolStore.partitionsOf(node, [pool.partition, other.partition]);
    expect([
      await partitionsOf(nodeA),
      await partitionsOf(nodeB),
      await partitionsOf("node-c" as NodeId),
    ]).toEqual([[pool.partition], [pool.partition, other.partition], []]);
    await bed().poolStore.clearNode(pool.partition, {
      node: nodeB,
      why: "node_lost",
      which: "lost",
      request: request(),
    });
    expect(await partitionsOf(nodeB)).toEqual([other.partition]);
  });

  test("a node's browsers are read again when one of them has changed, come or gone, and only then", async () => {
    const pool = await mixed();
    const read = async (): Promise<readonly object[]> =>
      (await bed().poolStore.browsersOf(pool.partition, nodeA)).browsers;
    const first = await read();
    expect(await read()).toBe(first);
    await bed().poolStore.flush(pool.partition, request());
    const flushed = await read();
    expect(flushed).toMatchObject([{ state: "retiring" }, { state: "retiring" }]);
    const retiring = (await pool.browsers()).filter(({ node }) => node === nodeB);
    for (const browser of retiring) await bed().reports.gone(browser.id, claimOf(browser));
    expect(await read()).toBe(flushed);
    await pool.clear();
    expect(await read()).toEqual([]);
    await pool.claim(1, { node: nodeA });
    expect(await read()).toMatchObject([{ state: "launching" }]);
  });

  test("a node that reads its browsers is told whenever their pool was changed, deleted or restored", async () => {
    const pool = await mixed();
    const stamp = async (): Promise<string> =>
      (await bed().poolStore.browsersOf(pool.partition, nodeA)).poolStamp;
    const stamps = [await stamp()];
    const record = await bed().dataset.readPool(pool.partition, []);
    if (!record) throw new Error("there is no such pool");
    const { revision } = record.fields;
    await pool.lend();
    expect(await stamp()).toBe(stamps[0]);
    await pool.update({ timeout_seconds: 77 });
    stamps.push(await stamp());
    expect(await stamp()).toBe(stamps[1]);
    await forgetIndex(pool);
    await bed().poolStore.spread(pool.partition);
    stamps.push(await stamp());
    await bed().redis.hset(pool.key("pool"), "restoredAs", "1", "revision", "1");
    const fields = { ...record.fields, revision: String(Number(revision) + 1) };
    await bed().dataset.restorePool(pool.partition, { ...record, fields }, false);
    stamps.push(await stamp());
    await bed().poolStore.deletePool(pool.partition, { force: true, request: request() });
    stamps.push(await stamp());
    expect(new Set(stamps).size).toBe(5);
  });

  test("of a store that an earlier release has written is made by whoever reads it first", async () => {
    const pool = await mixed();
    await pool.update({ headless: false }, { isNewLaunch: true });
    const before = [await idsOn(pool, nodeA), await idsOn(pool, nodeB)];
    await forgetIndex(pool);
    expect([await idsOn(pool, nodeA), await idsOn(pool, nodeB)]).toEqual(before);
    await check(pool);
    await forgetIndex(pool);
    await bed().poolStore.reap(pool.partition);
    await check(pool);
    expect(await pool.counts()).toMatchObject({ stale: 5 });
    await forgetIndex(pool);
    expect(
      await bed().poolStore.clearNode(pool.partition, {
        node: nodeA,
        why: "node_lost",
        which: "lost",
        request: request(),
      }),
    ).toBe(2);
    await check(pool);
    await forgetIndex(pool);
    expect(
      await bed().poolStore.recycle(pool.partition, {
        maxLeases: null,
        drains: { node: nodeB, ms: 60_000 },
        request: request(),
      }),
    ).toBe(3);
    await check(pool);
  });

  test("is mended where an earlier release beside us has added, changed or removed a record", async () => {
    const pool = await mixed();
    const [first, second] = await pool.browsers();
    if (!first || !second) throw new Error("there are no browsers");
    const added = { ...first, id: `${pool.partition}addedbyother` };
    const move = (): Promise<unknown> =>
      bed().redis.xadd(
        pool.key("events"),
        "*",
        "browser",
        first.id,
        "lease",
        "",
        "from",
        "none",
        "to",
        "launching",
        "why",
        "fill",
      );
    await bed().redis.hset(pool.key("browsers"), added.id, JSON.stringify(added));
    await move();
    // Every fill that launches does this: a node that knows its browsers asks for their stamp alone.
    await bed().poolStore.spread(pool.partition);
    expect(await idsOn(pool, first.node)).toContain(added.id);
    await bed().redis.hdel(pool.key("browsers"), second.id);
    await bed().redis.hset(
      pool.key("browsers"),
      first.id,
      JSON.stringify({ ...first, state: "retiring", why: "flushed", claim: "earlier" }),
    );
    await move();
    await bed().poolStore.spread(pool.partition);
    expect(await idsOn(pool, second.node)).not.toContain(second.id);
    expect((await bed().poolStore.browsersOf(pool.partition, first.node)).browsers).toContainEqual(
      expect.objectContaining({ id: first.id, state: "retiring" }),
    );
    await check(pool);
  });

  test("leaves nothing of a pool that is deleted", async () => {
    const pool = await mixed();
    await bed().poolStore.deletePool(pool.partition, { force: true, request: request() });
    await pool.clear();
    expect(await pool.dump()).toEqual({});
    await bed().poolStore.beat(pool.partition, newControlId());
    expect(await bed().poolStore.browsersOf(pool.partition, nodeA)).toMatchObject({ browsers: [] });
  });

  test("leased browsers are listed by their age, the youngest first", async () => {
    const pool = await PoolBed.filled(bed(), { size: 3 });
    await pool.age(1000);
    for (let i = 0; i < 3; i += 1) await pool.lend();
    const all = await pool.browsers();
    const youngest = all
      .toSorted((one, other) => other.createdAt - one.createdAt || (one.id < other.id ? 1 : -1))
      .map(({ id, createdAt }) => ({ id, createdAt }));
    expect(await bed().poolStore.leased(pool.partition, 0, 2)).toEqual(youngest.slice(0, 2));
    expect(await bed().poolStore.leased(pool.partition, 2, 2)).toEqual(youngest.slice(2));
  });
});

onBoth(
  "the index of browsers by the leases they have served",
  ({ bed }) => {
    test("holds those that have served as many as one may, and no others", async () => {
      const pool = await PoolBed.filled(bed(), { size: 1 });
      const indexed = (): Promise<string[]> =>
        bed().redis.zrange(pool.key("leaseCountIndex"), "0", "-1", "WITHSCORES");
      await pool.release(await pool.lend());
      expect(await indexed()).toEqual([]);
      const held = await pool.lend();
      await pool.release(held);
      expect(await indexed()).toEqual([held.id, "2"]);
      await bed().poolStore.recycle(pool.partition, { maxLeases: 2, request: request() });
      expect(await indexed()).toEqual([]);
      expect(await pool.record(held.id)).toMatchObject({ replaceable: true });
    });
  },
  { maxLeases: 2 },
);
