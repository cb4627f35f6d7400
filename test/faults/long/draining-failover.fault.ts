import { Redis } from "ioredis";
import { expect, onTestFinished } from "vitest";
import { until } from "../../support/browser/chromium-until.js";
import type { DaemonProcess } from "../../support/daemon/daemon-process.js";
import type { Lease } from "../../support/daemon/daemon.js";
import { connectRaw, type RawCdp } from "../../support/gateway/raw-cdp.js";
import { startRedisFailover } from "../../support/store/redis-failover.js";
import { useFaultBed } from "../../support/faults/bed.js";
import { fault, startWatch } from "../../support/faults/fault.js";

const bed = useFaultBed();
const patient = { node: { lost_after_ms: 30_000 } };
const release = (control: DaemonProcess, { session_id }: Lease): ReturnType<DaemonProcess["call"]> =>
  control.call("POST /browser_pools/herd/release", { session_id });
const acquire = (control: DaemonProcess, seconds: number): ReturnType<DaemonProcess["call"]> =>
  control.call("POST /browser_pools/herd/acquire", { acquire_timeout_seconds: seconds });

fault(
  "Redis fails over while a node drains, and loses that it does",
  async (tell) => {
    const failover = await startRedisFailover();
    onTestFinished(() => failover.stop());
    const through = { redisUrl: failover.url };
    const control = await bed.start("control", patient, through);
    const a = await bed.start(
      "node",
      { node: { ...patient.node, id: "a", max_browsers: 2 }, drain: { limit_seconds: 120 } },
      through,
    );
    const b = await bed.start("node", { node: { ...patient.node, id: "b", max_browsers: 2 } }, through);
    await control.makePool({ name: "herd", size: 4, timeout_seconds: 600 });
    const leases = await Promise.all(
      [1, 2, 3, 4].map(async () => (await acquire(control, 10)).body as Lease),
    );
    const at = new Map((await control.browsersOf("herd")).map(({ session_id, node }) => [session_id, node]));
    const [onA, onB] = ["a", "b"].map((id) =>
      leases.filter(({ session_id }) => at.get(session_id) === id),
    ) as [[Lease, Lease], [Lease, Lease]];
    // A lease that nobody had opened would be void after a failover.
    const clients = new Map<Lease, RawCdp>();
    for (const lease of leases) clients.set(lease, await connectRaw(lease.cdp_ws_url));
    const client = clients.get(onA[1]) as RawCdp;
    await failover.detach();
    a.signal("SIGTERM");
    await until("the drain in the records", () => drains(failover.url));
    await failover.failOver();
    const watch = startWatch();
    await until("the drain in the records of the new primary", () => drains(failover.url));
    const recoveryMs = watch.since();
    const waiting = acquire(control, 40);
    await control.poolWhen("herd", (pool) => pool.waiting_count === 1);
    expect((await release(control, onA[0])).status).toBe(204);
    await control.poolWhen("herd", (pool) => pool.acquired_count === 3 && pool.waiting_count === 1);
    expect(await client.send("Browser.getVersion")).toHaveProperty("result");
    expect((await release(control, onB[0])).status).toBe(204);
    expect((await waiting).body).toMatchObject({ session_id: onB[0].session_id });
    expect((await release(control, onA[1])).status).toBe(204);
    expect((await client.closed).code).toBe(4410);
    expect(await a.ended()).toEqual({ code: 0, signal: null });
    bed.gone(a);
    a.place.remove();
    await control.poolWhen("herd", (pool) => pool.acquired_count === 2);
    tell({ saw: "leases went on; nothing lent on the node that drains", recoveryMs });
    for (const daemon of [b, control]) {
      await daemon.stop();
      bed.gone(daemon);
    }
  },
  240_000,
);

/** Whether a pool's record says that a node drains. */
async function drains(url: string): Promise<boolean> {
  const redis = new Redis(url);
  try {
    const pools = await redis.keys("remuda:*:pool");
    const closed = await Promise.all(pools.map((key) => redis.hget(key, "closed")));
    return closed.some((nodes) => nodes?.includes("drainsUntil"));
  } finally {
    redis.disconnect();
  }
}
