import { expect } from "vitest";
import { until } from "../../support/browser/chromium-until.js";
import type { Lease, PoolBrowser } from "../../support/daemon/daemon.js";
import { useSlowRedisFleet } from "../../support/faults/bed.js";
import { fault, startWatch } from "../../support/faults/fault.js";
import { makeShortPools } from "../../support/faults/short-pools.js";

const bed = useSlowRedisFleet();

/** The defaults of all that decides when a node is noticed to be gone. */
const usual = {
  periods: { fill_ms: 1000, reap_ms: 5000, recycle_ms: 30_000 },
  node: { beat_period_ms: 1000, lost_after_ms: 15_000 },
  acquire: { control_beat_period_ms: 1000, control_lost_after_ms: 5000 },
  limits: { max_pools: 2000 },
};
/** A reap's period, and the longest walk that it may have to wait for. */
const noticedMs = usual.node.lost_after_ms + usual.periods.reap_ms + 10_000;

fault(
  "a node dies beside 1,000 pools that are short of browsers, with one control, 2 ms away from Redis",
  async (tell) => {
    const a = await bed.fleet.node("a", { ...usual, node: { ...usual.node, max_browsers: 1 } });
    await bed.fleet.node("b", { ...usual, node: { ...usual.node, max_browsers: 1 } });
    const control = await bed.fleet.control(usual, bed.proxy.url);
    await control.makePool({ name: "herd", size: 2 });
    const leases = [await acquire(), await acquire()];
    const ids = await makeShortPools(bed.fleet.redis, 1000);
    // Each way.
    bed.proxy.delay(1);
    for (const id of ids) await control.poolWhen(id, ({ fill }) => fill?.reason === "capacity", 60_000);
    const from = control.log.length;
    await bed.fleet.kill(a.daemon);
    const watch = startWatch();
    await until("the node lost", () => control.log.slice(from).includes('"node lost"'), noticedMs);
    const lostMs = watch.since();
    await until("its browsers gone", async () => {
      const { status, body } = await control.call("GET /browser_pools/herd/browsers");
      return status === 200 && !(body as PoolBrowser[]).some(({ node }) => node === "a");
    });
    const recoveryMs = watch.since();
    const held = await Promise.all(
      leases.map(({ session_id }) => control.call(`GET /browsers/${session_id}`)),
    );
    expect(held.map(({ status }) => status).toSorted()).toEqual([200, 404]);
    bed.proxy.delay(0);
    await bed.fleet.again(a.daemon);
    tell({
      saw: `leases of the dead node over; lost after ${(lostMs / 1000).toFixed(1)} s (limit ${usual.node.lost_after_ms / 1000} s)`,
      recoveryMs,
    });

    async function acquire(): Promise<Lease> {
      return (await control.call("POST /browser_pools/herd/acquire", {})).body as Lease;
    }
  },
  240_000,
);
