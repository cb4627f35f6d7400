import { describe, expect, test } from "vitest";
import { openMessageListener } from "../../../support/egress/listener.js";
import { checkIndex } from "../../../support/store/index-check.js";
import { onBoth } from "../../../support/store/on-both.js";
import { controlA, type Held, heldOf, nodeA, nodeB, PoolBed } from "../../../support/store/pool-bed.js";
import { claimOf, request } from "../../../support/store/store-bed.js";
import type { BrowserId } from "../../../../src/base/ids.js";

/** What one script retires at most; pools here are larger. */
const piece = 5;

onBoth(
  "discards",
  ({ bed }) => {
    const flush = (pool: PoolBed): Promise<string> => bed().poolStore.flush(pool.partition, request());
    const piecesOf = async (pool: PoolBed, isToSize = false): Promise<number> => {
      for (let pieces = 1; ; pieces += 1) {
        const left = await bed().poolStore.retireLeft(pool.partition, { isToSize, request: request() });
        if (left === "rid") return pieces;
      }
    };
    /** As any control's tick does. */
    const reapAll = async (pool: PoolBed): Promise<void> => {
      while ((await bed().poolStore.reap(pool.partition)).isMore) continue;
    };
    const statesOf = async (pool: PoolBed): Promise<Record<string, number>> => {
      const counts: Record<string, number> = {};
      for (const { state } of await pool.browsers()) counts[state] = (counts[state] ?? 0) + 1;
      return counts;
    };

    const indexIsRight = async ({ partition }: PoolBed): Promise<void> =>
      checkIndex(bed(), partition, (await bed().poolStore.browsers(partition)).browsers);

    describe("a flush of a pool that is larger than a piece", () => {
      test("lends none of its browsers from its answer on, and retires them in pieces", async () => {
        const pool = await PoolBed.filled(bed(), { size: 17 });
        expect(await flush(pool)).toBe("flushed");
        expect(bed().jobs).toHaveLength(piece);
        expect(await pool.counts()).toMatchObject({ idle: 0 });
        expect((await pool.ask({ mayWait: false })).reply.kind).toBe("none");
        expect(await bed().poolStore.wanted(pool.partition, 100)).toMatchObject({ count: 17 });
        expect(await piecesOf(pool)).toBe(3);
        expect(bed().jobs).toHaveLength(17);
        expect(await statesOf(pool)).toEqual({ retiring: 17 });
        expect(await pool.field("credit")).toBe(0);
        expect(await pool.moves()).toContain("idle retiring flushed");
      });

      test("leaves to the reap of any control what its own has not come to", async () => {
        const pool = await PoolBed.filled(bed(), { size: 17 });
        await flush(pool);
        await pool.launch(3);
        await reapAll(pool);
        expect(await statesOf(pool)).toEqual({ retiring: 17, idle: 3 });
        expect(await bed().redis.hget(pool.key("pool"), "discards")).toBeNull();
        await indexIsRight(pool);
      });

      test("has another one wait until its browsers are retired", async () => {
        const pool = await PoolBed.filled(bed(), { size: 17 });
        await flush(pool);
        const [fresh] = await pool.launch(2);
        expect(await flush(pool)).toBe("busy");
        expect(await pool.update({ stealth: true }, { isNewLaunch: true, discard: true })).toBe("busy");
        expect((await pool.found()).spec.stealth).toBe(false);
        await piecesOf(pool);
        expect(await flush(pool)).toBe("flushed");
        expect(await pool.state(fresh ?? ("" as BrowserId))).toBe("retiring");
      });

      test("races acquires: what is granted was idle before it, or was launched after it", async () => {
        const pool = await PoolBed.filled(bed(), { size: 40 });
        const older = new Set((await pool.browsers()).map(({ id }) => id));
        const early = Array.from({ length: 10 }, () => pool.ask({ mayWait: false }));
        const flushed = flush(pool);
        const late = Array.from({ length: 10 }, () => pool.ask({ mayWait: false }));
        await flushed;
        const after = await Promise.all(Array.from({ length: 10 }, () => pool.ask({ mayWait: false })));
        expect(after.map(({ reply }) => reply.kind)).toEqual(Array.from({ length: 10 }, () => "none"));
        const granted = (await Promise.all([...early, ...late])).filter(
          ({ reply }) => reply.kind === "granted",
        );
        await piecesOf(pool);
        expect(await statesOf(pool)).toEqual({
          retiring: 40 - granted.length,
          ...(granted.length > 0 && { leased: granted.length }),
        });
        for (const { reply } of granted) expect(older.has(heldOf(reply).id)).toBe(true);
      });

      test("gives its browsers no place in line again when their node drains, is silent, or answers", async () => {
        const pool = await PoolBed.create(bed(), { size: 14 });
        await pool.launch(7, { node: nodeA });
        await pool.launch(7, { node: nodeB });
        await flush(pool);
        const { poolStore } = bed();
        await poolStore.silenceNode(pool.partition, nodeA, 60_000);
        await poolStore.silenceNode(pool.partition, nodeA, 0);
        const drains = { node: nodeB, ms: 60_000 };
        await poolStore.recycle(pool.partition, { maxLeases: null, drains, request: request() });
        await poolStore.reopenNode(pool.partition, nodeB);
        expect(await pool.counts()).toMatchObject({ idle: 0 });
        expect(await bed().redis.scard(pool.key("replaceable"))).toBe(0);
        expect(await pool.field("credit")).toBe(0);
        await piecesOf(pool);
        expect(await statesOf(pool)).toEqual({ retiring: 14 });
      });

      test("counts none of its browsers that were to be replaced as one that serves", async () => {
        const pool = await PoolBed.create(bed(), { size: 20 });
        await pool.launch(20, { recycleAt: 1 });
        await bed().poolStore.recycle(pool.partition, { maxLeases: null, request: request() });
        await flush(pool);
        expect(await bed().redis.scard(pool.key("replaceable"))).toBeGreaterThan(0);
        expect(await bed().poolStore.wanted(pool.partition, 100)).toMatchObject({ count: 20 });
      });

      test("is not hindered by those that end meanwhile by themselves or with their node", async () => {
        const pool = await PoolBed.create(bed(), { size: 16 });
        const [crashes] = await pool.launch(8, { node: nodeA });
        await pool.launch(8, { node: nodeB });
        await flush(pool);
        const last = (await pool.browsers()).find(({ id, state }) => id !== crashes && state === "idle");
        if (!last) throw new Error("all were retired at once");
        expect(await bed().reports.end(last.id, "crashed", "SIGSEGV")).toMatchObject({ kind: "retiring" });
        const lost = { node: nodeB, why: "node_lost", which: "lost", request: request() } as const;
        expect(await bed().poolStore.clearNode(pool.partition, lost)).toBe(8);
        await piecesOf(pool);
        expect(await statesOf(pool)).toEqual({ retiring: 8 });
        expect(await bed().redis.exists(pool.key("discarded"))).toBe(0);
        await indexIsRight(pool);
      });
    });

    describe("a change", () => {
      test("that discards all idle ones lends none of them, and pays for all at once", async () => {
        const pool = await PoolBed.filled(bed(), { size: 12 });
        await pool.update({ stealth: true, fill_rate_per_minute: 0 }, { isNewLaunch: true, discard: true });
        expect((await pool.ask({ mayWait: false })).reply.kind).toBe("none");
        expect(await pool.claim(12)).toHaveLength(12);
        await piecesOf(pool);
        expect(await statesOf(pool)).toEqual({ retiring: 12, launching: 12 });
      });

      test("retires a launch under the older configuration that comes before it was found", async () => {
        const pool = await PoolBed.create(bed(), { size: 12 });
        const claimed = await pool.claim(12);
        await pool.update({ stealth: true }, { isNewLaunch: true, discard: true });
        const launching = (await pool.browsers()).filter(({ state }) => state === "launching");
        expect(launching).toHaveLength(12 - piece);
        const [late] = launching;
        if (!late) throw new Error("all were found");
        await bed().reports.launched(late.id, claimOf(late), "{}");
        expect(await pool.record(late.id)).toMatchObject({ state: "retiring", why: "discarded" });
        await piecesOf(pool);
        expect(await statesOf(pool)).toEqual({ retiring: claimed.length });
      });

      test("that shrinks the pool retires launches first, then the longest idle, never a leased one", async () => {
        const pool = await PoolBed.create(bed(), { size: 20 });
        const idle = await pool.launch(12);
        const held = await pool.lend();
        await pool.claim(7);
        await pool.update({ size: 2 });
        expect(await statesOf(pool)).toEqual({ retiring: piece, launching: 2, idle: 11, leased: 1 });
        await piecesOf(pool, true);
        expect(await statesOf(pool)).toEqual({ retiring: 17, idle: 1, leased: 1 });
        expect(await pool.state(idle.at(-1) ?? held.id)).toBe("idle");
      });

      test("that shrinks the pool is finished by a reap where its control has died", async () => {
        const pool = await PoolBed.filled(bed(), { size: 20 });
        await pool.update({ size: 3 });
        await reapAll(pool);
        expect(await statesOf(pool)).toEqual({ retiring: 17, idle: 3 });
      });
    });

    describe("a deletion by force of a pool that is larger than a piece", () => {
      const remove = (pool: PoolBed): Promise<string> =>
        bed().poolStore.deletePool(pool.partition, { force: true, request: request() });

      test("lends nothing from its answer on, and ends all leases in pieces, those before what nobody holds", async () => {
        const pool = await PoolBed.filled(bed(), { size: 16 });
        const held: Held[] = [];
        for (let count = 0; count < 8; count += 1) held.push(await pool.lend());
        expect(await remove(pool)).toBe("deleted");
        expect((await pool.ask()).reply.kind).toBe("missing");
        expect(await statesOf(pool)).toEqual({ leased: 3, idle: 8, retiring: piece });
        // A holder may come before the next piece.
        const [last] = held.filter(({ id }) => bed().jobs.every(({ browser }) => browser !== id));
        if (!last) throw new Error("all leases were ended at once");
        expect(await pool.release(last)).toBe("released");
        await piecesOf(pool);
        expect(await statesOf(pool)).toEqual({ retiring: 16 });
        expect(bed().ended).toHaveLength(8);
        await pool.clear();
        expect(await pool.dump()).toEqual({});
      });

      test("is finished by a reap where its control has died", async () => {
        const pool = await PoolBed.filled(bed(), { size: 16 });
        for (let count = 0; count < 12; count += 1) await pool.lend();
        await remove(pool);
        await reapAll(pool);
        expect(await statesOf(pool)).toEqual({ retiring: 16 });
        expect(bed().ended.map(({ why }) => why)).toEqual(Array.from({ length: 12 }, () => "pool_deleted"));
      });
    });
  },
  { retiredAtOnce: piece },
);

onBoth(
  "waiters of a deleted pool",
  ({ bed, server }) => {
    test("are all told, also where it has no browser and more wait than a piece", async () => {
      const pool = await PoolBed.create(bed(), { size: 1 });
      const asked = await Promise.all(Array.from({ length: 12 }, () => pool.ask()));
      const listener = await openMessageListener(server());
      const { poolStore } = bed();
      await poolStore.deletePool(pool.partition, { force: false, request: request() });
      while ((await poolStore.reap(pool.partition)).isMore) continue;
      const heard = await listener.heard();
      listener.close();
      expect(
        heard
          .filter(({ channel }) => channel === `remuda:control:${controlA}`)
          .map(({ message }) => (message as { waiter?: string }).waiter)
          .toSorted(),
      ).toEqual(asked.map(({ waiter }) => waiter.id).toSorted());
      expect(await pool.dump()).toEqual({});
    });
  },
  { retiredAtOnce: piece },
);
