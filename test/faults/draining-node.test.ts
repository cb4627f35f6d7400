import { afterEach, beforeEach, expect } from "vitest";
import { until } from "../support/browser/chromium-until.js";
import type { Lease } from "../support/daemon/daemon.js";
import { type DaemonProcess } from "../support/daemon/daemon-process.js";
import { Fleet } from "../support/daemon/fleet.js";
import { fault } from "./fault.js";

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
