import { expect, test } from "vitest";
import { newLeaseId, newRequestId } from "../../../../src/base/ids.js";
import type { Waiter } from "../../../../src/pool/ports/pool-store.js";
import { onBoth } from "../../../support/store/on-both.js";
import { type Held, PoolBed } from "../../../support/store/pool-bed.js";
import { claimOf } from "../../../support/store/store-bed.js";

/** With numbers in place of ids, in the order in which they come, and no instants. */
function told(dump: Readonly<Record<string, string>>): string {
  const ids: string[] = [];
  const numbered = (id: string): string => {
    if (!ids.includes(id)) ids.push(id);
    return `id ${ids.indexOf(id)}`;
  };
  return Object.entries(dump)
    .map((entry) => entry.join(" "))
    .join("\n")
    .replaceAll(/\b\d{13}-\d+/g, "place")
    .replaceAll(/\d{10}\.\d+|\d{13,16}/g, "instant")
    .replaceAll(/\b(?:[a-z\d]{24}|[a-z\d]{12})\b/g, numbered);
}

onBoth(
  "what is warm",
  ({ bed }) => {
    /** Only warm scripts ask whether a key exists. */
    const warmCalls = async (): Promise<number> =>
      Number(/cmdstat_exists:calls=(\d+)/.exec(await bed().redis.info("commandstats"))?.[1] ?? 0);

    /** A pool whose next requests are carried out whole, since such a one has just been. */
    async function coldPool(): Promise<PoolBed> {
      const pool = await PoolBed.create(bed(), { size: 1 });
      await pool.ask({ mayWait: false });
      const [browser] = await pool.launch(1);
      if (!browser) throw new Error("nothing was launched");
      await pool.release({ id: browser, lease: newLeaseId() } as Held);
      const key = `remuda:${bed().project}:{${pool.partition}}:pool`;
      await bed().redis.hset(key, "closed", "{}");
      await bed().reports.freed(browser, newRequestId() as never);
      await bed().redis.hdel(key, "closed");
      return pool;
    }

    const cases: readonly [what: string, asked: Partial<Waiter>, isOpened: boolean, becomes: string][] = [
      ["a lease that nobody used", {}, false, "idle"],
      ["one with a name and tags", { name: "mine", tags: '{"a":"b"}', holder: "somebody" }, false, "idle"],
      ["one that a client has opened", {}, true, "resetting"],
      ["one with a start page", { startUrl: "https://example.com/" }, false, "resetting"],
      ["one that captures", { telemetry: '{"enabled":true}' }, false, "idle"],
    ];
    test.each(cases)(
      "%s leaves what it leaves where all is looked at",
      async (...[, asked, isOpened, state]) => {
        const pools = [await PoolBed.filled(bed(), { size: 1 }), await coldPool()];
        const left: unknown[] = [];
        for (const pool of pools) {
          const before = await warmCalls();
          const held = await pool.lend(asked);
          const lent = told(await pool.dump());
          if (isOpened) await pool.connect(held);
          bed().ended.length = 0;
          expect(await pool.release(held)).toBe("released");
          expect(await pool.state(held.id)).toBe(state);
          const [ended] = bed().ended;
          const released = told(await pool.dump());
          if (state === "resetting") expect(await pool.freed(held.id)).toBe("freed");
          expect(await pool.state(held.id)).toBe("idle");
          const calls = state === "resetting" ? 3 : 2;
          expect((await warmCalls()) - before).toBe(pool === pools[0] ? calls : 0);
          left.push({
            lent,
            released,
            freed: told(await pool.dump()),
            hadClient: ended?.hadClient,
            why: ended?.why,
          });
        }
        expect(left[0]).toEqual(left[1]);
      },
    );

    test("a browser that is reported fenced twice at once is idle once, and what is cold says the same", async () => {
      const left: unknown[] = [];
      for (const pool of [await PoolBed.filled(bed(), { size: 1 }), await coldPool()]) {
        const before = await warmCalls();
        const held = await pool.lend();
        await pool.connect(held);
        await pool.release(held);
        const claim = claimOf(await pool.record(held.id));
        const twice = [1, 2].map(() => bed().reports.freed(held.id, claim));
        const answers = await Promise.all(twice);
        left.push({ answers, dump: told(await pool.dump()) });
        expect((await warmCalls()) > before).toBe(left.length === 1);
      }
      expect(left[0]).toEqual(left[1]);
      expect(left[0]).toMatchObject({ answers: ["freed", "stale"] });
    });

    test("a repeat of an acquire is given the lease again, and not once it has ended", async () => {
      const pool = await PoolBed.filled(bed(), { size: 2 });
      const { waiter, reply } = await pool.ask();
      const ask = () => bed().poolStore.acquire(pool.partition, { pool: pool.id, waiter, mayWait: true });
      expect(await ask()).toEqual(reply);
      await bed().poolStore.undo(pool.partition, waiter.lease, waiter.connection);
      expect(await ask()).toEqual({ kind: "over" });
      expect(await pool.counts()).toMatchObject({ idle: 2, leased: 0 });
    });
  },
  { maxLeases: null },
);
