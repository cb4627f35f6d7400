import { afterEach, beforeEach, expect } from "vitest";
import { until } from "../support/browser/chromium-until.js";
import { assertNothingLeft, type Lease } from "../support/daemon/daemon.js";
import { Fleet } from "../support/daemon/fleet.js";
import { fault } from "./fault.js";

let fleet: Fleet;
beforeEach(async () => {
  fleet = await Fleet.open();
});
afterEach(() => fleet.close());

fault(
  "a node that stood still until another had its id ends, and leaves what is the other's alone",
  async (tell) => {
    const node = { lost_after_ms: 3000, beat_period_ms: 500 };
    const control = await fleet.control({ node });
    const first = await fleet.node("a", { node });
    await control.makePool({ name: "herd", size: 2 });
    first.daemon.signal("SIGSTOP");
    const second = await fleet.node("a", { node });
    await until(
      "browsers of the second",
      () => second.daemon.log.split('"msg":"browser launched"').length > 2,
    );
    await control.poolWhen("herd", (pool) => pool.available_count === 2);
    const lease = (await control.call("POST /browser_pools/herd/acquire", {})).body as Lease;
    first.daemon.signal("SIGCONT");
    fleet.forget(first.daemon);
    expect(await first.daemon.ended()).toMatchObject({ code: 1 });
    expect(first.daemon.log).toContain("the node id a is in use");
    await assertNothingLeft(first.daemon.place, first.daemon.log);
    first.daemon.place.remove();
    const got = await control.call(`GET /browsers/${lease.session_id}`);
    const { body } = await control.call("GET /browser_pools/herd");
    expect(got).toMatchObject({ status: 200, body: { lease_id: lease.lease_id } });
    expect(body).toMatchObject({ available_count: 1, acquired_count: 1 });
    tell({ saw: "browsers of the other; the one that stood still ends" });
  },
);
