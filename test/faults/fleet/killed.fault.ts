import { afterEach, beforeEach, expect } from "vitest";
import { until } from "../../support/browser/chromium-until.js";
import { fault, startWatch } from "../../support/faults/fault.js";
import { FaultFleet } from "./fault-fleet.js";

let fleet: FaultFleet;
beforeEach(async () => {
  fleet = await FaultFleet.open();
  await fleet.hold();
});
afterEach(() => fleet.close());

const limitMs = 240_000;

fault(
  "a control is killed (SIGKILL), then a node that only the other can find lost",
  async (tell) => {
    const [first] = fleet.controls;
    if (!first) throw new Error("there is no control");
    const redis = fleet.network.redis.client();
    // It runs the schedule: a job of it is under way, which it alone may take while the other stands still.
    fleet.controls[1]?.daemon.signal("SIGSTOP");
    await until("a tick under way", async () => (await redis.keys("*:schedule:*:lock")).length > 0);
    await fleet.kill(first);
    fleet.controls[1]?.daemon.signal("SIGCONT");
    redis.disconnect();
    const watch = startWatch();
    await until("a lease", () => fleet.isLending());
    const lendsMs = watch.since();
    await fleet.expectSound();
    const ticks = startWatch();
    await fleet.kill(fleet.node("a"));
    await fleet.expectSound(["a"]);
    tell({
      saw: `leases of other nodes went on; lent again after ${(lendsMs / 1000).toFixed(1)} s; node found lost and replaced by the other control; ${fleet.network.kind}`,
      recoveryMs: ticks.since(),
    });
    // What the killed ones have left is cleared by their next start.
    await fleet.again(first);
    await fleet.again(fleet.node("a"));
    expect((await first.daemon.call("GET /readyz")).status).toBe(200);
  },
  limitMs,
);

fault(
  "a node with idle and leased browsers is killed (SIGKILL), and started again",
  async (tell) => {
    const node = fleet.node("b");
    await fleet.kill(node);
    const watch = startWatch();
    await fleet.expectSound(["b"]);
    const recoveryMs = watch.since();
    await fleet.again(node);
    await until("it again among the nodes", async () => {
      const nodes = (await fleet.control.call("GET /nodes")).body as { id: string; state: string }[];
      return nodes.some(({ id, state }) => id === "b" && state === "ready");
    });
    await fleet.expectSound(["b"]);
    tell({ saw: `its leases over, others went on; ${fleet.network.kind}`, recoveryMs });
  },
  limitMs,
);
