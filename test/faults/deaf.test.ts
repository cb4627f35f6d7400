import { expect } from "vitest";
import { until } from "../support/chromium-until.js";
import type { DaemonClient, Lease } from "../support/daemon.js";
import { connectRaw, type RawCdp } from "../support/raw-cdp.js";
import { useFaultBed } from "./bed.js";
import { fault, startWatch } from "./fault.js";

const bed = useFaultBed();
const patient = { node: { id: "far", lost_after_ms: 30_000 } };

async function start(throughProxy: "both" | "node") {
  const control = await bed.start("control", patient, throughProxy === "node" ? { redisUrl: bed.redis.url } : {});
  const node = await bed.start("node", patient);
  await control.makePool({ name: "herd", size: 2 });
  return { control, node };
}

async function lease(control: DaemonClient): Promise<{ lease: Lease; client: RawCdp }> {
  const got = (await control.call("POST /browser_pools/herd/acquire", { acquire_timeout_seconds: 20 })).body as Lease;
  return { lease: got, client: await connectRaw(got.cdp_ws_url) };
}

const release = (control: DaemonClient, { session_id }: Lease) => control.call("POST /browser_pools/herd/release", { session_id });

fault("every subscription freezes: holders before are cut all the same, and questions are answered", async (tell) => {
  const { control } = await start("both");
  const [first, second] = [await lease(control), await lease(control)];
  bed.proxy.freeze("subscriptions");
  const watch = startWatch();
  expect((await release(control, first.lease)).status).toBe(204);
  const asked = control.call(`PATCH /browsers/${second.lease.session_id}`, { viewport: { width: 1000, height: 700 } });
  expect((await first.client.closed).code).toBe(4410);
  const recoveryMs = watch.since();
  expect((await asked).status).toBe(200);
  await control.poolWhen("herd", (pool) => pool.available_count === 1);
  tell({ saw: "the former socket was cut; PATCH 200", recoveryMs });
});

fault("a node is cut off from Redis and not from the control: leases that end are cut, changes of networks are in force", async (tell) => {
  const { control, node } = await start("node");
  const [released, deleted] = [await lease(control), await lease(control)];
  await bed.proxy.cut();
  const watch = startWatch();
  expect((await release(control, released.lease)).status).toBe(204);
  expect((await released.client.closed).code).toBe(4410);
  const recoveryMs = watch.since();
  const patched = await control.call(`PATCH /browsers/${deleted.lease.session_id}`, { network: { allowed_hosts: ["a.example"] } });
  expect(patched).toMatchObject({ status: 200, body: { network: { allowed_hosts: ["a.example"] } } });
  expect((await control.call(`DELETE /browsers/${deleted.lease.session_id}`)).status).toBe(204);
  expect((await deleted.client.closed).code).toBe(4410);
  await bed.proxy.restore();
  await control.poolWhen("herd", (pool) => pool.available_count === 2 && pool.acquired_count === 0);
  await until("the network of the browser that stayed", async () => (await control.browsersOf("herd")).every(({ state }) => state === "idle"));
  expect(node.log).not.toContain("browsers ended");
  tell({ saw: "former sockets were cut; PATCH 200; DELETE 204", recoveryMs });
});
