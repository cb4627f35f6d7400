import { expect, test } from "vitest";
import { newBrowserId, type NodeId } from "../../src/base/ids.js";
import { RedisTickStore } from "../../src/store/tick-store.js";
import { age } from "../support/store/age.js";
import { onBoth } from "../support/store/on-both.js";
import { controlB, nodeA, PoolBed } from "../support/store/pool-bed.js";
import { request } from "../support/store/store-bed.js";
import { nodeFacts } from "../support/store/node-facts.js";

const hourMs = 3_600_000;

/** Failed launches rest for longer than a busy machine takes between two steps. */
const backoff = { backoffInitialMs: 20_000, backoffMaxMs: 1_200_000 };
const onBothUnhurried = (name: string, body: Parameters<typeof onBoth>[1]): void =>
  onBoth(name, body, backoff);

/**
 * This is what a failover to a machine does whose clock is behind: what was stored before lies in the future.
 */
onBothUnhurried("a clock that goes back by an hour", ({ bed }) => {
  const back = (): Promise<void> => age(bed().redis, "remuda:*", -hourMs);
  const reap = async (pool: PoolBed): Promise<number> =>
    (await bed().poolStore.reap(pool.partition)).launch.length;
  const nowOf = async (): Promise<number> => {
    const [seconds, microseconds] = await bed().redis.time();
    return Number(seconds) * 1000 + Math.floor(Number(microseconds) / 1000);
  };
  /** So much time after the next tick there is another one. */
  const reapAfter = async (pool: PoolBed, ms: number): Promise<number> => {
    await back();
    await reap(pool);
    await pool.age(ms);
    return await reap(pool);
  };

  test("leaves no launch, reset or end of a browser to itself", async () => {
    const pool = await PoolBed.filled(bed(), { size: 2 });
    const [reset, ended] = [await pool.lend(), await pool.lend()];
    await pool.connect(reset);
    await pool.release(reset);
    await pool.release(ended, { reuse: false });
    await pool.claim(1);
    const { claim } = await pool.record(reset.id);
    bed().jobs.splice(0);
    expect(await reapAfter(pool, 61_000)).toBe(1);
    expect((await pool.record(reset.id)).claim).not.toBe(claim);
    expect(bed().jobs).toMatchObject([{ kind: "retire", browser: ended.id }]);
  });

  test("lets a dead control keep neither browsers nor places in line", async () => {
    const pool = await PoolBed.filled(bed(), { size: 1 });
    const held = await pool.lend();
    await pool.ask({ control: controlB });
    const { waiter } = await pool.ask({ control: controlB, key: "key" });
    await bed().poolStore.withdraw(pool.partition, {
      waiter: waiter.id,
      connection: waiter.connection,
      lease: waiter.lease,
    });
    await reapAfter(pool, 31_000);
    expect(await pool.state(held.id)).toBe("idle");
    expect(await pool.counts()).toMatchObject({ waiting: 0 });
    expect(await bed().redis.hlen(pool.key("waiterRecords"))).toBe(1);
    await pool.age(121_000);
    await reap(pool);
    expect(await bed().redis.hlen(pool.key("waiterRecords"))).toBe(0);
  });

  test("holds up no pool whose launches have failed longer than its pause", async () => {
    const pool = await PoolBed.create(bed(), { size: 1 });
    for (const node of ["node-a", "node-b"] as NodeId[]) {
      const [browser] = await pool.claim(1, { node });
      await bed().reports.launchFailed(
        browser?.id ?? ("" as never),
        browser?.claim ?? ("" as never),
        "no display",
      );
    }
    expect(await pool.claim(1)).toEqual([]);
    await reapAfter(pool, backoff.backoffMaxMs + 1000);
    expect(await pool.claim(1)).toHaveLength(1);
  });

  test("silences no node longer than its silence is good for", async () => {
    const pool = await PoolBed.filled(bed(), { size: 1 });
    await bed().poolStore.silenceNode(pool.partition, nodeA, 15_000);
    await reapAfter(pool, 16_000);
    expect((await pool.ask()).reply.kind).toBe("granted");
  });

  test("ends a lease that its node finds inactive, and none that was granted since too early", async () => {
    const pool = await PoolBed.filled(bed(), { size: 2, timeout_seconds: 10 });
    const before = await pool.lend();
    await back();
    const after = await pool.lend();
    expect(await bed().reports.expire({ browser: before.id, lease: before.lease, registrations: 0 })).toBe(
      true,
    );
    expect(await bed().reports.expire({ browser: after.id, lease: after.lease, registrations: 0 })).toBe(
      false,
    );
  });

  test("keeps no browser in service that was launched before its profile was saved", async () => {
    const pool = await PoolBed.filled(bed(), { size: 1 });
    await reapAfter(pool, 1000);
    await pool.refresh(await nowOf());
    expect(await pool.counts()).toMatchObject({ idle: 0 });
  });

  test("flushes once for a save that lies ahead, and keeps what has been launched since", async () => {
    const pool = await PoolBed.filled(bed(), { size: 1 });
    let savedAt = (await nowOf()) + hourMs;
    const refreshAfter = async (ms: number): Promise<void> => {
      await age(bed().redis, "remuda:*", ms);
      savedAt -= ms;
      await reap(pool);
      await pool.refresh(savedAt);
    };
    // It is met in a later millisecond than the launch was.
    const launchedBy = await nowOf();
    while ((await nowOf()) === launchedBy);
    await pool.refresh(savedAt);
    expect(await pool.counts()).toMatchObject({ idle: 0 });
    await pool.clear();
    await pool.launch(1);
    // The clock goes back once more, and catches up at last.
    for (const ms of [5, 30_000, -hourMs, 30_000, 3 * hourMs]) {
      await refreshAfter(ms);
      expect(await pool.counts(), `after ${ms} ms`).toMatchObject({ idle: 1 });
    }
    await pool.refresh(await nowOf());
    expect(await pool.counts()).toMatchObject({ idle: 0 });
  });

  test("flushes nothing anew for a save that was met before", async () => {
    const pool = await PoolBed.create(bed(), { size: 1 });
    const savedAt = await nowOf();
    await pool.launch(1);
    await pool.age(5);
    await pool.refresh(savedAt - 5);
    await pool.refresh(savedAt - 5);
    await back();
    await reap(pool);
    await pool.refresh(savedAt - 5 + hourMs);
    expect(await pool.counts()).toMatchObject({ idle: 1 });
  });

  test("flushes what was claimed before such a save, and lies ahead itself still", async () => {
    const pool = await PoolBed.filled(bed(), { size: 1 });
    const savedAt = (await nowOf()) + 1;
    await back();
    await pool.refresh(savedAt + hourMs);
    expect(await pool.counts()).toMatchObject({ idle: 0 });
  });

  const nextMillisecond = async (): Promise<number> => {
    const from = await nowOf();
    for (;;) {
      const at = await nowOf();
      if (at > from) return at;
    }
  };
  test.each(["reap", "refresh"])(
    "flushes for a save that comes before the next tick, a %s",
    async (first) => {
      const pool = await PoolBed.create(bed(), { size: 2 });
      const met = await nowOf();
      await nextMillisecond();
      await pool.launch(2);
      await pool.refresh(met);
      const held = await pool.lend();
      await back();
      const savedAt = await nowOf();
      await nextMillisecond();
      if (first === "reap") await reap(pool);
      await pool.refresh(savedAt);
      expect(await pool.counts()).toMatchObject({ idle: 0 });
      await reap(pool);
      await nextMillisecond();
      await pool.clear();
      expect(await pool.launch(1)).toHaveLength(1);
      await pool.release(held);
      expect(await pool.state(held.id)).toBe("idle");
      for (let turn = 0; turn < 2; turn += 1) {
        await pool.refresh(savedAt);
        expect(await pool.state(held.id)).not.toBe("idle");
        expect(await pool.counts()).toMatchObject({ idle: 1 });
      }
    },
  );

  test("flushes for a save that comes after the clock went back once more", async () => {
    const pool = await PoolBed.filled(bed(), { size: 1 });
    await back();
    await reap(pool);
    await back();
    const savedAt = await nowOf();
    await nextMillisecond();
    await reap(pool);
    await pool.refresh(savedAt);
    expect(await pool.counts()).toMatchObject({ idle: 0 });
  });

  test("flushes nothing for a save from before the pool came to follow the profile", async () => {
    const pool = await PoolBed.filled(bed(), { size: 1 });
    const savedAt = (await nowOf()) - 2 * hourMs;
    await bed().redis.hset(pool.key("pool"), "refreshedFrom", await nowOf());
    await pool.refresh(savedAt);
    await back();
    await reap(pool);
    await nextMillisecond();
    await pool.refresh(savedAt);
    expect(await pool.counts()).toMatchObject({ idle: 1 });
  });

  test("takes no release of a later lease for the repeat of an earlier one's", async () => {
    const pool = await PoolBed.filled(bed(), { size: 1 });
    await pool.release(await pool.lend());
    await back();
    await reap(pool);
    const held = await pool.lend();
    await bed().poolStore.confirm(pool.partition, [held.lease]);
    await pool.age(121_000);
    expect(await pool.releaseUnnamed(held.id, { isRetry: true })).toBe("released");
  });

  test("keeps no browser in service for longer than it was to serve, as if it were new now", async () => {
    const pool = await PoolBed.create(bed(), { size: 1 });
    await pool.launch(1, { recycleAt: (await nowOf()) + 60_000 });
    const recycle = (): Promise<number> =>
      bed().poolStore.recycle(pool.partition, { maxLeases: null, request: request() });
    await reapAfter(pool, 30_000);
    expect(await recycle()).toBe(0);
    await pool.age(31_000);
    expect(await recycle()).toBe(1);
  });

  test("keeps no tombstone for longer than a day", async () => {
    const pool = await PoolBed.filled(bed(), { size: 1 });
    await pool.release(await pool.lend(), { reuse: false });
    await back();
    await bed().projects.sweepTombstones();
    expect(await bed().projects.tombstones(0, 10)).toHaveLength(1);
    await age(bed().redis, "remuda:*", 86_401_000);
    await bed().projects.sweepTombstones();
    expect(await bed().projects.tombstones(0, 10)).toEqual([]);
  });

  test("reads all records once for that, not at each tick", async () => {
    const pool = await PoolBed.filled(bed(), { size: 1 });
    await back();
    await reap(pool);
    const stamp = await bed().redis.hget(pool.key("nodeStamps"), nodeA);
    await reap(pool);
    expect(await bed().redis.hget(pool.key("nodeStamps"), nodeA)).toBe(stamp);
  });

  test("keeps no place and no name for what never came to be", async () => {
    const facts = nodeFacts(nodeA, { memoryBytes: 10, maxBrowsers: 1 });
    const pool = await PoolBed.create(bed(), { size: 1 });
    const place = (): Promise<boolean> =>
      bed().nodes.reserveRoom(facts, { id: newBrowserId(pool.partition), bytes: 1 });
    const name = (owner: string): Promise<unknown> =>
      bed().projects.reserveName({ kind: "session", name: "name", owner, partition: pool.partition });
    expect([await place(), await name("one")]).toEqual([true, expect.anything()]);
    await back();
    await bed().nodes.sweepRooms(nodeA);
    await bed().projects.sweepNames();
    expect([await place(), await name("other")]).toEqual([true, expect.anything()]);
  });

  test("rests no node that fails launches longer than any rest", async () => {
    const facts = nodeFacts(nodeA, { memoryBytes: 10, maxBrowsers: 1 });
    const pool = await PoolBed.create(bed(), { size: 1 });
    await bed().nodes.rest(nodeA, 60_000);
    expect(
      await bed().nodes.reserveRoom(facts, { id: newBrowserId(pool.partition), bytes: 1, isTrial: true }),
    ).toBe(false);
    await back();
    expect(
      await bed().nodes.reserveRoom(facts, { id: newBrowserId(pool.partition), bytes: 1, isTrial: true }),
    ).toBe(true);
  });

  test("finds a node that has died lost, once somebody has listened for long enough, and ticks that have ceased", async () => {
    const ticks = new RedisTickStore(bed().store);
    await bed().nodes.beat(nodeFacts(nodeA, { memoryBytes: 10, maxBrowsers: 1 }));
    await ticks.listen(10_000);
    await ticks.ran("reap");
    await back();
    expect(await ticks.ageMs("reap")).toBe(Infinity);
    expect((await ticks.listen(10_000)).forMs).toBe(0);
    expect(await bed().nodes.lost()).toEqual([]);
    await age(bed().redis, "remuda:*", 9000);
    expect((await ticks.listen(10_000)).forMs).toBeGreaterThanOrEqual(9000);
    await age(bed().redis, "remuda:*", 7000);
    expect(await bed().nodes.lost()).toEqual([nodeA]);
  });
});
