import { describe, expect, test } from "vitest";
import { onBoth } from "../../../support/store/on-both.js";
import { type Held, nodeA, nodeB, PoolBed } from "../../../support/store/pool-bed.js";
import { registers } from "../../../support/store/spread-pool.js";
import { request } from "../../../support/store/store-bed.js";

onBoth("closed nodes", ({ bed }) => {
  const drain = (pool: PoolBed, ms = 600_000): Promise<number> =>
    bed().poolStore.recycle(pool.partition, {
      maxLeases: null,
      drains: { node: nodeA, ms },
      request: request(),
    });
  const silence = (pool: PoolBed, ms: number): Promise<void> =>
    bed().poolStore.silenceNode(pool.partition, nodeA, ms);
  /** One browser on each of two nodes, in a pool of two; that of the second is lent. */
  const spread = async (): Promise<{ pool: PoolBed; elsewhere: Held }> => {
    const pool = await PoolBed.create(bed(), { size: 2 });
    await pool.launch(1, { node: nodeB });
    const elsewhere = await pool.lend();
    await pool.launch(1);
    return { pool, elsewhere };
  };

  describe("a node that drains", () => {
    test("lends nothing while browsers exist elsewhere: callers wait, and are served by those", async () => {
      const { pool, elsewhere } = await spread();
      await drain(pool);
      const { reply } = await pool.ask();
      expect(reply.kind).toBe("waiting");
      await pool.release(elsewhere);
      expect(await pool.state(elsewhere.id)).toBe("leased");
      expect(await pool.counts()).toMatchObject({ leased: 1, waiting: 0 });
    });

    test("hands nothing that becomes idle there to a waiter: it goes, and its replacement is paid for", async () => {
      const pool = await PoolBed.filled(bed(), { size: 2 });
      const [first, second] = [await pool.lend(), await pool.lend()];
      await pool.ask();
      await drain(pool);
      await pool.launch(1, { node: nodeB });
      expect(await pool.counts()).toMatchObject({ waiting: 0 });
      await pool.ask();
      for (const held of [first, second]) await pool.release(held);
      expect(await pool.counts()).toMatchObject({ idle: 0, leased: 1, waiting: 1 });
      expect(await pool.record(first.id)).toMatchObject({
        state: "retiring",
        why: expect.stringMatching(/drained|recycled/),
      });
      expect(await pool.launch(2, { node: nodeB })).toHaveLength(1);
      expect(await pool.counts()).toMatchObject({ leased: 2, waiting: 0 });
    });

    test("a launch that ends there is of no use to anyone any more", async () => {
      const pool = await PoolBed.create(bed(), { size: 2 });
      await pool.launch(1, { node: nodeB });
      const [late] = await pool.claim(1);
      await drain(pool);
      await bed().reports.launched(late?.id ?? ("" as never), late?.claim ?? ("" as never), "{}");
      expect(await pool.record(late?.id ?? ("" as never))).toMatchObject({
        state: "retiring",
        why: "drained",
      });
      expect(await pool.claim(1, { node: nodeB })).toMatchObject([{ paid: "credit" }]);
    });

    test("lends where nothing else exists, as long as a lease can live its time", async () => {
      const pool = await PoolBed.filled(bed(), { size: 2, timeout_seconds: 60 });
      await drain(pool, 70_000);
      expect((await pool.ask()).reply.kind).toBe("granted");
      await pool.age(20_000);
      expect((await pool.ask()).reply.kind).toBe("waiting");
    });

    test("of which the pool has nothing is not noted", async () => {
      const pool = await PoolBed.create(bed(), { size: 1 });
      await pool.launch(1, { node: nodeB });
      const before = await pool.dump();
      expect(await drain(pool)).toBe(0);
      expect(await pool.dump()).toEqual(before);
    });

    test("is noted where the pool has but a launch there", async () => {
      const pool = await PoolBed.create(bed(), { size: 1 });
      await pool.claim(1);
      await drain(pool);
      expect(JSON.parse((await bed().redis.hget(pool.key("pool"), "closed")) ?? "{}")).toHaveProperty(nodeA);
    });

    test("is open again a minute after its drain should have ended: a failover has brought the mark back", async () => {
      const pool = await PoolBed.filled(bed(), { size: 1 });
      await drain(pool, 70_000);
      await pool.release(await pool.lend(), { reuse: false });
      await pool.clear();
      await pool.age(100_000);
      await bed().poolStore.reap(pool.partition);
      await pool.launch(1);
      expect(await pool.counts()).toMatchObject({ idle: 0 });
      await pool.age(35_000);
      await bed().poolStore.reap(pool.partition);
      await pool.launch(1);
      expect((await pool.ask()).reply.kind).toBe("granted");
    });

    test("drains no more: it is lent again, who waits is served, and its silence stays", async () => {
      const pool = await PoolBed.filled(bed(), { size: 2, timeout_seconds: 60 });
      await pool.lend();
      await drain(pool, 1000);
      expect((await pool.ask()).reply.kind).toBe("waiting");
      await silence(pool, 15_000);
      await bed().poolStore.reopenNode(pool.partition, nodeA);
      expect(await pool.counts()).toMatchObject({ waiting: 1 });
      await silence(pool, 0);
      expect(await pool.counts()).toMatchObject({ leased: 2, waiting: 0 });
    });

    test("once its drain is called off serves at once whoever waits", async () => {
      const pool = await PoolBed.filled(bed(), { size: 1, timeout_seconds: 60 });
      await drain(pool, 1000);
      expect((await pool.ask()).reply.kind).toBe("waiting");
      await bed().poolStore.reopenNode(pool.partition, nodeA);
      expect(await pool.counts()).toMatchObject({ leased: 1, waiting: 0 });
    });

    test("lends again when it has started anew", async () => {
      const pool = await PoolBed.filled(bed(), { size: 1 });
      await drain(pool, 1000);
      await bed().poolStore.clearNode(pool.partition, {
        node: nodeA,
        why: "drained",
        which: "lost",
        request: request(),
      });
      await pool.launch(1);
      expect((await pool.ask()).reply.kind).toBe("granted");
    });
  });

  describe("a node that does not answer", () => {
    test("lends nothing, though nothing else exists, until it answers again: then waiters are served", async () => {
      const pool = await PoolBed.filled(bed(), { size: 1 });
      await silence(pool, 15_000);
      expect((await pool.ask()).reply.kind).toBe("waiting");
      await silence(pool, 15_000);
      await silence(pool, 0);
      expect(await pool.counts()).toMatchObject({ leased: 1, waiting: 0 });
    });

    test("lends again after a while where nobody says that it answers", async () => {
      const pool = await PoolBed.filled(bed(), { size: 1 });
      await silence(pool, 15_000);
      await pool.age(16_000);
      expect((await pool.ask()).reply.kind).toBe("granted");
    });

    test("others are lent first, and what becomes idle there meanwhile stands last in line", async () => {
      const pool = await PoolBed.filled(bed(), { size: 2 });
      const held = await pool.lend();
      await silence(pool, 15_000);
      await pool.release(held);
      await pool.update({ size: 3 });
      await pool.launch(1, { node: nodeB });
      expect(await pool.record((await pool.lend()).id)).toMatchObject({ node: nodeB });
      expect((await pool.ask({ mayWait: false })).reply.kind).toBe("none");
      expect(await pool.counts()).toMatchObject({ idle: 2 });
    });

    test("what stands last there is not replaceable: another that is goes once its replacement has come", async () => {
      const pool = await PoolBed.create(bed(), { size: 2 });
      await pool.launch(1, { node: nodeB, recycleAt: 1 });
      const old = await pool.lend();
      const [silent = old.id] = await pool.launch(1);
      await bed().poolStore.recycle(pool.partition, { maxLeases: null, request: request() });
      await silence(pool, 15_000);
      expect(await pool.launch(1, { node: nodeB })).toHaveLength(1);
      expect(await pool.state(silent)).toBe("idle");
      await pool.release(old);
      expect(await pool.record(old.id)).toMatchObject({ state: "retiring", why: "recycled" });
      expect(await pool.state(silent)).toBe("idle");
    });

    test("stands in line again a tick after that, before what becomes idle later elsewhere", async () => {
      const pool = await PoolBed.create(bed(), { size: 3 });
      const [silent] = await pool.launch(1);
      await pool.launch(1, { node: nodeB });
      await silence(pool, 15_000);
      await pool.age(16_000);
      await pool.beat();
      await bed().poolStore.reap(pool.partition);
      await pool.launch(1, { node: nodeB });
      const lent = [await pool.lend(), await pool.lend()];
      expect(lent.map(({ id }) => id)).toContain(silent);
    });

    test("stays last where it drains besides", async () => {
      const pool = await PoolBed.filled(bed(), { size: 1 });
      await drain(pool);
      await silence(pool, 15_000);
      await pool.age(16_000);
      await bed().poolStore.reap(pool.partition);
      const [elsewhere] = await pool.launch(1, { node: nodeB });
      expect((await pool.lend()).id).toBe(elsewhere);
      expect((await pool.ask()).reply.kind).toBe("waiting");
    });

    test("hides nobody who may be lent behind it: another that drains, where nothing else exists", async () => {
      const pool = await PoolBed.filled(bed(), { size: 1 });
      await pool.update({ size: 2 });
      const [other] = await pool.launch(1, { node: nodeB });
      for (const node of [nodeA, nodeB])
        await bed().poolStore.recycle(pool.partition, {
          maxLeases: null,
          drains: { node, ms: 600_000 },
          request: request(),
        });
      await silence(pool, 15_000);
      await drain(pool);
      await bed().poolStore.recycle(pool.partition, {
        maxLeases: null,
        drains: { node: nodeB, ms: 600_000 },
        request: request(),
      });
      expect((await pool.lend()).id).toBe(other);
      expect((await pool.ask()).reply.kind).toBe("waiting");
    });

    test("one there that becomes replaceable stays last in line", async () => {
      const pool = await PoolBed.create(bed(), { size: 8 });
      const [there] = await pool.launch(1);
      const [elsewhere] = await pool.launch(1, { node: nodeB });
      const held = [await pool.lend(), await pool.lend()];
      await pool.release(held.find(({ id }) => id === there) ?? ("" as never));
      await pool.age(1000);
      await pool.release(held.find(({ id }) => id === elsewhere) ?? ("" as never));
      await silence(pool, 15_000);
      expect(await bed().poolStore.recycle(pool.partition, { maxLeases: 1, request: request() })).toBe(2);
      expect((await pool.ask()).reply.kind).toBe("granted");
      expect(await Promise.all([there, elsewhere].map((id) => pool.state(id ?? ("" as never))))).toEqual([
        "idle",
        "leased",
      ]);
    });

    test("one of which the pool has nothing changes nothing", async () => {
      const pool = await PoolBed.create(bed(), { size: 1 });
      const before = await pool.dump();
      await silence(pool, 15_000);
      expect(await pool.dump()).toEqual(before);
    });
  });

  describe("another epoch of Redis", () => {
    test("closes the nodes of a pool that was changed, and nothing that is no node", async () => {
      const { pool } = await spread();
      expect(await pool.update({ timeout_seconds: 77 })).toBe("updated");
      const key = pool.key("pool");
      await bed().redis.hset(key, { replicationId: "another", run: "another", serverCheckedAt: 0 });
      expect((await pool.ask()).reply.kind).toBe("waiting");
      const closed = JSON.parse((await bed().redis.hget(key, "closed")) ?? "{}") as object;
      expect(Object.keys(closed).toSorted()).toEqual([nodeA, nodeB]);
      // Where nothing is closed a pool is lent of by the scripts that ask least.
      for (const node of [nodeA, nodeB]) await registers(pool, node);
      expect(await bed().redis.hexists(key, "closed")).toBe(0);
    });
  });
});
