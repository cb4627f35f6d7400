import { describe, expect, test } from "vitest";
import type { BrowserId } from "../../../../src/base/ids.js";
import { openMessageListener } from "../../../support/egress/listener.js";
import { onBoth } from "../../../support/store/on-both.js";
import { controlA, controlB, heldOf, PoolBed } from "../../../support/store/pool-bed.js";
import { request } from "../../../support/store/store-bed.js";

onBoth("acquire", ({ bed, server }) => {
  describe("order", () => {
    test("the longest idle browser of one generation goes first", async () => {
      const pool = await PoolBed.create(bed(), { size: 3 });
      const [one, two, three] = await pool.launch(3);
      expect((await pool.lend()).id).toBe(one);
      expect((await pool.lend()).id).toBe(two);
      expect((await pool.lend()).id).toBe(three);
    });

    test("the freshest generation goes before a longer idle one", async () => {
      const pool = await PoolBed.create(bed(), { size: 2 });
      const [old] = await pool.launch(1);
      await pool.update({ stealth: true }, { isNewLaunch: true });
      const [fresh] = await pool.launch(1);
      expect((await pool.lend()).id).toBe(fresh);
      expect((await pool.lend()).id).toBe(old);
    });

    test("an idle browser of an older network generation is retired and never lent, whatever left it idle", async () => {
      const pool = await PoolBed.filled(bed(), { size: 1 });
      const [old] = await pool.browsers();
      await bed().redis.hincrby(pool.key("pool"), "networkGeneration", 1);
      expect((await pool.ask({ mayWait: false })).reply).toMatchObject({ kind: "none" });
      expect(await pool.record(old?.id as BrowserId)).toMatchObject({
        state: "retiring",
        why: "stale_network",
      });
    });

    test("a browser that comes back stands behind those that waited idle", async () => {
      const pool = await PoolBed.create(bed(), { size: 2 });
      const [one, two] = await pool.launch(2);
      await pool.release(await pool.lend());
      expect((await pool.lend()).id).toBe(two);
      expect((await pool.lend()).id).toBe(one);
    });

    test("a replaceable browser goes last", async () => {
      const pool = await PoolBed.create(bed(), { size: 2 });
      const [replaceable] = await pool.launch(1, { recycleAt: 1 });
      await bed().poolStore.recycle(pool.partition, { maxLeases: null, request: request() });
      const [other] = await pool.launch(1);
      expect((await pool.lend()).id).toBe(other);
      expect((await pool.lend()).id).toBe(replaceable);
    });
  });

  describe("waiting", () => {
    test("browsers that become idle go to the waiters in the order in which they asked", async () => {
      const pool = await PoolBed.filled(bed(), { size: 1 });
      const held = await pool.lend();
      const first = await pool.ask();
      const second = await pool.ask();
      await pool.release(held);
      expect((await pool.record(held.id)).lease?.id).toBe(first.waiter.lease);
      await pool.release({ ...held, lease: first.waiter.lease });
      expect((await pool.record(held.id)).lease?.id).toBe(second.waiter.lease);
      expect(await pool.counts()).toMatchObject({ waiting: 0, leased: 1 });
    });

    test("a newcomer does not overtake a waiter", async () => {
      const pool = await PoolBed.filled(bed(), { size: 1 });
      const held = await pool.lend();
      const waiting = await pool.ask();
      await pool.release(held);
      expect((await pool.ask()).reply.kind).toBe("waiting");
      expect((await pool.record(held.id)).lease?.id).toBe(waiting.waiter.lease);
    });

    test("the control of a served waiter is told, connection and browser included", async () => {
      const pool = await PoolBed.create(bed(), { size: 1 });
      const listener = await openMessageListener(server());
      const { waiter } = await pool.ask();
      const [id] = await pool.launch(1);
      const granted = (await listener.heard()).find(({ message }) => message.kind === "granted");
      listener.close();
      expect(granted).toMatchObject({
        channel: `remuda:control:${controlA}`,
        message: { waiter: waiter.id, connection: waiter.connection },
      });
      expect(JSON.parse(String(granted?.message["browser"]))).toMatchObject({
        id,
        state: "leased",
        lease: { id: waiter.lease },
      });
    });

    test("no waiter of a control without a beat is offered a browser; with the beat the place is what it was", async () => {
      const pool = await PoolBed.create(bed(), { size: 2 });
      const silent = await pool.ask({ control: controlB });
      await pool.age(6000);
      const beating = await pool.ask();
      await pool.launch(1);
      expect(await bed().poolStore.findHeld(pool.partition, beating.waiter.lease)).toBeDefined();
      expect(await bed().poolStore.findHeld(pool.partition, silent.waiter.lease)).toBeUndefined();
      await pool.beat(controlB);
      await pool.launch(1);
      expect(await bed().poolStore.findHeld(pool.partition, silent.waiter.lease)).toBeDefined();
    });

    test("a waiter who withdraws is passed over, and the browser becomes idle", async () => {
      const pool = await PoolBed.create(bed(), { size: 1 });
      const { waiter } = await pool.ask();
      expect(
        await bed().poolStore.withdraw(pool.partition, {
          waiter: waiter.id,
          connection: waiter.connection,
          lease: waiter.lease,
        }),
      ).toEqual({ kind: "withdrawn" });
      await pool.launch(1);
      expect(await pool.counts()).toMatchObject({ idle: 1, waiting: 0 });
    });

    test("a waiter who withdraws too late learns of the lease", async () => {
      const pool = await PoolBed.create(bed(), { size: 1 });
      const { waiter } = await pool.ask();
      const [id] = await pool.launch(1);
      const reply = await bed().poolStore.withdraw(pool.partition, {
        waiter: waiter.id,
        connection: waiter.connection,
        lease: waiter.lease,
      });
      expect(reply).toMatchObject({ kind: "granted", browser: { id } });
    });

    test("waiters of a lost control are forgotten by the reap tick, names given back", async () => {
      const pool = await PoolBed.create(bed(), { size: 1 });
      const { waiter } = await pool.ask({ name: "mine" });
      await bed().projects.reserveName({
        kind: "session",
        name: "mine",
        owner: waiter.lease,
        partition: pool.partition,
      });
      await pool.age(6000);
      await bed().poolStore.reap(pool.partition);
      expect(await pool.counts()).toMatchObject({ waiting: 0 });
      expect(await bed().projects.findName("session", "mine")).toBeUndefined();
    });
  });

  describe("refusals change nothing", () => {
    test("none: nothing is idle and the caller would not wait", async () => {
      const pool = await PoolBed.create(bed(), { size: 1 });
      await pool.beat();
      expect((await pool.ask({ mayWait: false })).reply).toEqual({ kind: "none" });
      expect(await pool.counts()).toMatchObject({ waiting: 0 });
    });

    test("missing: a deleted pool, one that never was, and another pool's id on this partition", async () => {
      const pool = await PoolBed.create(bed());
      const other = { ...pool, id: `${pool.partition}zzzzzzzzzzzz` };
      const waiter = (await pool.ask({ mayWait: false })).waiter;
      const before = await pool.dump();
      const asked = await bed().poolStore.acquire(pool.partition, {
        pool: other.id as typeof pool.id,
        waiter: { ...waiter, connection: request() },
        mayWait: true,
      });
      expect(asked).toEqual({ kind: "missing" });
      expect(await pool.dump()).toEqual(before);
      await bed().poolStore.deletePool(pool.partition, { force: false, request: request() });
      expect((await pool.ask()).reply).toEqual({ kind: "missing" });
      expect(await pool.dump()).toEqual({});
    });

    test("unsupported: a pool that needs what is not built names the fields", async () => {
      const pool = await PoolBed.create(bed(), {}, ["profile", "proxy_id"]);
      expect((await pool.ask()).reply).toEqual({ kind: "unsupported", fields: ["profile", "proxy_id"] });
      expect(await pool.counts()).toMatchObject({ waiting: 0 });
    });
  });

  test("a repeat under the same request id is the same answer and changes nothing", async () => {
    const pool = await PoolBed.filled(bed(), { size: 2 });
    const { waiter, reply } = await pool.ask();
    const before = await pool.dump();
    const again = await bed().poolStore.acquire(pool.partition, { pool: pool.id, waiter, mayWait: true });
    expect(again).toEqual(reply);
    expect(await pool.dump()).toEqual(before);
  });

  test("an answer is that of one script only: an undo under the acquire's request id is carried out", async () => {
    const pool = await PoolBed.filled(bed(), { size: 1 });
    const { waiter, reply } = await pool.ask();
    expect(await bed().poolStore.undo(pool.partition, heldOf(reply).lease, waiter.connection)).toBe("undone");
  });

  test("a lease takes the pool's timeout as it stands at the grant", async () => {
    const pool = await PoolBed.filled(bed(), { size: 2, timeout_seconds: 60 });
    const held = await pool.lend();
    await pool.update({ timeout_seconds: 100 });
    expect((await pool.record(held.id)).lease?.timeoutSeconds).toBe(60);
    expect((await pool.lend()).browser.lease.timeoutSeconds).toBe(100);
  });

  test("an acquire's start page is sent to the node with the grant", async () => {
    const pool = await PoolBed.filled(bed(), { size: 1 });
    const listener = await openMessageListener(server());
    const held = await pool.lend({ startUrl: "https://example.com/" });
    const heard = await listener.heard();
    listener.close();
    expect(heard).toContainEqual({
      channel: "remuda:node:node-a",
      message: { kind: "start", browser: held.id, lease: held.lease, url: "https://example.com/" },
    });
  });
});

onBoth(
  "a full queue",
  ({ bed }) => {
    test("full: the queue holds as many as it may", async () => {
      const pool = await PoolBed.create(bed(), { size: 1 });
      expect((await pool.ask()).reply.kind).toBe("waiting");
      expect((await pool.ask()).reply.kind).toBe("waiting");
      expect((await pool.ask()).reply).toEqual({ kind: "full" });
      expect(await pool.counts()).toMatchObject({ waiting: 2 });
    });
  },
  { maxWaiters: 2 },
);
