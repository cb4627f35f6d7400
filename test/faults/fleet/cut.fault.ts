import { afterEach, beforeEach, expect } from "vitest";
import { until } from "../../support/browser/chromium-until.js";
import { spread } from "../../support/daemon/fleet.js";
import { fault, startWatch } from "../../support/faults/fault.js";
import { FaultFleet } from "./fault-fleet.js";

let fleet: FaultFleet;
beforeEach(async () => {
  fleet = await FaultFleet.open();
  await fleet.hold();
});
afterEach(() => fleet.close());

const limitMs = 240_000;
const stateOf = async (node: string): Promise<unknown> =>
  ((await fleet.control.call("GET /nodes")).body as { id: string; state: string }[]).find(
    ({ id }) => id === node,
  )?.state;

/** Its leases are over for good, and it is lent from again. */
async function expectBack(node: string): Promise<void> {
  await until("it is back", async () => (await stateOf(node)) === "ready");
  await fleet.expectSound([node]);
  await until("browsers there again", async () => {
    await fleet.control.call("POST /browser_pools/herd/flush", {});
    return ((await spread(fleet.control, "herd"))[node] ?? 0) > 0;
  });
  await fleet.expectSound([node]);
}

fault(
  "a node is cut off from everybody until it is lost, and comes back",
  async (tell) => {
    const { machine } = fleet.node("a");
    await machine.cut();
    const watch = startWatch();
    await until("the node lost", async () => (await stateOf("a")) === undefined);
    const others = fleet.held.filter(({ node }) => node !== "a");
    await fleet.control.poolWhen(
      "herd",
      (pool) => pool.acquired_count === others.length && pool.available_count > 0,
    );
    const recoveryMs = watch.since();
    await machine.restore();
    await expectBack("a");
    tell({ saw: `its leases over, others went on; ${fleet.network.kind}`, recoveryMs });
  },
  limitMs,
);

fault(
  "a node stands still until it is lost (SIGSTOP), and goes on (SIGCONT)",
  async (tell) => {
    const { daemon } = fleet.node("c");
    daemon.signal("SIGSTOP");
    const watch = startWatch();
    await until("the node lost", async () => (await stateOf("c")) === undefined);
    await fleet.control.poolWhen(
      "herd",
      (pool) => pool.available_count > 0 && pool.acquired_count < fleet.held.length,
    );
    const recoveryMs = watch.since();
    daemon.signal("SIGCONT");
    await expectBack("c");
    tell({ saw: `its leases over, others went on; ${fleet.network.kind}`, recoveryMs });
  },
  limitMs,
);

fault(
  "Redis is killed (SIGKILL) and started again with its append-only file",
  async (tell) => {
    await fleet.network.redis.kill();
    const refused = await fleet.control.call("POST /browser_pools/herd/acquire", {});
    expect(refused).toMatchObject({ status: 503, body: { code: "store_unavailable" } });
    for (const { client } of fleet.held)
      expect((await client.send("Browser.getVersion")).result).toBeDefined();
    await fleet.network.redis.start();
    const watch = startWatch();
    await until("a lease", () => fleet.isLending());
    const recoveryMs = watch.since();
    await fleet.expectSound();
    tell({ saw: `503 store_unavailable; nothing lost; ${fleet.network.kind}`, recoveryMs });
  },
  limitMs,
);
