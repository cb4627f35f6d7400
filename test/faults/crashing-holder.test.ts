import { expect } from "vitest";
import { processesOf } from "../support/browser/browser-processes.js";
import { until } from "../support/browser/chromium-until.js";
import type { Lease } from "../support/daemon/daemon.js";
import { signal } from "../support/living.js";
import { useFaultBed } from "../support/faults/bed.js";
import { fault, startWatch } from "../support/faults/fault.js";

const bed = useFaultBed();
const crashes = 8;
/** The defaults: after as many failures a pool would rest for a minute. */
const usual = { fill: { backoff_initial_ms: 1000, backoff_max_ms: 60_000 } };

fault("the browsers of one holder of a shared pool crash, again and again", async (tell) => {
  const control = await bed.start("control", usual);
  const node = await bed.start("node", usual);
  await control.makePool({ name: "herd", size: 3 });
  const reasons = new Set<string>();
  for (let nth = 0; nth < crashes; nth += 1) {
    const { status, body, text } = await control.call("POST /browser_pools/herd/acquire", {
      acquire_timeout_seconds: 30,
    });
    if (status !== 200) throw new Error(`acquire ${nth}: ${status} ${text}`);
    const { session_id } = body as Lease;
    const { main } = await processesOf(node.place.scratchDirectory, session_id);
    signal(main, "SIGKILL");
    await until(
      "the session over",
      async () => (await control.call(`GET /browsers/${session_id}`)).status === 404,
    );
    const { fill } = (await control.call("GET /browser_pools/herd")).body as { fill?: { reason: string } };
    if (fill) reasons.add(fill.reason);
  }
  const watch = startWatch();
  await control.poolWhen("herd", (pool) => pool.available_count === 3);
  expect([...reasons]).not.toContain("launch_failing");
  expect(node.log).not.toContain("node fails launches");
  tell({ saw: `${crashes} leases over; a full pool`, recoveryMs: watch.since() });
});
