import { expect, test } from "vitest";
import { openMessageListener } from "../../../support/egress/listener.js";
import { onBoth } from "../../../support/store/on-both.js";
import { controlA, controlB, heldOf, PoolBed } from "../../../support/store/pool-bed.js";
import { request, writeOf } from "../../../support/store/store-bed.js";

onBoth("an idempotency key on acquire", ({ bed, server }) => {
  test("gives the same lease again while it lives", async () => {
    const pool = await PoolBed.filled(bed(), { size: 2 });
    const held = await pool.lend({ key: "k" });
    const again = await pool.lend({ key: "k", control: controlB });
    expect(again).toMatchObject({ id: held.id, lease: held.lease });
    expect(await pool.counts()).toMatchObject({ leased: 1, idle: 1 });
  });

  test("takes over the place of a waiter: the old connection is told, the rank is kept", async () => {
    const pool = await PoolBed.create(bed(), { size: 2 });
    const first = await pool.ask({ key: "k" });
    const second = await pool.ask();
    const listener = await openMessageListener(server());
    const again = await pool.ask({ key: "k", control: controlB });
    expect(again.reply).toMatchObject({
      kind: "waiting",
      waiter: first.waiter.id,
      lease: first.waiter.lease,
    });
    expect(await listener.heard()).toContainEqual({
      channel: `remuda:control:${controlA}`,
      message: { kind: "superseded", waiter: first.waiter.id, connection: first.waiter.connection },
    });
    const [id] = await pool.launch(1);
    expect(await listener.heard()).toContainEqual(
      expect.objectContaining({
        channel: `remuda:control:${controlB}`,
        message: expect.objectContaining({ kind: "granted", connection: again.waiter.connection }) as unknown,
      }),
    );
    listener.close();
    expect((await bed().poolStore.findHeld(pool.partition, first.waiter.lease))?.browser.id).toBe(id);
    expect(await bed().poolStore.findHeld(pool.partition, second.waiter.lease)).toBeUndefined();
  });

  test("the connection that lost its place withdraws nothing, before and after the grant", async () => {
    const pool = await PoolBed.create(bed(), { size: 1 });
    const first = await pool.ask({ key: "k" });
    await pool.ask({ key: "k" });
    const old = { waiter: first.waiter.id, connection: first.waiter.connection, lease: first.waiter.lease };
    expect(await bed().poolStore.withdraw(pool.partition, old)).toEqual({ kind: "superseded" });
    await pool.launch(1);
    expect(await bed().poolStore.withdraw(pool.partition, { ...old })).toEqual({ kind: "superseded" });
    expect(await pool.counts()).toMatchObject({ leased: 1 });
  });

  test("with another body is a mismatch and changes nothing", async () => {
    const pool = await PoolBed.filled(bed(), { size: 2 });
    await pool.lend({ key: "k", body: "one" });
    const { idle, leased } = await pool.counts();
    expect((await pool.ask({ key: "k", body: "other" })).reply).toEqual({ kind: "mismatch" });
    expect(await pool.counts()).toMatchObject({ idle, leased });
  });

  test("whose lease is over is over, until the key is forgotten", async () => {
    const pool = await PoolBed.filled(bed(), { size: 2 });
    await pool.release(await pool.lend({ key: "k" }));
    expect((await pool.ask({ key: "k" })).reply).toEqual({ kind: "over" });
    await pool.age(601_000);
    expect((await pool.ask({ key: "k" })).reply.kind).toBe("granted");
  });

  test("whose place was given up unserved asks anew", async () => {
    const pool = await PoolBed.create(bed(), { size: 1 });
    const { waiter } = await pool.ask({ key: "k" });
    await bed().poolStore.withdraw(pool.partition, {
      waiter: waiter.id,
      connection: waiter.connection,
      lease: waiter.lease,
    });
    await pool.age(11_000);
    await bed().poolStore.reap(pool.partition);
    const again = await pool.ask({ key: "k" });
    expect(again.reply).toMatchObject({ kind: "waiting", waiter: again.waiter.id });
  });

  test("keeps the rank of a waiter without a connection for 10 s, passed over meanwhile", async () => {
    const pool = await PoolBed.create(bed(), { size: 3 });
    const keyed = await pool.ask({ key: "k" });
    const other = await pool.ask();
    expect(
      await bed().poolStore.withdraw(pool.partition, {
        waiter: keyed.waiter.id,
        connection: keyed.waiter.connection,
        lease: keyed.waiter.lease,
      }),
    ).toEqual({ kind: "kept" });
    await pool.launch(1);
    expect(await bed().poolStore.findHeld(pool.partition, other.waiter.lease)).toBeDefined();
    await pool.age(5000);
    await pool.beat();
    await bed().poolStore.reap(pool.partition);
    const third = await pool.ask();
    expect((await pool.ask({ key: "k" })).reply).toMatchObject({ kind: "waiting", waiter: keyed.waiter.id });
    await pool.launch(1);
    expect(await bed().poolStore.findHeld(pool.partition, keyed.waiter.lease)).toBeDefined();
    expect(await bed().poolStore.findHeld(pool.partition, third.waiter.lease)).toBeUndefined();
  });

  test("finds an idle browser at once when its place is taken over", async () => {
    const pool = await PoolBed.create(bed(), { size: 1 });
    const { waiter } = await pool.ask({ key: "k" });
    await bed().poolStore.withdraw(pool.partition, {
      waiter: waiter.id,
      connection: waiter.connection,
      lease: waiter.lease,
    });
    const [id] = await pool.launch(1);
    expect(heldOf((await pool.ask({ key: "k" })).reply)).toMatchObject({ id, lease: waiter.lease });
  });

  test("still finds its lease when the pool has become unsupported", async () => {
    const pool = await PoolBed.filled(bed(), { size: 1 });
    const held = await pool.lend({ key: "k" });
    await bed().poolStore.updatePool(pool.partition, {
      revision: 1,
      write: writeOf(pool.spec, ["profile"]),
      isNewLaunch: false,
      isNewNetwork: false,
      discard: false,
      request: request(),
    });
    expect(await pool.lend({ key: "k" })).toMatchObject({ lease: held.lease });
  });
});
