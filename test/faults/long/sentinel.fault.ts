import { expect, onTestFinished } from "vitest";
import { until } from "../../support/browser/chromium-until.js";
import type { Lease } from "../../support/daemon/daemon.js";
import { connectRaw } from "../../support/gateway/raw-cdp.js";
import { startRedisPair } from "../../support/store/redis-pair.js";
import { useFaultBed } from "../../support/faults/bed.js";
import { fault, startWatch } from "../../support/faults/fault.js";

const bed = useFaultBed();

fault(
  "sentinels put another Redis in the place of one that stands still (SIGSTOP)",
  async (tell) => {
    const pair = await startRedisPair({ sentinels: 3 });
    onTestFinished(() => pair.stop());
    const patient = { node: { lost_after_ms: 30_000 } };
    const control = await bed.start("control", patient, { redisUrl: pair.sentinelUrl });
    const node = await bed.start("node", patient, { redisUrl: pair.sentinelUrl });
    await control.makePool({ name: "herd", size: 2 });
    const held = (await control.call("POST /browser_pools/herd/acquire", { name: "held" })).body as Lease;
    const client = await connectRaw(held.cdp_ws_url);
    await pair.caughtUp();
    await pair.failOverSoon();
    pair.primary.signal("SIGSTOP");
    const watch = startWatch();
    const refused: number[] = [];
    await until("a lease", async () => {
      const { status } = await control.call("POST /browser_pools/herd/acquire", {
        acquire_timeout_seconds: 5,
      });
      if (status !== 200 && status !== 204) refused.push(status);
      return status === 200;
    });
    const recoveryMs = watch.since();
    expect(await pair.primaryPort()).toBe(pair.replica.port);
    expect(
      refused.every((status) => status === 503),
      String(refused),
    ).toBe(true);
    expect(
      (await control.call("POST /browser_pools/herd/release", { session_id: held.session_id })).status,
    ).toBe(204);
    expect((await client.closed).code).toBe(4410);
    await control.poolWhen("herd", (pool) => pool.available_count === 1 && pool.acquired_count === 1);
    // The former primary wakes up as a replica, and nobody is still there.
    pair.primary.signal("SIGCONT");
    await control.poolWhen("herd", (pool) => pool.available_count === 1 && pool.acquired_count === 1);
    tell({ saw: `${refused.length} × 503 store_unavailable`, recoveryMs });
    for (const daemon of [node, control]) {
      await daemon.stop();
      bed.gone(daemon);
    }
  },
  240_000,
);
