import { expect, test } from "vitest";
import type { RequestId } from "../../../../src/base/ids.js";
import type { AcquireReply } from "../../../../src/pool/ports/store-replies.js";
import { onBoth } from "../../../support/store/on-both.js";
import { controlB, PoolBed } from "../../../support/store/pool-bed.js";
import { request } from "../../../support/store/store-bed.js";

const storedOf = (reply: AcquireReply): string => {
  if (reply.kind !== "waiting" || reply.stored === undefined) throw new Error(`not in line: ${reply.kind}`);
  return reply.stored;
};

onBoth("a waiter that its pool has forgotten", ({ bed }) => {
  const forgotten = async (pool: PoolBed): Promise<void> => {
    await pool.age(10_000);
    await bed().poolStore.reap(pool.partition);
  };
  const rejoin = (pool: PoolBed, ...replies: readonly AcquireReply[]) =>
    bed().poolStore.rejoin(pool.partition, replies.map(storedOf));

  test("comes back at its rank: before those who came after it, and behind those who came before", async () => {
    const pool = await PoolBed.filled(bed(), { size: 1 });
    const held = await pool.lend();
    const [first, second] = [await pool.ask(), await pool.ask()];
    await forgotten(pool);
    expect((await pool.counts()).waiting).toBe(0);
    const third = await pool.ask({ control: controlB });
    expect(await rejoin(pool, second.reply, first.reply)).toEqual(["waiting", "waiting"]);
    expect((await pool.counts()).waiting).toBe(3);
    await pool.release(held);
    expect((await pool.record(held.id)).lease?.id).toBe(first.waiter.lease);
    await pool.release({ ...held, lease: first.waiter.lease });
    expect((await pool.record(held.id)).lease?.id).toBe(second.waiter.lease);
    await pool.release({ ...held, lease: second.waiter.lease });
    expect((await pool.record(held.id)).lease?.id).toBe(third.waiter.lease);
  });

  test("is lent a browser that is idle by then, at once", async () => {
    const pool = await PoolBed.filled(bed(), { size: 1 });
    const held = await pool.lend();
    const { waiter, reply } = await pool.ask();
    await forgotten(pool);
    await pool.release(held);
    expect(await rejoin(pool, reply)).toEqual(["waiting"]);
    expect((await pool.record(held.id)).lease?.id).toBe(waiter.lease);
    expect(await rejoin(pool, reply)).toEqual(["held"]);
    expect((await pool.counts()).waiting).toBe(0);
  });

  test("with a key, kept for a retry that did not come, is there for its own connection again; not for one that a retry has replaced", async () => {
    const pool = await PoolBed.filled(bed(), { size: 1 });
    const held = await pool.lend();
    const [kept, replaced] = [await pool.ask({ key: "k" }), await pool.ask({ key: "l" })];
    await pool.age(6000);
    await bed().poolStore.reap(pool.partition);
    await pool.ask({ key: "l" });
    expect(await bed().poolStore.waitingAmong(pool.partition, [kept.waiter.id, replaced.waiter.id])).toEqual([
      replaced.waiter.id,
    ]);
    expect(await rejoin(pool, kept.reply, replaced.reply)).toEqual(["waiting", "superseded"]);
    await pool.release(held);
    expect((await pool.record(held.id)).lease?.id).toBe(kept.waiter.lease);
  });

  test("that was served, and whose lease is over, does not come back", async () => {
    const pool = await PoolBed.filled(bed(), { size: 1 });
    const held = await pool.lend();
    const { waiter, reply } = await pool.ask();
    await pool.release(held);
    await pool.release({ ...held, lease: waiter.lease });
    expect(await rejoin(pool, reply)).toEqual(["over"]);
    expect(await pool.state(held.id)).toBe("idle");
  });

  test("is remembered for two minutes", async () => {
    const pool = await PoolBed.filled(bed(), { size: 1 });
    await pool.lend();
    const { reply } = await pool.ask();
    await forgotten(pool);
    await pool.age(121_000);
    await bed().poolStore.reap(pool.partition);
    expect(await rejoin(pool, reply)).toEqual(["over"]);
  });

  test("hears that its pool is deleted, and leaves nothing there", async () => {
    const pool = await PoolBed.filled(bed(), { size: 1 });
    await pool.lend();
    const { reply } = await pool.ask();
    await forgotten(pool);
    await bed().poolStore.deletePool(pool.partition, { force: true, request: request() });
    expect(await rejoin(pool, reply)).toEqual(["deleted"]);
  });

  test("that was never forgotten keeps its place", async () => {
    const pool = await PoolBed.filled(bed(), { size: 1 });
    await pool.lend();
    const { waiter, reply } = await pool.ask();
    expect(await rejoin(pool, reply)).toEqual(["waiting"]);
    expect(await bed().poolStore.waitingAmong(pool.partition, [waiter.id])).toEqual([waiter.id]);
    expect((await pool.counts()).waiting).toBe(1);
  });

  test.each(["lostAt", "detachedAt"])("is none whose session is called %s", async (name) => {
    const pool = await PoolBed.filled(bed(), { size: 1 });
    await pool.lend();
    const { waiter } = await pool.ask({ name });
    const { waiter: keyed } = await pool.ask({ name: `${name}2`, key: name });
    const waiting = (): Promise<readonly RequestId[]> =>
      bed().poolStore.waitingAmong(pool.partition, [waiter.id, keyed.id]);
    expect(await waiting()).toEqual([waiter.id, keyed.id]);
    await forgotten(pool);
    expect(await waiting()).toEqual([]);
  });
});
