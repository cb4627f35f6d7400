import { expect, test } from "vitest";
import { newLeaseId, newRequestId, onDemandPartition } from "../../../src/base/ids.js";
import { onBoth } from "../../support/store/on-both.js";
import { controlA, heldOf, nodeA, PoolBed } from "../../support/store/pool-bed.js";
import { candidateOn, claimOf, poolSpec, request } from "../../support/store/store-bed.js";

/** What a browser's end has to do with its profile. */
onBoth("profiles at the end of leases", ({ bed }) => {
  async function onDemand(facts: object) {
    const id = newRequestId();
    const created = await bed().poolStore.createSession(onDemandPartition, {
      waiter: { id, lease: newLeaseId(), control: controlA, connection: id, timeoutSeconds: 60 },
      template: poolSpec(),
      candidate: {
        ...candidateOn(onDemandPartition, nodeA),
        facts: JSON.stringify({
          headless: true,
          stealth: false,
          kiosk_mode: false,
          memory: "1GiB",
          ...facts,
        }),
      },
    });
    if (created.kind !== "claimed") throw new Error(created.kind);
    await bed().reports.launched(created.browser.id, claimOf(created.browser), "{}");
    return created.browser.id;
  }
  const remove = async (browser: Awaited<ReturnType<typeof onDemand>>) => {
    const reply = await bed().poolStore.release(onDemandPartition, {
      browser,
      reuse: false,
      why: "deleted",
      isRetry: false,
      request: request(),
    });
    return reply.kind;
  };

  test.each([
    [{ saves: true }, "saving", true],
    [{ saves: false }, "released", undefined],
    [{}, "released", undefined],
  ])("the release of an on-demand browser launched with %j answers %s", async (facts, answer, saving) => {
    const browser = await onDemand(facts);
    expect(await remove(browser)).toBe(answer);
    const record: { state?: string; saving?: boolean } | undefined = (
      await bed().poolStore.findBrowser(browser)
    )?.browser;
    expect([record?.state, record?.saving]).toEqual(["retiring", saving]);
  });

  test.each([
    [true, "saving"],
    [false, "released"],
  ])(
    "a lease whose attached profile is saved: %s answers %s, and a repeat the same",
    async (save, answer) => {
      const pool = await PoolBed.filled(bed(), { size: 1 });
      const held = await pool.lend();
      await bed().poolStore.touch(pool.partition, {
        browser: held.id,
        lease: held.lease,
        request: request(),
        change: {
          set: { profile: JSON.stringify({ id: "p", save }) },
          clear: [],
          touched: true,
          altered: true,
        },
      });
      const once = request();
      expect(await pool.release(held, { request: once })).toBe(answer);
      expect(await pool.release(held, { request: once })).toBe(answer);
      expect(await pool.record(held.id)).toMatchObject({ state: "retiring", why: "altered" });
    },
  );

  test("a refresh of a large pool retires all that is older in pieces, and lends what is newer meanwhile", async () => {
    const pool = await PoolBed.filled(bed(), { size: 260 });
    const held = await pool.lend();
    await pool.age(1000);
    for (let count = 0; count < 3; count += 1) await bed().reports.end((await pool.lend()).id, "crashed", "");
    const fresh = await pool.launch(3);
    const before = (await pool.record(fresh[0] ?? held.id)).createdAt;
    const first = await bed().poolStore.refresh(pool.partition, { before, request: request() });
    expect(first).toMatchObject({ isClean: false, from: expect.any(String) });
    expect(await pool.counts()).toMatchObject({ idle: 239 });
    await pool.refresh(before);
    expect(await pool.counts()).toMatchObject({ idle: 3, leased: 1 });
    // What was in use meanwhile goes with a later one, which ends only when it has found nothing.
    await pool.release(held);
    await pool.refresh(before);
    expect(await pool.counts()).toMatchObject({ idle: 3, leased: 0 });
    for (const id of fresh) expect(await pool.state(id)).toBe("idle");
  });

  test("a refresh retires what was claimed before the save, and a repeat nothing more", async () => {
    const pool = await PoolBed.create(bed(), { size: 3 });
    const [old] = await pool.launch(1);
    const leased = heldOf((await pool.ask()).reply);
    await pool.age(1000);
    const [fresh, last] = await pool.launch(2);
    await pool.release(leased);
    const since = (await pool.record(fresh ?? leased.id)).createdAt;
    const ask = { before: since, request: request() };
    const told = await bed().poolStore.refresh(pool.partition, ask);
    expect(await bed().poolStore.refresh(pool.partition, ask)).toEqual(told);
    expect(await Promise.all([old, fresh, last].map((id) => pool.state(id ?? leased.id)))).toEqual([
      "retiring",
      "idle",
      "idle",
    ]);
    await pool.refresh(since);
    expect(await pool.counts()).toMatchObject({ idle: 2 });
    await bed().poolStore.flush(pool.partition, request());
    expect(await pool.counts()).toMatchObject({ idle: 0 });
  });
});
