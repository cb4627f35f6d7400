import { afterEach, beforeEach } from "vitest";
import { until } from "../support/browser/chromium-until.js";
import type { PoolBrowser } from "../support/daemon/daemon.js";
import { Fleet } from "../support/daemon/fleet.js";
import { openRedisProxy, type RedisProxy } from "../support/store/redis-proxy.js";
import { fault } from "./fault.js";
import { makeShortPools } from "./short-pools.js";

let fleet: Fleet;
let proxy: RedisProxy;
beforeEach(async () => {
  fleet = await Fleet.open();
  proxy = await openRedisProxy(fleet.redis.url);
});
afterEach(async () => {
  proxy.delay(0);
  await fleet.close();
  await proxy.close();
});

fault(
  "a node that dies is noticed while hundreds of pools are short and each look at Redis takes its time",
  async (tell) => {
    const a = await fleet.node("a", { node: { max_browsers: 1 } });
    await fleet.node("b", { node: { max_browsers: 1 } });
    const control = await fleet.control({}, proxy.url);
    await control.makePool({ name: "herd", size: 2 });
    await makeShortPools(fleet.redis, 300);
    proxy.delay(4);
    await fleet.kill(a.daemon);
    await until("the node lost", () => control.log.includes('"node lost"'), 30_000);
    proxy.delay(0);
    // What was asked slowly is still on its way, and the answer may be that Redis is busy.
    await until("its browsers gone", async () => {
      const { status, body } = await control.call("GET /browser_pools/herd/browsers");
      return status === 200 && !(body as PoolBrowser[]).some(({ node }) => node === "a");
    });
    await fleet.again(a.daemon);
    tell({ saw: "leases of the dead node end" });
  },
);
