import { expect } from "vitest";
import type { Lease } from "../../support/daemon/daemon.js";
import { connectRaw } from "../../support/gateway/raw-cdp.js";
import { useFaultBed } from "../../support/faults/bed.js";
import { fault, startWatch } from "../../support/faults/fault.js";

const bed = useFaultBed();
const requests = 50;

fault("Redis has no memory left (maxmemory reached, noeviction)", async (tell) => {
  const control = await bed.start("control");
  const node = await bed.start("node");
  await control.makePool({ name: "herd", size: 3 });
  const acquire = () => control.call("POST /browser_pools/herd/acquire", { acquire_timeout_seconds: 0 });
  const held = (await acquire()).body as Lease;
  const client = await connectRaw(held.cdp_ws_url);
  const redis = bed.redis.client();
  await redis.config("SET", "maxmemory-policy", "noeviction");
  await redis.config("SET", "maxmemory", "1");
  // Longer than a node may be silent: nobody can note that it beats, and nobody takes it for lost.
  const since = performance.now();
  const leases = [held];
  for (let asked = 0; asked < requests || performance.now() - since < 6000; asked += 1) {
    const { status, body } = await acquire();
    // A script that begins by removing is let through to its end (redis.io, eviction and scripts): it is
    // carried out whole, or not at all.
    if (status === 200) leases.push(body as Lease);
    else expect({ status, code: body?.code }).toEqual({ status: 503, code: "store_unavailable" });
    expect(await client.send("Browser.getVersion")).toHaveProperty("result");
  }
  const { body: counts } = await control.call("GET /browser_pools/herd");
  expect(counts).toMatchObject({ acquired_count: leases.length });
  await redis.config("SET", "maxmemory", "0");
  redis.disconnect();
  const watch = startWatch();
  for (const { session_id } of leases)
    expect((await control.call("POST /browser_pools/herd/release", { session_id })).status).toBe(204);
  await control.poolWhen("herd", (pool) => pool.available_count === 3);
  const recoveryMs = watch.since();
  expect(control.log + node.log).not.toContain('"node lost"');
  tell({ saw: "leases of what is idle, then 503 store_unavailable; sockets went on", recoveryMs });
});
