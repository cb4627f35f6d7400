import { expect } from "vitest";
import { until } from "../support/browser/chromium-until.js";
import type { DaemonClient, Lease } from "../support/daemon/daemon.js";
import { MovedClock } from "../support/daemon/moved-clock.js";
import { connectRaw, type RawCdp } from "../support/gateway/raw-cdp.js";
import { useFaultBed } from "../support/faults/bed.js";
import { answeredByNode } from "../support/faults/cycles.js";
import { fault, startWatch } from "../support/faults/fault.js";

const bed = useFaultBed();
const minuteMs = 60_000;

const start = (role: "control" | "node", clock: MovedClock) =>
  bed.start(role, { node: { id: "far", lost_after_ms: 30_000 } }, { environment: clock.environment });

async function lease(control: DaemonClient): Promise<{ lease: Lease; client: RawCdp }> {
  const got = (await control.call("POST /browser_pools/herd/acquire", { acquire_timeout_seconds: 20 }))
    .body as Lease;
  return { lease: got, client: await connectRaw(got.cdp_ws_url) };
}

for (const minutes of [-60, -2, 2, 60])
  fault(
    `the clock of a node is ${minutes} minutes off and it does not hear messages: it is told directly all the same`,
    async (tell) => {
      const control = await start("control", new MovedClock());
      const node = await start("node", new MovedClock(minutes * minuteMs));
      await control.makePool({ name: "herd", size: 2 });
      const [first, second] = [await lease(control), await lease(control)];
      bed.proxy.freeze("subscriptions");
      const patch = () =>
        control.call(`PATCH /browsers/${second.lease.session_id}`, {
          viewport: { width: 1000, height: 700 },
          network: { allowed_hosts: ["a.example"] },
        });
      const watch = startWatch();
      const { session_id } = first.lease;
      expect((await control.call("POST /browser_pools/herd/release", { session_id })).status).toBe(204);
      // A subscription that was made anew meanwhile would bring a repeat.
      const asked = answeredByNode(() => (bed.proxy.freeze("subscriptions"), patch()));
      expect((await first.client.closed).code).toBe(4410);
      const recoveryMs = watch.since();
      expect((await asked).status).toBe(200);
      await control.poolWhen("herd", (pool) => pool.available_count === 1);
      await until("the control's word of it", async () =>
        control.log.includes("clock of a node differs from the control's"),
      );
      const ahead = await until("the gauge", async () => {
        const { text } = await node.call("GET /metrics");
        return /^remuda_clock_ahead_seconds (.+)$/m.exec(text)?.[1];
      });
      expect(Math.abs(Number(ahead) - minutes * 60)).toBeLessThan(10);
      await until("its word of it", async () =>
        node.log.includes("this machine's clock differs from Redis's"),
      );
      tell({ saw: "the former socket was cut; PATCH 200", recoveryMs });
    },
  );
