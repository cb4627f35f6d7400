import { afterEach, beforeEach, expect } from "vitest";
import { until } from "../../support/browser/chromium-until.js";
import type { Lease } from "../../support/daemon/daemon.js";
import { Fleet } from "../../support/daemon/fleet.js";
import { connectRaw } from "../../support/gateway/raw-cdp.js";
import { pause, systemClock } from "../../../src/base/clock.js";
import { fault, startWatch } from "../../support/faults/fault.js";

let fleet: Fleet;
beforeEach(async () => {
  fleet = await Fleet.open();
});
afterEach(() => fleet.close());

const size = 3;
/** Longer than BullMQ's lock on a job (30 s), so that the worker itself takes its own jobs for stalled. */
const frozenMs = 40_000;
const launchesIn = (log: string): readonly string[] =>
  [...log.matchAll(/"browser":"([^"]+)"[^\n]*"msg":"browser launched"/g)].map(([, browser = ""]) => browser);

for (const [name, lostAfterMs] of [
  ["is not taken for lost", 90_000],
  ["is taken for lost", 5000],
] as const)
  fault(
    `a node stands still in the middle of launches for 40 s (SIGSTOP), and ${name}`,
    async (tell) => {
      const patient = { node: { lost_after_ms: lostAfterMs } };
      const control = await fleet.control(patient);
      const { daemon, fake } = await fleet.node("a", { ...patient, knobs: { delayMs: 2000 } });
      await control.call("POST /browser_pools", { name: "herd", size, headless: true });
      await until("launches under way", async () => {
        const { body } = await control.call("GET /browser_pools/herd");
        return body.launching_count === size;
      });
      daemon.signal("SIGSTOP");
      await fake.turn({});
      await pause(systemClock, frozenMs);
      daemon.signal("SIGCONT");
      const watch = startWatch();
      await control.poolWhen("herd", (pool) => pool.available_count === size, 60_000);
      const recoveryMs = watch.since();
      const leases: Lease[] = [];
      for (let nth = 0; nth < size; nth += 1)
        leases.push((await control.call("POST /browser_pools/herd/acquire", {})).body as Lease);
      for (const { cdp_ws_url } of leases) {
        const client = await connectRaw(cdp_ws_url);
        expect(await client.send("Browser.getVersion")).toHaveProperty("result");
      }
      const launched = launchesIn(daemon.log);
      expect(new Set(launched).size).toBe(launched.length);
      for (const { session_id } of leases) expect(launched).toContain(session_id);
      tell({ saw: "nothing: each browser was launched once", recoveryMs });
    },
    240_000,
  );
