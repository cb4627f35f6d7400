import { describe, expect, test } from "vitest";
import { newLeaseId } from "../../../../src/base/ids.js";
import { findLeaseEnd } from "../../../../src/daemon/gateway.js";
import { onBoth } from "../../../support/store/on-both.js";
import { PoolBed } from "../../../support/store/pool-bed.js";
import { claimOf, request } from "../../../support/store/store-bed.js";

onBoth("a lease", ({ bed }) => {
  describe("connect", () => {
    test("counts registrations and makes the grant final", async () => {
      const pool = await PoolBed.filled(bed(), { size: 1 });
      const held = await pool.lend();
      expect(await pool.connect(held)).toMatchObject({
        kind: "connected",
        browser: { lease: { registrations: 1 } },
      });
      expect(await pool.connect(held)).toMatchObject({
        kind: "connected",
        browser: { lease: { registrations: 2 } },
      });
      expect(await bed().redis.exists(pool.key("provisional"))).toBe(0);
    });

    test("is refused with the reason once the lease is over", async () => {
      const pool = await PoolBed.filled(bed(), { size: 2 });
      const [crashed, released] = [await pool.lend(), await pool.lend()];
      await bed().reports.end(crashed.id, "crashed", "SIGSEGV");
      await pool.release(released);
      expect(await pool.connect(crashed)).toEqual({ kind: "over", why: "crashed" });
      expect(await pool.connect(released)).toEqual({ kind: "over", why: "released" });
      await pool.clear();
      expect(await pool.connect(crashed)).toEqual({ kind: "over", why: "gone" });
    });
  });

  test("why a lease is over is told from the moment it is, whatever becomes of its browser", async () => {
    const pool = await PoolBed.filled(bed(), { size: 2 });
    const find = findLeaseEnd({ ...bed(), projects: bed().allProjects });
    const [crashed, first] = [await pool.lend(), await pool.lend()];
    await bed().reports.end(crashed.id, "crashed", "SIGSEGV");
    expect(await bed().poolStore.findLeaseEnd(crashed.id, crashed.lease)).toBe("crashed");
    await pool.release(first);
    const second = await pool.lend();
    expect([await find(first.id, first.lease), await find(second.id, second.lease)]).toEqual([
      "released",
      undefined,
    ]);
    await pool.release(second);
    await bed().poolStore.flush(pool.partition, request());
    expect([await find(first.id, first.lease), await find(second.id, second.lease)]).toEqual([
      "released",
      "released",
    ]);
    await pool.clear();
    expect([await find(crashed.id, crashed.lease), await find(crashed.id, newLeaseId())]).toEqual([
      "crashed",
      "released",
    ]);
  });

  test("a tombstone that was not moved yet tells it", async () => {
    const pool = await PoolBed.filled(bed(), { size: 1 });
    const held = await pool.lend();
    const { projects } = bed();
    const move = projects.moveTombstones.bind(projects);
    projects.moveTombstones = async () => {};
    await pool.release(held, { reuse: false, why: "deleted" });
    await pool.clear();
    projects.moveTombstones = move;
    expect([
      await projects.findTombstone(held.id),
      await findLeaseEnd({ ...bed(), projects: bed().allProjects })(held.id, held.lease),
    ]).toEqual([undefined, "deleted"]);
  });

  describe("expire", () => {
    const expire = async (
      pool: PoolBed,
      held: { id: never; lease: never } | Awaited<ReturnType<PoolBed["lend"]>>,
      registrations: number,
    ): Promise<boolean> =>
      await pool.bed.reports.expire({ browser: held.id, lease: held.lease, registrations });

    test("ends a lease that was inactive for its time: the browser is destroyed and replaced at the fill rate", async () => {
      const pool = await PoolBed.filled(bed(), { size: 1, timeout_seconds: 60 });
      const held = await pool.lend();
      await pool.age(60_000);
      expect(await expire(pool, held, 0)).toBe(true);
      expect(await pool.record(held.id)).toMatchObject({ state: "retiring", why: "expired" });
      expect(await pool.field("credit")).toBe(0);
      expect(bed().ended).toMatchObject([{ lease: held.lease, why: "expired" }]);
    });

    test("never early, whatever the node says", async () => {
      const pool = await PoolBed.filled(bed(), { size: 1, timeout_seconds: 60 });
      const held = await pool.lend();
      await pool.age(50_000);
      expect(await expire(pool, held, 0)).toBe(false);
      expect(await pool.state(held.id)).toBe("leased");
    });

    test("not where a client was registered since the node looked", async () => {
      const pool = await PoolBed.filled(bed(), { size: 1, timeout_seconds: 60 });
      const held = await pool.lend();
      await pool.age(60_000);
      await pool.connect(held);
      expect(await expire(pool, held, 0)).toBe(false);
      await pool.age(60_000);
      expect(await expire(pool, held, 0)).toBe(false);
      expect(await expire(pool, held, 1)).toBe(true);
    });

    test("not where its browser was asked for something since; a change of its record alone is nothing", async () => {
      const pool = await PoolBed.filled(bed(), { size: 1, timeout_seconds: 60 });
      const { id: browser, lease, ...held } = await pool.lend();
      const change = (touched: boolean) =>
        pool.bed.poolStore.touch(pool.partition, {
          browser,
          lease,
          change: { set: {}, clear: [], touched },
          request: request(),
        });
      await pool.age(60_000);
      await change(true);
      expect(await expire(pool, { id: browser, lease, ...held }, 0)).toBe(false);
      await pool.age(60_000);
      await change(false);
      expect(await expire(pool, { id: browser, lease, ...held }, 0)).toBe(true);
    });

    test("not another lease of the same browser", async () => {
      const pool = await PoolBed.filled(bed(), { size: 1, timeout_seconds: 60 });
      const old = await pool.lend();
      await pool.release(old);
      const held = await pool.lend();
      await pool.age(60_000);
      expect(await expire(pool, old, 0)).toBe(false);
      expect(await pool.state(held.id)).toBe("leased");
    });
  });

  describe("fence", () => {
    test("a confirmation under another claim frees nothing", async () => {
      const pool = await PoolBed.filled(bed(), { size: 1 });
      const held = await pool.lend();
      await pool.connect(held);
      await pool.release(held);
      expect(await bed().reports.freed(held.id, "0" as never)).toBe("stale");
      expect(await pool.state(held.id)).toBe("resetting");
      expect(await pool.freed(held.id)).toBe("freed");
      expect(await bed().reports.freed(held.id, "0" as never)).toBe("stale");
    });

    test("the tick asks again under a new claim; past that the browser is retired", async () => {
      const pool = await PoolBed.filled(bed(), { size: 1 });
      const held = await pool.lend();
      await pool.connect(held);
      await pool.release(held);
      const first = claimOf(await pool.record(held.id));
      await pool.age(4000);
      await bed().poolStore.reap(pool.partition);
      const second = claimOf(await pool.record(held.id));
      expect(second).not.toBe(first);
      expect(await bed().reports.freed(held.id, first)).toBe("stale");
      await pool.age(11_000);
      await bed().poolStore.reap(pool.partition);
      expect(await pool.record(held.id)).toMatchObject({ state: "retiring", why: "reset_failed" });
    });

    test("each reset has its second attempt, also of a browser that needed one before", async () => {
      const pool = await PoolBed.filled(bed(), { size: 1 });
      for (let round = 0; round < 2; round += 1) {
        const held = await pool.lend();
        await pool.connect(held);
        await pool.release(held);
        await pool.age(4000);
        await bed().poolStore.reap(pool.partition);
        expect(await pool.state(held.id)).toBe("resetting");
        await pool.freed(held.id);
      }
    });

    test("an older network generation is retired instead of becoming idle, its replacement on credit", async () => {
      const pool = await PoolBed.filled(bed(), { size: 1 });
      const held = await pool.lend();
      await pool.connect(held);
      await pool.release(held);
      await pool.update({ network: { allowed_hosts: ["example.com"] } }, { isNewNetwork: true });
      await pool.freed(held.id);
      expect(await pool.record(held.id)).toMatchObject({ state: "retiring", why: "stale_network" });
      expect(await pool.field("credit")).toBe(1);
    });
  });

  describe("touch", () => {
    test("changes what is said of the lease and gives the old name back", async () => {
      const pool = await PoolBed.filled(bed(), { size: 1 });
      const held = await pool.lend({ name: "old" });
      await bed().projects.reserveName({
        kind: "session",
        name: "old",
        owner: held.lease,
        partition: pool.partition,
      });
      const id = request();
      const ask = {
        browser: held.id,
        lease: held.lease,
        change: { set: { name: "new" }, clear: ["tags"], touched: false },
        request: id,
      };
      const touched = await bed().poolStore.touch(pool.partition, ask);
      expect(touched).toMatchObject({ kind: "touched", browser: { lease: { name: "new", id: held.lease } } });
      expect(await bed().projects.findName("session", "old")).toBeUndefined();
      const before = await pool.dump();
      expect(await bed().poolStore.touch(pool.partition, ask)).toEqual(touched);
      expect(await pool.dump()).toEqual(before);
    });

    test("refuses another lease and a browser that is not leased, changing nothing", async () => {
      const pool = await PoolBed.filled(bed(), { size: 1 });
      const old = await pool.lend();
      await pool.release(old);
      const change = { set: { name: "new" }, clear: [], touched: true };
      const before = await pool.dump();
      expect(
        await bed().poolStore.touch(pool.partition, { browser: old.id, change, request: request() }),
      ).toEqual({ kind: "unknown" });
      expect(await pool.dump()).toEqual(before);
      await pool.lend();
      expect(
        await bed().poolStore.touch(pool.partition, {
          browser: old.id,
          lease: old.lease,
          change,
          request: request(),
        }),
      ).toEqual({ kind: "superseded" });
    });
  });

  test("a session that is over leaves a tombstone, one that returns to its pool none", async () => {
    const pool = await PoolBed.filled(bed(), { size: 2, name: "pool" });
    const [kept, over] = [
      await pool.lend({ name: "kept" }),
      await pool.lend({ name: "over", tags: '{"a":"b"}' }),
    ];
    await pool.release(kept);
    await pool.release(over, { reuse: false });
    expect(await bed().projects.findTombstone(over.id)).toMatchObject({
      id: over.id,
      lease: over.lease,
      reason: "released",
      name: "over",
      tags: '{"a":"b"}',
      timeoutSeconds: 60,
      memory: "1GiB",
    });
    expect(await bed().projects.tombstones(0, 10)).toHaveLength(1);
  });

  test("leases that end against the holder's will tell the node to cut it off", async () => {
    const pool = await PoolBed.filled(bed(), { size: 1 });
    const held = await pool.lend();
    await bed().poolStore.deletePool(pool.partition, { force: true, request: request() });
    expect(bed().jobs).toMatchObject([{ kind: "retire", browser: held.id }]);
    expect(bed().ended).toMatchObject([{ why: "pool_deleted" }]);
  });
});
