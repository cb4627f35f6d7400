import { expect, test } from "vitest";
import { onBoth } from "../../../support/store/on-both.js";
import { PoolBed } from "../../../support/store/pool-bed.js";
import { request } from "../../../support/store/store-bed.js";

onBoth("credit that nobody misses any more", ({ bed }) => {
  const wanted = async (pool: PoolBed): Promise<number> =>
    (await bed().poolStore.wanted(pool.partition, 100)).count;
  const grownAtNoRate = async (pool: PoolBed, size: number): Promise<unknown> => {
    await pool.update({ size, fill_rate_per_minute: 0 });
    return [await wanted(pool), (await pool.found()).fill];
  };

  test("is not kept for the next size: that of idle browsers which were discarded", async () => {
    const pool = await PoolBed.filled(bed(), { size: 3 });
    await pool.lend();
    await pool.update({ size: 1 }, { discard: true });
    expect(await pool.field("credit")).toBe(0);
    expect(await grownAtNoRate(pool, 3)).toEqual([0, { reason: "rate_zero" }]);
  });

  test("is not kept for the next size: that of a rebuild which had not begun", async () => {
    const pool = await PoolBed.filled(bed(), { size: 3 });
    await pool.update({}, { discard: true });
    await pool.update({ size: 1 });
    expect(await pool.field("credit")).toBe(1);
    expect(await grownAtNoRate(pool, 3)).toEqual([1, undefined]);
  });

  test("is not kept for the next size: that of launches which were called off", async () => {
    const pool = await PoolBed.filled(bed(), { size: 3 });
    await pool.update({}, { discard: true });
    expect(await pool.claim(3)).toMatchObject([{ paid: "credit" }, { paid: "credit" }, { paid: "credit" }]);
    await pool.update({ size: 1 });
    expect(await grownAtNoRate(pool, 3)).toEqual([0, { reason: "rate_zero" }]);
  });

  test("pays for nothing that a flush or a refresh retires, nor for the next size", async () => {
    const pool = await PoolBed.filled(bed(), { size: 2 });
    await pool.update({ fill_rate_per_minute: 0 });
    const leave = () => bed().redis.hset(pool.key("pool"), "credit", 50);
    await leave();
    expect(await grownAtNoRate(pool, 3)).toEqual([0, { reason: "rate_zero" }]);
    await pool.update({ size: 2 });
    await pool.age(1000);
    await leave();
    await pool.refresh(await bed().poolStore.now());
    expect([await pool.counts(), await wanted(pool)]).toMatchObject([{ idle: 0 }, 0]);
    await bed().redis.hset(pool.key("pool"), "credit", 2);
    await pool.launch(2);
    await leave();
    await bed().poolStore.flush(pool.partition, request());
    expect([await pool.counts(), await wanted(pool)]).toMatchObject([{ idle: 0 }, 0]);
  });
});
