import { describe, expect, test } from "vitest";
import { newLeaseId, newProfileId } from "../../../../src/base/ids.js";
import { openMessageListener } from "../../../support/egress/listener.js";
import { onBoth } from "../../../support/store/on-both.js";
import { PoolBed } from "../../../support/store/pool-bed.js";
import { claimOf, request } from "../../../support/store/store-bed.js";

onBoth("release", ({ bed, server }) => {
  test("a lease that no client ever used goes to idle in the same script", async () => {
    const pool = await PoolBed.filled(bed(), { size: 1 });
    const held = await pool.lend();
    expect(await pool.release(held)).toBe("released");
    expect(await pool.record(held.id)).toMatchObject({ state: "idle", served: 1, lastLease: held.lease });
  });

  test("a lease that had a client is fenced first: idle only when the node confirms", async () => {
    const pool = await PoolBed.filled(bed(), { size: 1 });
    const held = await pool.lend();
    await pool.connect(held);
    const listener = await openMessageListener(server());
    await pool.release(held);
    const { claim } = await pool.record(held.id);
    expect(await listener.heard()).toContainEqual({
      channel: "remuda:node:node-a",
      message: { kind: "fence", browser: held.id, lease: held.lease, claim, mode: "none" },
    });
    listener.close();
    expect(bed().jobs).toEqual([]);
    expect((await pool.ask({ mayWait: false })).reply.kind).toBe("none");
    expect(await pool.freed(held.id)).toBe("freed");
    expect((await pool.lend()).id).toBe(held.id);
  });

  test("after the release the old lease registers no client", async () => {
    const pool = await PoolBed.filled(bed(), { size: 1 });
    const held = await pool.lend();
    await pool.release(held);
    const next = await pool.lend();
    expect(await pool.connect(held)).toEqual({ kind: "over", why: "released" });
    expect(await pool.connect(next)).toMatchObject({
      kind: "connected",
      browser: { lease: { registrations: 1 } },
    });
  });

  test("a release that comes again under its own lease has released, whoever has the browser by now", async () => {
    const pool = await PoolBed.filled(bed(), { size: 1 });
    const first = await pool.lend();
    await pool.release(first);
    const second = await pool.lend();
    expect(await pool.release(first)).toBe("already");
    await pool.release(second);
    const third = await pool.lend();
    expect(await pool.release(first)).toBe("already");
    expect(await pool.release(first, { reuse: false })).toBe("already");
    expect(await pool.state(first.id)).toBe("leased");
    expect(await pool.release(first, { why: "deleted" })).toBe("superseded");
    expect(await pool.release({ ...first, lease: newLeaseId() })).toBe("superseded");
    await pool.release(third, { reuse: false });
    await pool.clear();
    expect([await pool.release(first), await pool.state(first.id)]).toEqual(["already", "gone"]);
  });

  test("a release that names its lease leaves nothing but its answer, which outlasts whoever repeats it", async () => {
    const pool = await PoolBed.filled(bed(), { size: 1 });
    const ended = (): Promise<number> => bed().redis.zcard(pool.key("endedLeases"));
    const held = await pool.lend();
    const asked = request();
    expect(await pool.release(held, { request: asked })).toBe("released");
    expect(await ended()).toBe(0);
    const next = await pool.lend();
    await pool.age(90_000);
    expect(await pool.release(held, { request: asked })).toBe("released");
    expect(await pool.release(held)).toBe("already");
    expect((await pool.record(held.id)).lease?.id).toBe(next.lease);
    await pool.age(40_000);
    expect(await pool.release(held)).toBe("superseded");
    await pool.releaseUnnamed(next.id);
    expect(await ended()).toBe(1);
  });

  describe("reset_on_release", () => {
    test("state: a reset job goes with the fence", async () => {
      const pool = await PoolBed.filled(bed(), { size: 1, reset_on_release: "state" });
      const held = await pool.lend();
      await pool.connect(held);
      await pool.release(held);
      const { claim } = await pool.record(held.id);
      expect(bed().jobs).toEqual([{ kind: "reset", node: "node-a", browser: held.id, claim }]);
      expect(await pool.freed(held.id)).toBe("freed");
    });

    test.each([
      ["relaunch", { reset_on_release: "relaunch" }],
      ["state, of a pool with a profile", { reset_on_release: "state", profile_id: newProfileId() }],
    ] as const)("%s: the browser is retired and its replacement launched on credit", async (_, over) => {
      const pool = await PoolBed.filled(bed(), { size: 1, ...over });
      await pool.update({ fill_rate_per_minute: 0 });
      const held = await pool.lend();
      await pool.connect(held);
      await pool.release(held);
      expect(await pool.record(held.id)).toMatchObject({ state: "retiring", why: "released" });
      expect(await pool.claim(2)).toMatchObject([{ paid: "credit" }]);
    });

    test("reuse false ends the browser in every mode; its replacement costs a token", async () => {
      const pool = await PoolBed.filled(bed(), { size: 1 });
      const held = await pool.lend();
      await pool.release(held, { reuse: false });
      expect(await pool.record(held.id)).toMatchObject({ state: "retiring", why: "released" });
      expect(await pool.field("credit")).toBe(0);
      expect(bed().jobs).toMatchObject([{ kind: "retire", browser: held.id }]);
    });

    test("a browser that a PATCH touched is fenced although no client came", async () => {
      const pool = await PoolBed.filled(bed(), { size: 1 });
      const held = await pool.lend();
      await bed().poolStore.touch(pool.partition, {
        browser: held.id,
        change: { set: { viewport: "{}" }, clear: [], touched: true },
        request: request(),
      });
      await pool.release(held);
      expect(await pool.state(held.id)).toBe("resetting");
    });

    test("a browser that its holder altered is retired in every mode", async () => {
      const pool = await PoolBed.filled(bed(), { size: 1 });
      const held = await pool.lend();
      await bed().poolStore.touch(pool.partition, {
        browser: held.id,
        change: { set: {}, clear: [], touched: true, altered: true },
        request: request(),
      });
      await pool.release(held);
      expect(await pool.record(held.id)).toMatchObject({ state: "retiring", why: "altered" });
    });

    test.each([
      ["state", "retiring"],
      ["none", "resetting"],
    ] as const)(
      "a browser that was given an extension, in a pool that resets %s, is %s, for its next holder too",
      async (reset, state) => {
        const pool = await PoolBed.filled(bed(), { size: 1, reset_on_release: "none" });
        const held = await pool.lend();
        await bed().poolStore.touch(pool.partition, {
          browser: held.id,
          change: { set: {}, clear: [], touched: true, uploaded: true },
          request: request(),
        });
        await pool.release(held);
        await pool.freed(held.id);
        await pool.update({ reset_on_release: reset });
        const next = await pool.lend();
        await pool.connect(next);
        await pool.release(next);
        expect(await pool.state(held.id)).toBe(state);
      },
    );
  });

  describe("which lease is meant", () => {
    test("superseded: a lease that is not the holder's ends nothing", async () => {
      const pool = await PoolBed.filled(bed(), { size: 1 });
      const held = await pool.lend();
      await pool.release(held);
      const next = await pool.lend();
      const before = await pool.dump();
      expect(await pool.release(held)).toBe("already");
      expect(await pool.release(next, { lease: newLeaseId() })).toBe("superseded");
      expect(await pool.dump()).toEqual(before);
    });

    test("already: releasing what is already released is no error, named or not", async () => {
      const pool = await PoolBed.filled(bed(), { size: 1 });
      const held = await pool.lend();
      await pool.release(held);
      const before = await pool.dump();
      expect(await pool.release(held)).toBe("already");
      expect(await pool.releaseUnnamed(held.id)).toBe("already");
      expect(await pool.dump()).toEqual(before);
    });

    test("a retry that names no lease ends nothing within 120 s of the lease's end, whoever holds the session by now", async () => {
      const pool = await PoolBed.filled(bed(), { size: 1 });
      const first = await pool.lend();
      await pool.releaseUnnamed(first.id);
      const next = await pool.lend();
      expect(await pool.releaseUnnamed(first.id, { isRetry: true })).toBe("already");
      expect((await pool.record(first.id)).lease?.id).toBe(next.lease);
      await pool.age(121_000);
      expect(await pool.releaseUnnamed(first.id, { isRetry: true })).toBe("released");
    });

    test("a retry whose session never had a lease end is the first to arrive, and ends the lease", async () => {
      const pool = await PoolBed.filled(bed(), { size: 1 });
      const held = await pool.lend();
      expect(await pool.releaseUnnamed(held.id, { isRetry: true })).toBe("released");
    });

    test("a first release and a retry that names the lease end it at once", async () => {
      const pool = await PoolBed.filled(bed(), { size: 1 });
      await pool.release(await pool.lend());
      const second = await pool.lend();
      expect(await pool.releaseUnnamed(second.id)).toBe("released");
      const third = await pool.lend();
      expect(await pool.release(third, { isRetry: true })).toBe("released");
    });

    test("unknown: a browser that is gone, launching, or was never here", async () => {
      const pool = await PoolBed.create(bed(), { size: 1 });
      const [launching] = await pool.claim(1);
      if (!launching) throw new Error("nothing was claimed");
      expect(await pool.releaseUnnamed(launching.id)).toBe("unknown");
      await bed().reports.launchFailed(launching.id, claimOf(launching), "no");
      expect(await pool.releaseUnnamed(launching.id)).toBe("unknown");
    });
  });

  test("a repeat under the same request id answers the same and leaves the next holder alone", async () => {
    const pool = await PoolBed.filled(bed(), { size: 1 });
    const held = await pool.lend();
    const id = request();
    expect(await pool.releaseUnnamed(held.id, { request: id })).toBe("released");
    const next = await pool.lend();
    const before = await pool.dump();
    expect(await pool.releaseUnnamed(held.id, { request: id })).toBe("released");
    expect(await pool.dump()).toEqual(before);
    expect((await pool.record(next.id)).lease?.id).toBe(next.lease);
  });

  test("the lease's name is given back with it", async () => {
    const pool = await PoolBed.filled(bed(), { size: 1 });
    const held = await pool.lend({ name: "mine" });
    await bed().projects.reserveName({
      kind: "session",
      name: "mine",
      owner: held.lease,
      partition: pool.partition,
    });
    await pool.release(held);
    expect(await bed().projects.findName("session", "mine")).toBeUndefined();
  });

  test("the moves of a lease are on the stream, its id on both ends", async () => {
    const pool = await PoolBed.filled(bed(), { size: 1 });
    const held = await pool.lend();
    await pool.release(held);
    const events = (await bed().redis.xrange(pool.key("events"), "-", "+"))
      .slice(-2)
      .map(([, fields]) => fields.join(" "));
    expect(events).toEqual([
      `browser ${held.id} lease ${held.lease} from idle to leased why granted`,
      `browser ${held.id} lease ${held.lease} from leased to idle why released`,
    ]);
  });
});
