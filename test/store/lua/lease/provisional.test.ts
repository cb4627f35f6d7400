import { expect, test } from "vitest";
import { onBoth } from "../../../support/store/on-both.js";
import { controlB, PoolBed } from "../../../support/store/pool-bed.js";
import { request } from "../../../support/store/store-bed.js";

onBoth("a provisional grant", ({ bed }) => {
  const undo = (pool: PoolBed, lease: Parameters<typeof pool.bed.poolStore.undo>[1]): Promise<string> =>
    bed().poolStore.undo(pool.partition, lease, request());
  const reapAfter = async (pool: PoolBed, ms: number, isAlive: boolean): Promise<void> => {
    await pool.age(ms);
    if (isAlive) await pool.beat();
    await bed().poolStore.reap(pool.partition);
  };

  test("is undone at once where it has no key: idle again without a reset, served no lease", async () => {
    const pool = await PoolBed.filled(bed(), { size: 1, reset_on_release: "state" });
    const held = await pool.lend();
    expect(await undo(pool, held.lease)).toBe("undone");
    expect(await pool.record(held.id)).toMatchObject({ state: "idle", served: 0 });
    expect(bed().ended).toMatchObject([{ lease: held.lease, why: "undone", hadClient: false }]);
  });

  test("goes to the next waiter when it is undone", async () => {
    const pool = await PoolBed.filled(bed(), { size: 1 });
    const held = await pool.lend();
    const { waiter } = await pool.ask();
    await undo(pool, held.lease);
    expect((await pool.record(held.id)).lease?.id).toBe(waiter.lease);
  });

  test("that sent a start page is reset when it is undone", async () => {
    const pool = await PoolBed.filled(bed(), { size: 1 });
    const held = await pool.lend({ startUrl: "https://example.com/" });
    await undo(pool, held.lease);
    expect(await pool.record(held.id)).toMatchObject({ state: "resetting", mode: "state" });
    expect(bed().jobs).toMatchObject([{ kind: "reset", browser: held.id }]);
  });

  test("that a client has opened is not undone", async () => {
    const pool = await PoolBed.filled(bed(), { size: 1 });
    const held = await pool.lend();
    await pool.connect(held);
    expect(await undo(pool, held.lease)).toBe("opened");
    expect(await pool.state(held.id)).toBe("leased");
  });

  test("that was confirmed is not undone: another connection of its key has it", async () => {
    const pool = await PoolBed.filled(bed(), { size: 1 });
    const held = await pool.lend({ key: "k" });
    await bed().poolStore.confirm(pool.partition, [held.lease]);
    await pool.lend({ key: "k" });
    expect(await undo(pool, held.lease)).toBe("opened");
    await reapAfter(pool, 60_000, false);
    expect(await pool.state(held.id)).toBe("leased");
  });

  test("with a key is kept 10 s for the retry, then undone", async () => {
    const pool = await PoolBed.filled(bed(), { size: 1 });
    const held = await pool.lend({ key: "k" });
    expect(await undo(pool, held.lease)).toBe("kept");
    await reapAfter(pool, 5000, true);
    expect(await pool.state(held.id)).toBe("leased");
    await reapAfter(pool, 6000, true);
    expect(await pool.state(held.id)).toBe("idle");
  });

  test("with a key is the retry's when it comes in time", async () => {
    const pool = await PoolBed.filled(bed(), { size: 1 });
    const held = await pool.lend({ key: "k" });
    await undo(pool, held.lease);
    await pool.age(9000);
    expect(await pool.lend({ key: "k" })).toMatchObject({ lease: held.lease });
    await reapAfter(pool, 20_000, true);
    expect(await pool.state(held.id)).toBe("leased");
  });

  test("with a key is kept for the retry after each lost reply of several connections", async () => {
    const pool = await PoolBed.filled(bed(), { size: 1 });
    const held = await pool.lend({ key: "k" });
    await pool.lend({ key: "k" });
    expect(await undo(pool, held.lease)).toBe("kept");
    await pool.age(5000);
    expect(await undo(pool, held.lease)).toBe("kept");
    await reapAfter(pool, 6000, true);
    expect(await pool.lend({ key: "k" })).toMatchObject({ lease: held.lease });
    expect([await undo(pool, held.lease), await undo(pool, held.lease)]).toEqual(["kept", "kept"]);
    await reapAfter(pool, 11_000, true);
    expect(await pool.state(held.id)).toBe("idle");
  });

  test("of a lost control that no client opened returns after 30 s, not before", async () => {
    const pool = await PoolBed.filled(bed(), { size: 1 });
    const held = await pool.lend({ control: controlB });
    await reapAfter(pool, 15_000, false);
    expect(await pool.state(held.id)).toBe("leased");
    await reapAfter(pool, 16_000, false);
    expect(await pool.state(held.id)).toBe("idle");
  });

  test("of a lost control that a client opened stays", async () => {
    const pool = await PoolBed.filled(bed(), { size: 1 });
    const held = await pool.lend();
    await pool.connect(held);
    await reapAfter(pool, 60_000, false);
    expect(await pool.state(held.id)).toBe("leased");
  });

  test("of a living control waits for what that control says", async () => {
    const pool = await PoolBed.filled(bed(), { size: 1 });
    const held = await pool.lend();
    await reapAfter(pool, 31_000, true);
    expect(await pool.state(held.id)).toBe("leased");
    await reapAfter(pool, 6000, false);
    expect(await pool.state(held.id)).toBe("idle");
  });

  test("is final once confirmed, and confirming what is over is harmless", async () => {
    const pool = await PoolBed.filled(bed(), { size: 1 });
    const held = await pool.lend();
    await bed().poolStore.confirm(pool.partition, [held.lease]);
    await reapAfter(pool, 60_000, false);
    expect(await pool.state(held.id)).toBe("leased");
    await pool.release(held);
    await bed().poolStore.confirm(pool.partition, [held.lease]);
    expect(await undo(pool, held.lease)).toBe("over");
  });

  test("is undone once: a repeat of the undo does not touch the next lease", async () => {
    const pool = await PoolBed.filled(bed(), { size: 1 });
    const held = await pool.lend();
    const id = request();
    await bed().poolStore.undo(pool.partition, held.lease, id);
    const next = await pool.lend();
    const before = await pool.dump();
    expect(await bed().poolStore.undo(pool.partition, held.lease, id)).toBe("undone");
    expect(await undo(pool, held.lease)).toBe("over");
    expect(await pool.dump()).toEqual(before);
    expect((await pool.record(held.id)).lease?.id).toBe(next.lease);
  });
});
