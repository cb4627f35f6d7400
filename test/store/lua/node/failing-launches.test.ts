import { expect, test } from "vitest";
import type { Browser } from "../../../../src/pool/browser.js";
import { onBoth } from "../../../support/store/on-both.js";
import { nodeA, nodeB, PoolBed } from "../../../support/store/pool-bed.js";
import { claimOf } from "../../../support/store/store-bed.js";

const fail = (pool: PoolBed, browser: Browser | undefined, text = "no display"): Promise<unknown> => {
  if (!browser) throw new Error("nothing was claimed");
  return pool.bed.reports.launchFailed(browser.id, claimOf(browser), text);
};

/** Rests are by Redis's own time, of which a busy machine takes seconds between two steps. */
const onBothUnhurried = (name: string, body: Parameters<typeof onBoth>[1]): void =>
  onBoth(name, body, { backoffInitialMs: 20_000, backoffMaxMs: 1_200_000, earlyDeathMs: 1_200_000 });

onBothUnhurried("failing launches", ({ bed }) => {
  const failOnce = async (pool: PoolBed, node = nodeA): Promise<void> => {
    const [browser] = await pool.claim(1, { node });
    await fail(pool, browser);
  };

  test("put the pool off that node, longer each time up to a maximum, and no longer after a success there", async () => {
    const pool = await PoolBed.create(bed(), { size: 1 });
    for (const restsMs of [20_000, 40_000, 80_000]) {
      await failOnce(pool);
      await pool.age(restsMs / 2);
      expect(await pool.claim(1)).toHaveLength(0);
      await pool.age(restsMs / 2 + 2000);
    }
    for (let failures = 4; failures < 12; failures += 1) {
      await failOnce(pool);
      await pool.age(1_202_000);
    }
    await pool.launch(1);
    expect(await pool.field("failures")).toBe(0);
    expect(await bed().redis.hget(pool.key("pool"), "failing")).toBeNull();
  });

  test("of one node that is tried again and again leave room for others each time", async () => {
    const pool = await PoolBed.create(bed(), { size: 1 });
    for (let failures = 1; failures < 12; failures += 1) {
      await failOnce(pool);
      expect(await bed().poolStore.wanted(pool.partition, 100)).toMatchObject({ count: 1, resting: [nodeA] });
      await pool.age(1_202_000);
    }
    await failOnce(pool);
    expect(await pool.launch(1, { node: nodeB })).toHaveLength(1);
  });

  test("are tried elsewhere at once; on the node they failed on, with one at a time", async () => {
    const pool = await PoolBed.create(bed(), { size: 6 });
    await failOnce(pool);
    expect(await bed().poolStore.wanted(pool.partition, 100)).toMatchObject({
      count: 6,
      resting: [nodeA],
      trying: [],
    });
    expect(await pool.claim(1)).toHaveLength(0);
    expect(await pool.launch(2, { node: nodeB })).toHaveLength(2);
    await pool.age(22_000);
    expect(await bed().poolStore.wanted(pool.partition, 100)).toMatchObject({
      count: 4,
      resting: [],
      trying: [nodeA],
    });
    const [trial, ...more] = await pool.claim(3);
    expect(more).toEqual([]);
    expect(await pool.claim(1)).toHaveLength(0);
    expect(await bed().poolStore.wanted(pool.partition, 100)).toMatchObject({ resting: [nodeA], trying: [] });
    await fail(pool, trial);
    await pool.age(22_000);
    expect(await pool.claim(1)).toHaveLength(0);
    await pool.age(20_000);
    await pool.launch(1);
    expect(await bed().poolStore.wanted(pool.partition, 100)).toMatchObject({
      count: 3,
      resting: [],
      trying: [],
    });
  });

  test("on one node after the other put the pool off all of them", async () => {
    const pool = await PoolBed.create(bed(), { size: 1 });
    await failOnce(pool);
    await failOnce(pool, nodeB);
    expect(await pool.claim(1, { node: "node-c" as never })).toHaveLength(0);
    await pool.age(22_000);
    expect(await pool.claim(1, { node: "node-c" as never })).toHaveLength(1);
  });

  test("those that were claimed together count once", async () => {
    const pool = await PoolBed.create(bed(), { size: 5 });
    for (const browser of await pool.claim(5)) await fail(pool, browser);
    expect(await pool.field("failures")).toBe(1);
    expect(await pool.counts()).toMatchObject({ launching: 0 });
  });

  test("a browser that dies soon after its first idle counts as one; later ones, and those that were lent, do not", async () => {
    const pool = await PoolBed.filled(bed(), { size: 4 });
    const [leased, released] = [await pool.lend(), await pool.lend()];
    await pool.release(released);
    const [young, old] = (await pool.browsers()).filter(({ id }) => id !== leased.id && id !== released.id);
    for (const { id } of [leased, released]) await bed().reports.end(id, "crashed", "SIGSEGV");
    expect(await pool.field("failures")).toBe(0);
    await bed().reports.end(young?.id ?? ("" as never), "crashed", "SIGSEGV");
    expect(await pool.field("failures")).toBe(1);
    await pool.age(1_220_000);
    await bed().reports.end(old?.id ?? ("" as never), "crashed", "SIGSEGV");
    expect(await pool.field("failures")).toBe(1);
  });

  test("a pool whose browsers all die young backs off further although each was launched", async () => {
    const pool = await PoolBed.create(bed(), { size: 1 });
    for (const failures of [1, 2, 3]) {
      const [id] = await pool.launch(1);
      await bed().reports.end(id ?? ("" as never), "crashed", "SIGSEGV");
      expect(await pool.field("failures")).toBe(failures);
      await pool.age(160_000);
    }
  });

  test("a new launch template is a new chance", async () => {
    const pool = await PoolBed.create(bed(), { size: 1 });
    await failOnce(pool);
    await pool.update({ stealth: true }, { isNewLaunch: true });
    expect(await pool.claim(1)).toHaveLength(1);
  });
});
