import { expect } from "vitest";
import { until } from "../../support/browser/chromium-until.js";
import type { Lease } from "../../support/daemon/daemon.js";
import { connectRaw } from "../../support/gateway/raw-cdp.js";
import { useFaultBed } from "../../support/faults/bed.js";
import { fault, startWatch } from "../../support/faults/fault.js";

const bed = useFaultBed();

fault("Redis stands still for 20 s (SIGSTOP)", async (tell) => {
  const daemon = await bed.start("all", { node: { lost_after_ms: 5000 } });
  await daemon.makePool({ name: "herd", size: 2 });
  const lease = (await daemon.call("POST /browser_pools/herd/acquire", { name: "held" })).body as Lease;
  const client = await connectRaw(lease.cdp_ws_url);
  const page = await client.attach();
  bed.redis.signal("SIGSTOP");
  const refused = await daemon.call("POST /browser_pools/herd/acquire", {});
  expect(refused).toMatchObject({ status: 503, body: { code: "store_unavailable" } });
  expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
  expect(
    await client.evaluate("new Promise((resolve) => setTimeout(() => resolve('still here'), 20_000))", page),
  ).toBe("still here");
  bed.redis.signal("SIGCONT");
  const watch = startWatch();
  await until("Redis back", async () => (await daemon.call("GET /browser_pools")).status === 200);
  const recoveryMs = watch.since();
  expect((await daemon.call("GET /browsers/held")).body).toMatchObject({ lease_id: lease.lease_id });
  expect(await client.evaluate("6 * 7", page)).toBe(42);
  expect(daemon.log).not.toContain("node lost");
  tell({ saw: "503 with Retry-After; sockets went on", recoveryMs });
});
