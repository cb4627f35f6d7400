import { expect, test } from "vitest";
import type { BrowserId, NodeId } from "../../../../src/base/ids.js";
import { age } from "../../../support/store/age.js";
import { checkIndex } from "../../../support/store/index-check.js";
import { onBoth } from "../../../support/store/on-both.js";
import { controlB, nodeA, nodeB, PoolBed } from "../../../support/store/pool-bed.js";
import { costOf } from "../../../support/store/redis-cost.js";
import { request } from "../../../support/store/store-bed.js";

const hourMs = 3_600_000;
const indexParts = ["nodeIndex", "generationIndex", "ageIndex", "leaseCountIndex", "nodeStamps"] as const;

/** What would take Redis too long at once in a large pool; other commands come in between. */
onBoth("what goes in pieces", ({ bed }) => {
  const indexIsRight = async ({ partition }: PoolBed): Promise<void> =>
    checkIndex(bed(), partition, (await bed().poolStore.browsers(partition)).browsers);
  const reapAll = async (pool: PoolBed): Promise<number> => {
    for (let pieces = 1; ; pieces += 1) {
      if (!(await bed().poolStore.reap(pool.partition)).isMore) return pieces;
    }
  };
  /** What a failover leaves that a pool notices. */
  const beginEpoch = (pool: PoolBed): Promise<unknown> =>
    bed().redis.hset(pool.key("pool"), {
      replicationId: "0".repeat(40),
      run: "another",
      serverCheckedAt: "0",
    });
  const register = async (pool: PoolBed, node: NodeId): Promise<unknown> => {
    const present = (await pool.browsers()).filter((browser) => browser.node === node).map(({ id }) => id);
    return await bed().reports.register(pool.partition, { node, present, opened: [] });
  };

  test("an index that is made anew: browsers come, move and go meanwhile, and it is right", async () => {
    const pool = await PoolBed.filled(bed(), { size: 450 });
    const [crashes] = (await pool.browsers()).map(({ id }) => id);
    await bed().redis.del(...indexParts.map((part) => pool.key(part)));
    const read = bed().poolStore.browsersOf(pool.partition, nodeA);
    const progress = bed().redis.hget(pool.key("pool"), "indexing");
    const ended = bed().reports.end(crashes ?? ("" as BrowserId), "crashed", "SIGSEGV");
    const lent = pool.lend();
    expect(await progress).toMatch(/^\d+ \w+$/);
    expect([(await ended).kind, await pool.state((await lent).id)]).toEqual(["retiring", "leased"]);
    expect((await read).browsers).toHaveLength(450);
    expect(await bed().redis.hget(pool.key("pool"), "indexing")).toBeNull();
    await indexIsRight(pool);
  });

  test("an index, of which another process of Redis has made the first piece", async () => {
    const pool = await PoolBed.filled(bed(), { size: 450 });
    await bed().redis.del(...indexParts.map((part) => pool.key(part)));
    await bed().poolStore.reap(pool.partition);
    const [cursor] = (await bed().redis.hget(pool.key("pool"), "indexing"))?.split(" ") ?? [];
    expect(Number(cursor)).toBeGreaterThan(0);
    // It has another order of its records, so that its cursor says nothing here.
    await bed().redis.del(...indexParts.map((part) => pool.key(part)));
    await bed().redis.hset(pool.key("pool"), "indexing", `${cursor} another`);
    await reapAll(pool);
    await indexIsRight(pool);
  });

  test("records whose instants lie ahead, since the clock went back", async () => {
    const pool = await PoolBed.filled(bed(), { size: 120 });
    await age(bed().redis, "remuda:*", -hourMs);
    expect(await reapAll(pool)).toBeGreaterThan(2);
    const now = await bed().poolStore.now();
    expect((await pool.browsers()).filter(({ createdAt }) => createdAt > now)).toEqual([]);
    expect(await bed().redis.hget(pool.key("pool"), "boundTo")).toBeNull();
    await indexIsRight(pool);
  });

  test("callers in line whose control is gone: one tick finds them all, and whoever waits elsewhere stays", async () => {
    const pool = await PoolBed.create(bed(), { size: 1 });
    for (let count = 0; count < 600; count += 1) await pool.ask({ control: controlB });
    const { waiter } = await pool.ask();
    await pool.age(31_000);
    await pool.beat();
    expect(await reapAll(pool)).toBeGreaterThan(1);
    expect(await bed().redis.zrange(pool.key("waitQueue"), "0", "-1")).toEqual([waiter.id]);
    expect(await bed().redis.hget(pool.key("pool"), "reapedWaiters")).toBeNull();
  });

  test("the clearing of a lost node, of which nothing is lent between two pieces", async () => {
    const pool = await PoolBed.filled(bed(), { size: 50 });
    await bed().poolStore.silenceNode(pool.partition, nodeA, 60_000);
    const lost = { node: nodeA, why: "node_lost", which: "lost", request: request() } as const;
    const cleared = bed().poolStore.clearNode(pool.partition, lost);
    const asked = [pool.ask({ mayWait: false }), pool.ask({ mayWait: false })];
    expect((await Promise.all(asked)).map(({ reply }) => reply.kind)).toEqual(["none", "none"]);
    expect(await cleared).toBe(50);
    await pool.launch(1);
    expect((await pool.ask({ mayWait: false })).reply.kind).toBe("granted");
  });

  test("the line of idle browsers in another epoch, which is passed over at once, whatever stands in it", async () => {
    const pool = await PoolBed.create(bed(), { size: 400 });
    await pool.launch(200, { recycleAt: 1, node: nodeB });
    await bed().poolStore.recycle(pool.partition, { maxLeases: null, request: request() });
    await pool.update({ stealth: true }, { isNewLaunch: true });
    await pool.launch(200);
    await beginEpoch(pool);
    const { reads } = await costOf(bed().redis, async () => {
      for (let count = 0; count < 3; count += 1)
        expect((await pool.ask({ mayWait: false })).reply.kind).toBe("none");
    });
    expect(reads).toBeLessThan(30);
    // Those of this node are of an older configuration, and some are to be replaced.
    await register(pool, nodeB);
    expect((await pool.lend()).browser).toMatchObject({ node: nodeB, generation: 1 });
    await register(pool, nodeA);
    expect((await pool.lend()).browser).toMatchObject({ node: nodeA, generation: 2 });
    await indexIsRight(pool);
  });
});
