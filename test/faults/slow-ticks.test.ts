import { until } from "../support/browser/chromium-until.js";
import type { PoolBrowser } from "../support/daemon/daemon.js";
import { useSlowRedisFleet } from "../support/faults/bed.js";
import { fault } from "../support/faults/fault.js";
import { makeShortPools } from "../support/faults/short-pools.js";

const bed = useSlowRedisFleet();

fault(
  "a node that dies is noticed while hundreds of pools are short and each look at Redis takes its time",
  async (tell) => {
    const a = await bed.fleet.node("a", { node: { max_browsers: 1 } });
    await bed.fleet.node("b", { node: { max_browsers: 1 } });
    const control = await bed.fleet.control({}, bed.proxy.url);
    await control.makePool({ name: "herd", size: 2 });
    await makeShortPools(bed.fleet.redis, 300);
    bed.proxy.delay(4);
    const from = control.log.length;
    await bed.fleet.kill(a.daemon);
    await until("the node lost", () => /"node":"a"[^\n]*"node lost"/.test(control.log.slice(from)));
    bed.proxy.delay(0);
    // What was asked slowly is still on its way, and the answer may be that Redis is busy.
    await until("its browsers gone", async () => {
      const { status, body } = await control.call("GET /browser_pools/herd/browsers");
      return status === 200 && !(body as PoolBrowser[]).some(({ node }) => node === "a");
    });
    await bed.fleet.again(a.daemon);
    tell({ saw: "leases of the dead node end" });
  },
);
