import { afterAll, afterEach, beforeAll, beforeEach } from "vitest";
import { homeOf, newPoolId } from "../../src/base/ids.js";
import { until } from "../support/chromium-until.js";
import { type CompiledDaemon, compileDaemon } from "../support/daemon-process.js";
import type { PoolBrowser } from "../support/daemon.js";
import { Fleet } from "../support/fleet.js";
import { openRedisProxy, type RedisProxy } from "../support/redis-proxy.js";
import { openStoreBed, poolConfig, request, type StoreBed, writeOf } from "../support/store-bed.js";
import { fault } from "./fault.js";

let compiled: CompiledDaemon;
let fleet: Fleet;
let proxy: RedisProxy;
let bed: StoreBed;
beforeAll(async () => {
  compiled = await compileDaemon();
});
afterAll(() => compiled.remove());
beforeEach(async () => {
  fleet = await Fleet.open(compiled);
  proxy = await openRedisProxy(fleet.redis.url);
  bed = await openStoreBed(fleet.redis, { project: "default" });
});
afterEach(async () => {
  proxy.delay(0);
  await bed.close();
  await fleet.close();
  await proxy.close();
});

/** Pools that want what no node has room for. */
async function shortPools(count: number): Promise<void> {
  for (let i = 0; i < count; i += 1) {
    const id = newPoolId();
    await bed.projects.addPool(id);
    await bed.homes.createPool(homeOf(id), { id, write: writeOf(poolConfig({ size: 5, name: `short-${i}` })), request: request() });
    await bed.projects.openPool(id);
  }
}

fault("a node that dies is noticed while hundreds of pools are short and each look at Redis takes its time", async (tell) => {
  const a = await fleet.node("a", { node: { max_browsers: 1 } });
  await fleet.node("b", { node: { max_browsers: 1 } });
  const control = await fleet.control({}, proxy.url);
  await control.makePool({ name: "herd", size: 2 });
  await shortPools(300);
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
});
