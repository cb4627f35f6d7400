import { describe, expect, test } from "vitest";
import { onBoth } from "../../../support/store/on-both.js";
import { PoolBed } from "../../../support/store/pool-bed.js";
import { claimOf, request, writeOf } from "../../../support/store/store-bed.js";

const states = async (pool: PoolBed, ids: readonly (string | undefined)[]): Promise<readonly string[]> =>
  Promise.all(ids.map((id) => pool.state((id ?? "") as never)));

onBoth("update-pool", ({ bed }) => {
  test("writes over the revision it was merged from; another is `changed` and changes nothing", async () => {
    const pool = await PoolBed.filled(bed(), { size: 2 });
    expect(await pool.update({ timeout_seconds: 90 })).toBe("updated");
    expect((await pool.found()).spec.timeout_seconds).toBe(90);
    pool.revision = 1;
    const before = await pool.dump();
    expect(await pool.update({ size: 1 })).toBe("changed");
    expect(await pool.dump()).toEqual(before);
  });

  test("a repeat under the same request id answers the same and changes nothing", async () => {
    const pool = await PoolBed.filled(bed(), { size: 2 });
    const id = request();
    await pool.update({ stealth: true }, { isNewLaunch: true, discard: true, request: id });
    const before = await pool.dump();
    pool.revision = 1;
    expect(await pool.update({ stealth: true }, { isNewLaunch: true, discard: true, request: id })).toBe(
      "updated",
    );
    expect(await pool.dump()).toEqual(before);
  });

  test("a deleted pool is missing", async () => {
    const pool = await PoolBed.create(bed());
    await bed().poolStore.deletePool(pool.partition, { force: false, request: request() });
    expect(await pool.update({ size: 5 })).toBe("missing");
    expect(await pool.dump()).toEqual({});
  });

  describe("shrinking", () => {
    test("takes launching first, then stale idle, then longest idle", async () => {
      const pool = await PoolBed.create(bed(), { size: 4 });
      const [stale] = await pool.launch(1);
      await pool.update({ stealth: true }, { isNewLaunch: true });
      const [longest, fresh] = await pool.launch(2);
      const [launching] = await pool.claim(1);
      await pool.update({ size: 3 });
      expect(await states(pool, [launching?.id, stale, longest, fresh])).toEqual([
        "retiring",
        "idle",
        "idle",
        "idle",
      ]);
      await pool.update({ size: 2 });
      expect(await states(pool, [stale, longest, fresh])).toEqual(["retiring", "idle", "idle"]);
      await pool.update({ size: 1 });
      expect(await states(pool, [longest, fresh])).toEqual(["retiring", "idle"]);
    });

    test("never takes a leased one; what would become idle above size is retired in that same script", async () => {
      const pool = await PoolBed.filled(bed(), { size: 3 });
      const held = [await pool.lend(), await pool.lend(), await pool.lend()];
      await pool.update({ size: 1 });
      expect(await pool.counts()).toMatchObject({ leased: 3 });
      for (const one of held) await pool.release(one);
      expect(
        await states(
          pool,
          held.map((one) => one.id),
        ),
      ).toEqual(["retiring", "retiring", "idle"]);
      expect((await pool.record(held[0]?.id ?? ("" as never))).why).toBe("above_size");
    });

    test("gives the token of a cancelled launch back", async () => {
      const pool = await PoolBed.create(bed(), { size: 4, fill_rate_per_minute: 100 });
      await pool.claim(4);
      expect(await pool.field("tokens")).toBeLessThan(0.1);
      await pool.update({ size: 2 });
      const tokens = await pool.field("tokens");
      // A part of one comes by itself meanwhile.
      expect(tokens).toBeGreaterThanOrEqual(2);
      expect(tokens).toBeLessThan(2.9);
      expect(await pool.counts()).toMatchObject({ launching: 2 });
    });

    test("ends the surge: a replaceable browser goes before its replacement came", async () => {
      const pool = await PoolBed.create(bed(), { size: 4 });
      const [replaceable] = await pool.launch(1, { recycleAt: 1 });
      await pool.launch(3);
      await bed().poolStore.recycle(pool.partition, { maxLeases: null, request: request() });
      await pool.claim(1);
      await pool.update({ size: 3 });
      expect(await pool.state(replaceable ?? ("" as never))).toBe("retiring");
      expect(await pool.counts()).toMatchObject({ launching: 0, idle: 3 });
    });
  });

  describe("discard_all_idle", () => {
    test("retires idle ones on credit, and those launching under an older generation; leased ones return stale", async () => {
      const pool = await PoolBed.create(bed(), { size: 3 });
      await pool.launch(2);
      const held = await pool.lend();
      const [launching] = await pool.claim(1);
      await pool.update({ stealth: true }, { isNewLaunch: true, discard: true });
      expect(await pool.counts()).toMatchObject({ idle: 0, launching: 0, leased: 1, stale: 1 });
      expect(
        await bed()
          .reports.launched(launching?.id ?? ("" as never), claimOf(launching ?? held.browser), "{}")
          .catch(() => "stale"),
      ).toBe("stale");
      expect(await pool.claim(3)).toMatchObject([
        { paid: "credit", generation: 2 },
        { paid: "credit", generation: 2 },
      ]);
      await pool.release(held);
      expect(await pool.record(held.id)).toMatchObject({ state: "idle", generation: 1 });
    });

    test("without a new configuration leaves what is launching alone", async () => {
      const pool = await PoolBed.create(bed(), { size: 2 });
      await pool.launch(1);
      await pool.claim(1);
      await pool.update({}, { discard: true });
      expect(await pool.counts()).toMatchObject({ idle: 0, launching: 1 });
    });
  });

  describe("a new network", () => {
    test("retires idle ones on credit; afterwards nobody is handed an older one", async () => {
      const pool = await PoolBed.create(bed(), { size: 3 });
      await pool.launch(2);
      const held = await pool.lend();
      const [launching] = await pool.claim(1);
      await pool.update({ network: { allowed_hosts: ["example.com"] } }, { isNewNetwork: true });
      expect((await pool.ask({ mayWait: false })).reply.kind).toBe("none");
      await bed().reports.launched(launching?.id ?? ("" as never), claimOf(launching ?? held.browser), "{}");
      await pool.release(held);
      expect((await pool.ask({ mayWait: false })).reply.kind).toBe("none");
      expect(await pool.counts()).toMatchObject({ idle: 0, leased: 0, launching: 0 });
      expect(await pool.field("credit")).toBe(3);
      const [fresh] = await pool.launch(3);
      expect(await pool.record(fresh ?? ("" as never))).toMatchObject({
        networkGeneration: 2,
        generation: 2,
      });
    });

    test("is part of what is launched from then on, also where nothing else changed", async () => {
      const pool = await PoolBed.create(bed(), { size: 1 });
      await pool.update({ network: { allowed_hosts: ["example.com"] } }, { isNewNetwork: true });
      const [browser] = await pool.claim(1);
      expect(await bed().poolStore.findTemplate(pool.partition, browser?.templateKey ?? "")).toMatchObject({
        network: { allowed_hosts: ["example.com"] },
      });
    });

    test("a waiter is not handed a browser launched under the older one", async () => {
      const pool = await PoolBed.create(bed(), { size: 1 });
      const [browser] = await pool.claim(1);
      const { waiter } = await pool.ask();
      await pool.update({ network: { allowed_hosts: ["example.com"] } }, { isNewNetwork: true });
      if (browser) await bed().reports.launched(browser.id, claimOf(browser), "{}");
      expect(await bed().poolStore.findHeld(pool.partition, waiter.lease)).toBeUndefined();
    });
  });

  test("an idle browser of an older template stays in service; its template is kept as long as a browser names it", async () => {
    const pool = await PoolBed.filled(bed(), { size: 1 });
    await pool.update({ stealth: true }, { isNewLaunch: true });
    await bed().poolStore.reap(pool.partition);
    const held = await pool.lend();
    expect(await bed().poolStore.findTemplate(pool.partition, held.browser.templateKey)).toMatchObject({
      stealth: false,
    });
    await pool.release(held, { reuse: false });
    await pool.clear();
    await bed().poolStore.reap(pool.partition);
    expect(await bed().poolStore.findTemplate(pool.partition, held.browser.templateKey)).toBeUndefined();
  });

  test("flush retires idle ones only; they are replaced at the fill rate, and a repeat flushes nothing more", async () => {
    const pool = await PoolBed.filled(bed(), { size: 3 });
    const held = await pool.lend();
    const id = request();
    expect(await bed().poolStore.flush(pool.partition, id)).toBe("flushed");
    expect(await pool.counts()).toMatchObject({ idle: 0, leased: 1 });
    expect(await pool.field("credit")).toBe(0);
    await pool.launch(2);
    expect(await bed().poolStore.flush(pool.partition, id)).toBe("flushed");
    expect(await pool.counts()).toMatchObject({ idle: 2, leased: 1 });
    expect(await pool.state(held.id)).toBe("leased");
  });

  test("create-pool repeated under its request id changes nothing", async () => {
    const pool = await PoolBed.create(bed());
    const id = request();
    await bed().poolStore.createPool(pool.partition, { id: pool.id, write: writeOf(pool.spec), request: id });
    await pool.launch(2);
    const before = await pool.dump();
    await bed().poolStore.createPool(pool.partition, { id: pool.id, write: writeOf(pool.spec), request: id });
    expect(await pool.dump()).toEqual(before);
  });
});
