import { describe, expect, test } from "vitest";
import { onBoth } from "../../../support/store/on-both.js";
import { nodeA, nodeB, PoolBed } from "../../../support/store/pool-bed.js";
import { defaultLimits } from "../../../support/store/store-limits.js";
import { candidateOn, claimOf, request } from "../../../support/store/store-bed.js";
import type { ClaimId } from "../../../../src/base/ids.js";
import type { Browser } from "../../../../src/pool/browser.js";

const fail = (pool: PoolBed, browser: Browser | undefined, text = "no display"): Promise<unknown> => {
  if (!browser) throw new Error("nothing was claimed");
  return pool.bed.reports.launchFailed(browser.id, claimOf(browser), text);
};
const wanted = async (pool: PoolBed): Promise<number> =>
  (await pool.bed.poolStore.wanted(pool.partition, 100)).count;

onBoth("fill", ({ bed }) => {
  describe("tokens", () => {
    test("the bucket is full at creation: one minute's worth, rounded up", async () => {
      const pool = await PoolBed.create(bed(), { size: 10, fill_rate_per_minute: 25 });
      expect(await wanted(pool)).toBe(3);
      expect(await pool.claim(10)).toHaveLength(3);
      expect(await pool.claim(10)).toHaveLength(0);
    });

    test("it is refilled continuously and never beyond one minute's worth", async () => {
      const pool = await PoolBed.create(bed(), { size: 10, fill_rate_per_minute: 20 });
      expect(await pool.claim(10)).toHaveLength(2);
      await pool.age(31_000);
      expect(await pool.claim(10)).toHaveLength(1);
      await pool.age(3_600_000);
      expect(await pool.claim(10)).toHaveLength(2);
    });

    test("a clock that goes back, as after a failover to another machine, takes no tokens", async () => {
      const pool = await PoolBed.create(bed(), { size: 10, fill_rate_per_minute: 20 });
      expect(await pool.claim(1)).toHaveLength(1);
      await pool.age(-3_600_000);
      expect(await pool.claim(10)).toHaveLength(1);
      await pool.age(31_000);
      expect(await pool.claim(10)).toHaveLength(1);
    });

    test("a failed launch gives its token back", async () => {
      const pool = await PoolBed.create(bed(), { size: 4, fill_rate_per_minute: 25 });
      const [browser] = await pool.claim(4);
      await fail(pool, browser);
      expect(await pool.claim(4, { node: nodeB })).toHaveLength(1);
    });

    test("rate 0 fills nothing but what credit pays for", async () => {
      const pool = await PoolBed.filled(bed(), { size: 2 });
      await pool.update({ fill_rate_per_minute: 0 });
      await bed().poolStore.flush(pool.partition, request());
      expect(await wanted(pool)).toBe(0);
      expect((await pool.found()).fill).toEqual({ reason: "rate_zero" });
      await bed().redis.hset(pool.key("pool"), "credit", 1);
      expect(await pool.claim(2)).toMatchObject([{ paid: "credit" }]);
    });

    test("credit is spent first, given back by a failed launch, and is never more than what is missing", async () => {
      const pool = await PoolBed.filled(bed(), { size: 2 });
      await pool.update({}, { discard: true });
      expect(await pool.field("credit")).toBe(2);
      const [one, two] = await pool.claim(2);
      expect([one, two]).toMatchObject([{ paid: "credit" }, { paid: "credit" }]);
      await fail(pool, one);
      expect(await pool.field("credit")).toBe(1);
      await bed().redis.hset(pool.key("pool"), "credit", 50);
      await pool.claim(0);
      expect(await pool.field("credit")).toBe(1);
    });
  });

  describe("size", () => {
    test("no claim raises what lives above the size, leased ones counted", async () => {
      const pool = await PoolBed.create(bed(), { size: 3 });
      await pool.launch(2);
      await pool.lend();
      expect(await pool.claim(5)).toHaveLength(1);
      expect(await pool.claim(5)).toHaveLength(0);
      expect(await wanted(pool)).toBe(0);
    });

    test("a repeat under the same request id claims nothing more", async () => {
      const pool = await PoolBed.create(bed(), { size: 3 });
      const id = request();
      const candidates = [candidateOn(pool.partition, nodeA)];
      const first = await bed().poolStore.claimLaunches(pool.partition, { candidates, request: id });
      const before = await pool.dump();
      expect(await bed().poolStore.claimLaunches(pool.partition, { candidates, request: id })).toEqual(first);
      expect(await pool.dump()).toEqual(before);
    });

    test("what was granted nothing is granted nothing when it comes again, though there are tokens by then", async () => {
      const pool = await PoolBed.create(bed(), { size: 10, fill_rate_per_minute: 10 });
      expect(await pool.claim(10)).toHaveLength(1);
      const again = { candidates: [candidateOn(pool.partition, nodeA)], request: request() };
      expect(await bed().poolStore.claimLaunches(pool.partition, again)).toEqual([]);
      // An answer is kept for 10 s; a token comes by itself in a minute.
      await bed().redis.hset(pool.key("pool"), "tokens", 1);
      // Whoever asked has given back the room that it had reserved.
      expect(await bed().poolStore.claimLaunches(pool.partition, again)).toEqual([]);
      expect(await pool.claim(10)).toHaveLength(1);
    });
  });

  describe("what holds the pool up", () => {
    test("rate, where the bucket is empty", async () => {
      const pool = await PoolBed.create(bed(), { size: 10, fill_rate_per_minute: 10 });
      await pool.claim(1);
      await wanted(pool);
      expect((await pool.found()).fill).toEqual({ reason: "rate" });
    });

    test("capacity, where no room was found for what the rate allows; not where the fill took only a part", async () => {
      const pool = await PoolBed.create(bed(), { size: 10 });
      await wanted(pool);
      await pool.claim(2);
      expect((await pool.found()).fill).toEqual({ reason: "capacity" });
      await bed().poolStore.wanted(pool.partition, 3);
      await pool.claim(3);
      expect((await pool.found()).fill).toBeUndefined();
    });

    test("launch_failing, with the last error, until a launch succeeds", async () => {
      const pool = await PoolBed.create(bed(), { size: 2 });
      const [browser] = await pool.claim(1);
      await fail(pool, browser, "cannot open display");
      expect((await pool.found()).fill).toEqual({
        reason: "launch_failing",
        last_error: "node-a: cannot open display",
      });
      await pool.age(2000);
      await pool.launch(2);
      expect((await pool.found()).fill).toBeUndefined();
    });

    test("not_supported, with the fields; nothing is launched", async () => {
      const pool = await PoolBed.create(bed(), {}, ["profile"]);
      expect(await wanted(pool)).toBe(0);
      expect(await pool.claim(2)).toHaveLength(0);
      expect((await pool.found()).fill).toEqual({ reason: "not_supported", fields: ["profile"] });
    });
  });

  describe("launch claims", () => {
    test("a launch under another claim is stale: its node ends what it has", async () => {
      const pool = await PoolBed.create(bed(), { size: 1 });
      const [browser] = await pool.claim(1);
      await pool.age(61_000);
      const reaped = await bed().poolStore.reap(pool.partition);
      expect(reaped.launch).toMatchObject([{ id: browser?.id }]);
      if (!browser) throw new Error("nothing was claimed");
      expect(await bed().reports.launched(browser.id, claimOf(browser), "{}")).toBe("stale");
      expect(await bed().reports.launchFailed(browser.id, claimOf(browser), "late")).toBe("stale");
      expect(
        await bed().reports.launched(browser.id, claimOf(await pool.record(browser.id)), '{"uid":1}'),
      ).toBe("launched");
      expect(await pool.record(browser.id)).toMatchObject({ state: "idle", isolation: '{"uid":1}' });
    });

    test("is given up after three attempts, as a failure", async () => {
      const pool = await PoolBed.create(bed(), { size: 1 });
      const [browser] = await pool.claim(1);
      for (let i = 0; i < 3; i += 1) {
        await pool.age(61_000);
        await bed().poolStore.reap(pool.partition);
      }
      expect(await pool.state(browser?.id ?? ("" as never))).toBe("gone");
      expect(await pool.field("failures")).toBe(1);
    });
  });

  describe("recycling", () => {
    const recycle = (
      pool: PoolBed,
      over: { maxLeases?: number; node?: typeof nodeB } = {},
    ): Promise<number> =>
      bed().poolStore.recycle(pool.partition, {
        maxLeases: over.maxLeases ?? null,
        request: request(),
        ...(over.node ? { drains: { node: over.node, ms: 60_000 } } : {}),
      });

    test("warms the replacement first, on credit; then the replaceable one goes", async () => {
      const pool = await PoolBed.create(bed(), { size: 2, fill_rate_per_minute: 100 });
      const [old] = await pool.launch(1, { recycleAt: 1 });
      await pool.launch(1);
      expect(await recycle(pool)).toBe(1);
      const marked = await pool.record(old ?? ("" as never));
      expect([marked.state, marked.replaceable]).toEqual(["idle", true]);
      const [fresh] = await pool.claim(2);
      expect(fresh).toMatchObject({ paid: "credit" });
      expect(await pool.counts()).toMatchObject({ idle: 2, launching: 1 });
      if (fresh) await bed().reports.launched(fresh.id, claimOf(fresh), "{}");
      expect(await pool.record(old ?? ("" as never))).toMatchObject({ state: "retiring", why: "recycled" });
      expect(await pool.counts()).toMatchObject({ idle: 2, launching: 0 });
      expect(await pool.claim(2)).toHaveLength(0);
    });

    test("a replaceable browser that is leased goes when it is released, its replacement ready", async () => {
      const pool = await PoolBed.create(bed(), { size: 1 });
      await pool.launch(1, { recycleAt: 1 });
      const held = await pool.lend();
      await recycle(pool);
      const [fresh] = await pool.launch(2);
      expect(await pool.counts()).toMatchObject({ idle: 1, leased: 1 });
      await pool.release(held);
      expect(await pool.record(held.id)).toMatchObject({ state: "retiring", why: "recycled" });
      expect(await pool.state(fresh ?? ("" as never))).toBe("idle");
    });

    test("by the number of leases served", async () => {
      const pool = await PoolBed.filled(bed(), { size: 1 });
      await pool.release(await pool.lend());
      expect(await recycle(pool, { maxLeases: 2 })).toBe(0);
      await pool.release(await pool.lend());
      expect(await recycle(pool, { maxLeases: 2 })).toBe(1);
      expect(await recycle(pool, { maxLeases: 2 })).toBe(0);
    });

    test("at most a quarter of the pool at a time", async () => {
      const pool = await PoolBed.create(bed(), { size: 8 });
      await pool.launch(8, { recycleAt: 1 });
      expect(await recycle(pool)).toBe(2);
      expect(await recycle(pool)).toBe(0);
    });

    test("where there is no room for a replacement, one goes first", async () => {
      const pool = await PoolBed.create(bed(), { size: 2 });
      await pool.launch(2, { recycleAt: 1 });
      await recycle(pool);
      await wanted(pool);
      await pool.claim(0);
      expect(await pool.counts()).toMatchObject({ idle: 2 });
      await recycle(pool);
      expect(await pool.counts()).toMatchObject({ idle: 1 });
    });

    test("a draining node's browsers are all replaced elsewhere first, leased ones included", async () => {
      const pool = await PoolBed.create(bed(), { size: 3 });
      await pool.launch(3);
      const held = await pool.lend();
      expect(await recycle(pool, { node: nodeA as never })).toBe(3);
      await pool.launch(5, { node: nodeB });
      expect(await pool.counts()).toMatchObject({ idle: 3, leased: 1 });
      await pool.release(held);
      expect(
        (await pool.browsers())
          .filter((browser) => browser.state !== "retiring")
          .map((browser) => browser.node),
      ).toEqual([nodeB, nodeB, nodeB]);
    });
  });

  describe("taking a launch up", () => {
    test("a launch nobody has taken up is claimed anew at once when its time is past; one taken up has the time of a launch", async () => {
      const pool = await PoolBed.create(bed(), { size: 2, fill_rate_per_minute: 6000 });
      const [lost, begun] = await pool.claim(2);
      if (!lost || !begun) throw new Error("nothing was claimed");
      const { launchPickupMs, launchClaimMs } = defaultLimits;
      await pool.age(launchPickupMs - 1000);
      expect(await bed().reports.beginLaunch(begun.id, claimOf(begun))).toMatchObject({
        browser: { id: begun.id, state: "launching" },
      });
      await pool.age(2000);
      const reaped = await bed().poolStore.reap(pool.partition);
      expect(reaped.launch.map(({ id }) => id)).toEqual([lost.id]);
      await pool.age(launchClaimMs);
      expect((await bed().poolStore.reap(pool.partition))?.launch.map(({ id }) => id)).toContain(begun.id);
    });

    test("a claim that is not the record's begins nothing", async () => {
      const pool = await PoolBed.create(bed(), { size: 1, fill_rate_per_minute: 6000 });
      const [browser] = await pool.claim(1);
      if (!browser) throw new Error("nothing was claimed");
      expect(await bed().reports.beginLaunch(browser.id, "other" as ClaimId)).toBeUndefined();
    });
  });
});
