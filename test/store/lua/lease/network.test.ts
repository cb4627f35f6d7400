import { describe, expect, test } from "vitest";
import { ProjectScripts } from "../../../../src/store/project/project-scripts.js";
import { RedisTombstones } from "../../../../src/store/project/tombstones.js";
import { onBoth } from "../../../support/store/on-both.js";
import { type Held, PoolBed } from "../../../support/store/pool-bed.js";
import { claimOf, request } from "../../../support/store/store-bed.js";

onBoth("a lease's network", ({ bed }) => {
  const ask = async (
    pool: PoolBed,
    { id, lease }: Held,
    network: { allowedHosts?: string; proxy?: string },
  ) =>
    await bed().poolStore.touch(pool.partition, {
      browser: id,
      lease,
      change: { set: {}, clear: [], touched: true, network },
      request: request(),
    });
  const leaseOf = async (pool: PoolBed, { id }: Held) => (await pool.record(id)).lease;
  /** What was asked for last; later ones are greater. */
  const wanted = async (pool: PoolBed, held: Held): Promise<number> =>
    (await leaseOf(pool, held))?.networkWanted?.revision ?? 0;
  const applied = (held: Held, revision: number, outcome: "applied" | "refused" = "applied") =>
    bed().reports.applied({ browser: held.id, lease: held.lease, revision, outcome });

  test("is in the record when its node says that it is in force, and not before", async () => {
    const pool = await PoolBed.filled(bed(), { size: 1 });
    const held = await pool.lend();
    const unchanged = await bed().poolStore.networkChanges(pool.partition);
    await ask(pool, held, { allowedHosts: '["a.example"]' });
    expect(await leaseOf(pool, held)).toMatchObject({ networkWanted: { allowedHosts: '["a.example"]' } });
    expect(await leaseOf(pool, held)).not.toHaveProperty("network");
    const revision = await wanted(pool, held);
    expect(await bed().poolStore.networkChanges(pool.partition)).not.toBe(unchanged);
    expect(await applied(held, revision)).toBe("applied");
    expect(await leaseOf(pool, held)).toMatchObject({ network: { revision, allowedHosts: '["a.example"]' } });
    expect(await leaseOf(pool, held)).not.toHaveProperty("networkWanted");
    expect(await applied(held, revision)).toBe("stale");
  });

  test("a change after a failover that lost the last one is seen by a node that has seen that one, whatever the clocks say", async () => {
    const pool = await PoolBed.filled(bed(), { size: 1 });
    const held = await pool.lend();
    const changes = () => bed().poolStore.networkChanges(pool.partition);
    const snapshot = async () =>
      Object.fromEntries(
        await Promise.all(
          (await bed().redis.keys("*")).map(
            async (key) => [key, (await bed().redis.dumpBuffer(key)) as Buffer] as const,
          ),
        ),
      );
    // The former primary's clock is an hour ahead.
    const [key = ""] = await bed().redis.keys("*:pool");
    await bed().redis.hset(key, "networkChanges", Date.now() + 3_600_000);
    const before = await snapshot();
    await ask(pool, held, { allowedHosts: '["a.example"]' });
    const seen = await changes();
    await bed().redis.flushall();
    for (const [name, dump] of Object.entries(before)) await bed().redis.restore(name, 0, dump);
    await ask(pool, held, { allowedHosts: '["b.example"]' });
    expect(await changes()).not.toBe(seen);
  });

  test("keeps what an earlier change has set, and an earlier one that is reported late changes nothing", async () => {
    const pool = await PoolBed.filled(bed(), { size: 1 });
    const held = await pool.lend();
    await ask(pool, held, { proxy: '{"id":"p"}' });
    const first = await wanted(pool, held);
    await ask(pool, held, { allowedHosts: "null" });
    const second = await wanted(pool, held);
    expect(second).toBeGreaterThan(first);
    expect(await applied(held, first)).toBe("stale");
    expect(await applied(held, second)).toBe("applied");
    expect(await leaseOf(pool, held)).toMatchObject({
      network: { revision: second, allowedHosts: "null", proxy: '{"id":"p"}' },
    });
  });

  test("that its node refuses leaves what was in force", async () => {
    const pool = await PoolBed.filled(bed(), { size: 1 });
    const held = await pool.lend();
    await ask(pool, held, { allowedHosts: '["a.example"]' });
    const revision = await wanted(pool, held);
    await applied(held, revision);
    await ask(pool, held, { proxy: '{"id":"gone"}' });
    expect(await applied(held, await wanted(pool, held), "refused")).toBe("applied");
    expect(await leaseOf(pool, held)).toMatchObject({ network: { revision, allowedHosts: '["a.example"]' } });
  });

  test("ends with the lease: a change of hosts has the browser fenced, one of the proxy has it retired", async () => {
    const pool = await PoolBed.filled(bed(), { size: 2 });
    const [hosts, proxy] = [await pool.lend(), await pool.lend()];
    await ask(pool, hosts, { allowedHosts: '["a.example"]' });
    await ask(pool, proxy, { proxy: '{"mode":"direct"}' });
    const revision = await wanted(pool, hosts);
    for (const held of [hosts, proxy]) await pool.release(held);
    expect(await pool.record(hosts.id)).toMatchObject({ state: "resetting", mode: "none" });
    expect(await pool.record(proxy.id)).toMatchObject({ state: "retiring", why: "altered" });
    expect(await applied(hosts, revision)).toBe("stale");
  });

  describe("usage", () => {
    const usage = { requests: 4, denied: 1, bytesSent: 20, bytesReceived: 3_000_000_000 };

    test("is the present lease's alone", async () => {
      const pool = await PoolBed.filled(bed(), { size: 1 });
      const first = await pool.lend();
      await bed().reports.used(first.id, { lease: first.lease, usage });
      expect(await leaseOf(pool, first)).toMatchObject({ usage });
      await pool.release(first);
      const second = await pool.lend();
      await bed().reports.used(first.id, { lease: first.lease, usage });
      expect(await leaseOf(pool, second)).not.toHaveProperty("usage");
    });

    test("is in the tombstone, the last count with the browser's end", async () => {
      const pool = await PoolBed.filled(bed(), { size: 2 });
      const [told, untold] = [await pool.lend(), await pool.lend()];
      await bed().reports.used(told.id, { lease: told.lease, usage });
      for (const held of [told, untold]) await pool.release(held, { reuse: false });
      expect(await bed().projects.findTombstone(told.id)).toMatchObject({ usage });
      const last = { ...usage, requests: 9 };
      for (const { id, lease } of [told, untold])
        await bed().reports.gone(id, claimOf(await pool.record(id)), { lease, usage: last });
      for (const { id } of [told, untold])
        expect(await bed().projects.findTombstone(id)).toMatchObject({ usage: last });
      expect(await pool.state(told.id)).toBe("gone");
    });

    test("stays the last count where whoever moves tombstones is late", async () => {
      const pool = await PoolBed.filled(bed(), { size: 2 });
      const [kept, moved] = [await pool.lend(), await pool.lend()];
      const end = async ({ id, lease }: Held): Promise<void> =>
        void (await bed().reports.gone(id, claimOf(await pool.record(id)), { lease, usage }));
      await pool.release(kept, { reuse: false });
      const early = await bed().redis.hget(`remuda:{project-${bed().project}}:tombstones`, kept.id);
      await end(kept);
      const noted = `remuda:${bed().project}:{${pool.partition}}:pendingTombstones`;
      await bed().redis.hset(noted, kept.id, early ?? "");
      await bed().projects.moveTombstones(pool.partition);
      expect(await bed().projects.findTombstone(kept.id)).toMatchObject({ usage });
      await pool.release(moved, { reuse: false });
      const text = await bed().redis.hget(`remuda:{project-${bed().project}}:tombstones`, moved.id);
      await bed().redis.hset(noted, moved.id, text ?? "");
      // One is read, and noted anew before it is dropped.
      const scripts = new ProjectScripts(bed().store, bed().project);
      const run = scripts.run.bind(scripts);
      const late = Object.assign(scripts, {
        run: async (...call: Parameters<typeof run>) => {
          const stored = await run(...call);
          await bed().redis.hset(noted, moved.id, `${text} `);
          return stored;
        },
      });
      const limits = { maxRecordings: 1, maxTombstones: 10, tombstoneMs: 60_000 };
      await new RedisTombstones(late as ProjectScripts, limits).move(pool.partition);
      expect(await bed().redis.hget(noted, moved.id)).toBe(`${text} `);
    });

    test("leaves a tombstone within its kilobyte, whatever the lease was called", async () => {
      const pool = await PoolBed.filled(bed(), { size: 1, name: "p".repeat(255) });
      const tags = JSON.stringify(
        Object.fromEntries(Array.from({ length: 4 }, (_, at) => [`"${at}"`, "v".repeat(80)])),
      );
      const held = await pool.lend({ name: "n".repeat(255), tags });
      const profile = JSON.stringify({ id: "f".repeat(24), save: true });
      await bed().poolStore.touch(pool.partition, {
        browser: held.id,
        change: { set: { profile }, clear: [], touched: true },
        request: request(),
      });
      await bed().reports.used(held.id, { lease: held.lease, usage });
      await pool.release(held, { reuse: false });
      const most = Object.fromEntries(Object.keys(usage).map((kind) => [kind, 2 ** 50])) as typeof usage;
      await bed().reports.gone(held.id, claimOf(await pool.record(held.id)), {
        lease: held.lease,
        usage: most,
      });
      const text = await bed().redis.hget(`remuda:{project-${bed().project}}:tombstones`, held.id);
      expect(Buffer.byteLength(text ?? "")).toBeLessThanOrEqual(1024);
      for (const kept of ["n".repeat(255), "f".repeat(24)]) expect(text).toContain(kept);
    });
  });
});
