import { afterEach, beforeEach, expect } from "vitest";
import { defaultProject, partitionOf, type PoolId } from "../../src/base/ids.js";
import { partitionKey } from "../../src/store/redis/keys.js";
import { until } from "../support/browser/chromium-until.js";
import type { Lease, PoolState } from "../support/daemon/daemon.js";
import { type DaemonProcess } from "../support/daemon/daemon-process.js";
import { Fleet } from "../support/daemon/fleet.js";
import { fault } from "../support/faults/fault.js";

let fleet: Fleet;
beforeEach(async () => {
  fleet = await Fleet.open();
});
afterEach(() => fleet.close());

const acquire = async (control: DaemonProcess, seconds = 30): Promise<Lease | undefined> => {
  const got = await control.call("POST /browser_pools/herd/acquire", { acquire_timeout_seconds: seconds });
  return got.status === 200 ? (got.body as Lease) : undefined;
};
const release = (control: DaemonProcess, { session_id }: Lease): ReturnType<DaemonProcess["call"]> =>
  control.call("POST /browser_pools/herd/release", { session_id });

fault(
  "a full fleet has its callers wait rather than lend on a node that drains; what is released there goes",
  async (tell) => {
    const control = await fleet.control();
    const [a] = [
      await fleet.node("a", { node: { max_browsers: 2 }, drain: { limit_seconds: 60 } }),
      await fleet.node("b", { node: { max_browsers: 2 } }),
    ];
    await control.makePool({ name: "herd", size: 4 });
    const leases: Lease[] = [];
    for (let lease = await acquire(control, 0); lease; lease = await acquire(control, 0)) leases.push(lease);
    const nodes = new Map(
      (await control.browsersOf("herd")).map(({ session_id, node }) => [session_id, node]),
    );
    const [onA, onB] = ["a", "b"].map((id) =>
      leases.filter(({ session_id }) => nodes.get(session_id) === id),
    ) as [Lease[], Lease[]];
    expect([onA.length, onB.length]).toEqual([2, 2]);
    const [idle, held] = onA as [Lease, Lease];
    await release(control, idle);
    a.daemon.signal("SIGTERM");
    await until("the drain begun", () => a.daemon.log.includes("drain begun"));
    await until("nothing lent there", async () => {
      const lease = await acquire(control, 0);
      if (lease) await release(control, lease);
      return lease === undefined;
    });
    const waiting = acquire(control);
    await control.poolWhen("herd", (pool) => pool.waiting_count === 1);
    await release(control, held);
    await control.poolWhen("herd", (pool) => pool.waiting_count === 1 && pool.acquired_count === 2);
    await release(control, onB[0] as Lease);
    expect((await waiting)?.session_id).toBe(onB[0]?.session_id);
    expect(await a.daemon.ended()).toEqual({ code: 0, signal: null });
    fleet.forget(a.daemon);
    a.daemon.place.remove();
    tell({ saw: "waits for a browser elsewhere" });
  },
);

/** The drain has told the pool how long its browsers may still be lent. */
async function drainTold({ id }: PoolState): Promise<void> {
  const redis = fleet.redis.client();
  const key = partitionKey(defaultProject, partitionOf(id as PoolId), "pool");
  await until("the drain told", async () => (await redis.hget(key, "closed"))?.includes("drainsUntil"));
  redis.disconnect();
}

fault(
  "a node drains (60 s) that has all there is of two pools: it lends where the lease can live its time",
  async (tell) => {
    const control = await fleet.control();
    await fleet.node("b", { node: { max_browsers: 1 } });
    await control.makePool({ name: "elsewhere" });
    const { daemon } = await fleet.node("a", { node: { max_browsers: 2 }, drain: { limit_seconds: 60 } });
    const short = await control.makePool({ name: "herd", timeout_seconds: 10 });
    const long = await control.makePool({ name: "long", timeout_seconds: 600 });
    daemon.signal("SIGTERM");
    await Promise.all([drainTold(short), drainTold(long)]);
    const refused = await control.call("POST /browser_pools/long/acquire", { acquire_timeout_seconds: 0 });
    const lease = await acquire(control, 0);
    expect(refused.status).toBe(204);
    expect((await control.browsersOf("long")).map(({ state, node }) => [state, node])).toEqual([
      ["idle", "a"],
    ]);
    if (!lease) throw new Error("nothing was lent");
    expect((await control.browsersOf("herd")).map(({ state, node }) => [state, node])).toEqual([
      ["leased", "a"],
    ]);
    await release(control, lease);
    daemon.signal("SIGTERM");
    expect(await daemon.ended()).toEqual({ code: 0, signal: null });
    fleet.forget(daemon);
    daemon.place.remove();
    tell({ saw: "a lease of 10 s, and 204 for one of 600 s" });
  },
);
