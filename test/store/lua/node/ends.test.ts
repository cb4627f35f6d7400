import { describe, expect, test } from "vitest";
import { newBrowserId, newLeaseId, newPoolId, onDemandPartition } from "../../../../src/base/ids.js";
import { openMessageListener } from "../../../support/egress/listener.js";
import { onBoth } from "../../../support/store/on-both.js";
import { controlA, nodeA, nodeB, PoolBed } from "../../../support/store/pool-bed.js";
import { candidateOn, claimOf, poolSpec, request, writeOf } from "../../../support/store/store-bed.js";

onBoth("ends", ({ bed, server }) => {
  const clearNode = (pool: PoolBed, which: "idle" | "all" | "lost", node = nodeA): Promise<number> =>
    bed().poolStore.clearNode(pool.partition, {
      node,
      why: which === "lost" ? "node_lost" : "drained",
      which,
      request: request(),
    });

  describe("a browser that is over", () => {
    test("takes its lease with it, once", async () => {
      const pool = await PoolBed.filled(bed(), { size: 1 });
      const held = await pool.lend();
      const first = await bed().reports.end(held.id, "crashed", "SIGSEGV");
      expect(first).toMatchObject({ kind: "retiring" });
      expect(await bed().reports.end(held.id, "unhealthy", "")).toEqual({ ...first, kind: "already" });
      expect(bed().ended).toHaveLength(1);
      expect(await pool.record(held.id)).toMatchObject({
        state: "retiring",
        why: "crashed",
        lastError: "SIGSEGV",
      });
    });

    test("is gone when its node says so under the present claim; its room is given back", async () => {
      const pool = await PoolBed.filled(bed(), { size: 1 });
      const held = await pool.lend();
      await bed().redis.hset(`remuda:{node-${nodeA}}:room`, held.id, "1 1");
      const ended = await bed().reports.end(held.id, "crashed", "");
      await pool.age(11_000);
      await bed().poolStore.reap(pool.partition);
      if (ended.kind === "unknown") throw new Error("it was known");
      await bed().reports.gone(held.id, ended.claim);
      expect(await pool.state(held.id)).toBe("retiring");
      await bed().reports.gone(held.id, claimOf(await pool.record(held.id)));
      await bed().effects.idle();
      expect(await pool.state(held.id)).toBe("gone");
      expect(await bed().nodes.occupancy(nodeA)).toEqual({ browsers: 0, bytes: 0 });
      expect(await bed().reports.end(held.id, "crashed", "")).toEqual({ kind: "unknown" });
    });

    test("is given up when its node does not answer for two minutes: a node ends what it has no record of", async () => {
      const pool = await PoolBed.filled(bed(), { size: 1 });
      await bed().poolStore.flush(pool.partition, request());
      for (let i = 0; i < 11; i += 1) {
        await pool.age(11_000);
        await bed().poolStore.reap(pool.partition);
      }
      expect(await pool.browsers()).toMatchObject([{ state: "retiring" }]);
      await pool.age(11_000);
      await bed().poolStore.reap(pool.partition);
      expect(await pool.browsers()).toEqual([]);
    });

    test("is asked for again by the tick as long as nobody answers", async () => {
      const pool = await PoolBed.filled(bed(), { size: 1 });
      await bed().poolStore.flush(pool.partition, request());
      for (let i = 1; i < 4; i += 1) {
        expect(bed().jobs).toHaveLength(i);
        await pool.age(11_000);
        await bed().poolStore.reap(pool.partition);
      }
    });
  });

  describe("clear-node", () => {
    test("idle: a draining node's idle browsers go, rebuilt on credit", async () => {
      const pool = await PoolBed.filled(bed(), { size: 2 });
      const held = await pool.lend();
      expect(await clearNode(pool, "idle")).toBe(2);
      expect(await pool.counts()).toMatchObject({ idle: 0, leased: 1 });
      expect(await pool.field("credit")).toBe(1);
      expect(await pool.state(held.id)).toBe("leased");
    });

    test("all: leases end, the node retires them", async () => {
      const pool = await PoolBed.filled(bed(), { size: 2 });
      await pool.lend();
      expect(await clearNode(pool, "all")).toBe(2);
      expect(bed().jobs.map((job) => job.kind)).toEqual(["retire", "retire"]);
      await pool.clear();
      expect(await clearNode(pool, "all")).toBe(0);
    });

    test("lost: records go at once, no job is left for a node that is not there, other nodes are left alone", async () => {
      const pool = await PoolBed.create(bed(), { size: 4 });
      await pool.launch(2);
      await pool.launch(1, { node: nodeB });
      await pool.claim(1);
      const held = await pool.lend();
      expect(await clearNode(pool, "lost")).toBe(3);
      expect(bed().jobs).toEqual([]);
      expect((await pool.browsers()).map((browser) => browser.node)).toEqual([nodeB]);
      expect(bed().ended).toMatchObject([{ lease: held.lease, why: "node_lost" }]);
      expect(await bed().projects.findTombstone(held.id)).toMatchObject({ reason: "node_lost" });
      expect(await clearNode(pool, "lost")).toBe(0);
    });

    test("a repeat under the same request id changes nothing", async () => {
      const pool = await PoolBed.filled(bed(), { size: 2 });
      const ask = { node: nodeA, why: "node_lost" as const, which: "lost" as const, request: request() };
      await bed().poolStore.clearNode(pool.partition, ask);
      await pool.launch(2);
      const before = await pool.dump();
      expect(await bed().poolStore.clearNode(pool.partition, ask)).toBe(2);
      expect(await pool.dump()).toEqual(before);
    });
  });

  describe("delete-pool", () => {
    const remove = (pool: PoolBed, force: boolean): Promise<string> =>
      bed().poolStore.deletePool(pool.partition, { force, request: request() });

    test("goes also where the rate at which it fills is the largest number that there is", async () => {
      const pool = await PoolBed.create(bed(), { size: 2, fill_rate_per_minute: Number.MAX_VALUE });
      await pool.claim(2);
      expect(await remove(pool, true)).toBe("deleted");
    });

    test("while leased, without force: refused, and nothing changes", async () => {
      const pool = await PoolBed.filled(bed(), { size: 2 });
      await pool.lend();
      const before = await pool.dump();
      expect(await remove(pool, false)).toBe("leased");
      expect(await pool.dump()).toEqual(before);
    });

    test("with force ends leases and tells waiters, names given back", async () => {
      const pool = await PoolBed.filled(bed(), { size: 1 });
      const held = await pool.lend({ name: "held" });
      const { waiter } = await pool.ask({ name: "waiting" });
      await bed().projects.reserveName({
        kind: "session",
        name: "held",
        owner: held.lease,
        partition: pool.partition,
      });
      await bed().projects.reserveName({
        kind: "session",
        name: "waiting",
        owner: waiter.lease,
        partition: pool.partition,
      });
      const listener = await openMessageListener(server());
      expect(await remove(pool, true)).toBe("deleted");
      const heard = await listener.heard();
      listener.close();
      expect(heard).toContainEqual({
        channel: `remuda:control:${controlA}`,
        message: { kind: "deleted", waiter: waiter.id, connection: waiter.connection },
      });
      expect(heard).toContainEqual({
        channel: "remuda:node:node-a",
        message: { kind: "cut", browser: held.id, lease: held.lease, why: "pool_deleted" },
      });
      expect(await bed().projects.findName("session", "held")).toBeUndefined();
      expect(await bed().projects.findName("session", "waiting")).toBeUndefined();
      expect(await bed().poolStore.findPool(pool.partition)).toBeUndefined();
    });

    test("leaves no key when the last browser is gone, whatever was going on, and none comes back", async () => {
      const pool = await PoolBed.create(bed(), { size: 6 });
      await pool.launch(4, { recycleAt: 1 });
      await pool.claim(1);
      await bed().poolStore.recycle(pool.partition, { maxLeases: null, request: request() });
      const [used, keyed] = [await pool.lend(), await pool.lend({ key: "k" })];
      await pool.connect(used);
      await pool.release(used);
      await pool.release(keyed, { reuse: false });
      await pool.lend({ key: "other" });
      await pool.ask({ key: "third" });
      await remove(pool, true);
      await pool.clear();
      await pool.beat();
      await bed().poolStore.reap(pool.partition);
      await bed().poolStore.wanted(pool.partition, 5);
      await pool.claim(2);
      await bed().poolStore.recycle(pool.partition, { maxLeases: 1, request: request() });
      const left = Object.keys(await pool.dump()).map((key) => key.replace(/.*\}:/, "").replace(/:.*/, ""));
      expect(new Set(left)).toEqual(new Set(["idempotency"]));
    });

    test("a browser that was under way cannot come back to it", async () => {
      const pool = await PoolBed.create(bed(), { size: 1 });
      const [browser] = await pool.claim(1);
      await remove(pool, false);
      if (!browser) throw new Error("nothing was claimed");
      expect(await bed().reports.launched(browser.id, claimOf(browser), "{}")).toBe("stale");
      await pool.clear();
      expect(await pool.dump()).toEqual({});
    });

    test("is missing the second time; a repeat under its request id answers the same", async () => {
      const pool = await PoolBed.create(bed());
      const id = request();
      expect(await bed().poolStore.deletePool(pool.partition, { force: false, request: id })).toBe("deleted");
      expect(await bed().poolStore.deletePool(pool.partition, { force: false, request: id })).toBe("deleted");
      expect(await remove(pool, false)).toBe("missing");
      expect(await bed().poolStore.flush(pool.partition, request())).toBe("missing");
    });
  });

  test("an on-demand session: claimed, granted to its caller, ended, nothing left", async () => {
    const id = request();
    const waiter = { id, lease: newLeaseId(), control: controlA, connection: id, timeoutSeconds: 60 };
    const created = await bed().poolStore.createSession(onDemandPartition, {
      candidate: candidateOn(onDemandPartition, nodeA),
      waiter,
      template: writeOf(poolSpec()).template,
    });
    if (created.kind !== "claimed") throw new Error(created.kind);
    const { browser } = created;
    const listener = await openMessageListener(server());
    await bed().reports.launched(browser.id, claimOf(browser), "{}");
    expect(await listener.heard()).toContainEqual(
      expect.objectContaining({ channel: `remuda:control:${controlA}` }),
    );
    listener.close();
    expect((await bed().poolStore.findBrowser(browser.id))?.browser).toMatchObject({
      state: "leased",
      lease: { id: waiter.lease, timeoutSeconds: 60 },
    });
    expect(
      await bed().poolStore.release(onDemandPartition, {
        browser: browser.id,
        reuse: true,
        why: "released",
        isRetry: false,
        request: request(),
      }),
    ).toEqual({ kind: "released" });
    const found = await bed().poolStore.findBrowser(browser.id);
    if (!found) throw new Error("it is gone");
    expect(found.browser.state).toBe("retiring");
    await bed().reports.gone(browser.id, claimOf(found.browser));
    expect((await bed().poolStore.browsers(onDemandPartition)).browsers).toEqual([]);
    expect(await bed().poolStore.findTemplate(onDemandPartition, browser.templateKey)).toBeUndefined();
  });

  test("reports of browsers that never were are stale", async () => {
    const pool = await PoolBed.create(bed());
    const id = newBrowserId(pool.partition);
    expect(await bed().reports.launched(id, "1" as never, "{}")).toBe("stale");
    expect(await bed().reports.freed(id, "1" as never)).toBe("stale");
    expect(await bed().reports.end(id, "crashed", "")).toEqual({ kind: "unknown" });
    expect(await bed().poolStore.reap(newPoolId().slice(0, 12) as never)).toEqual({
      launch: [],
      isOpen: false,
      isMore: false,
    });
  });
});
