import { afterEach, beforeEach, expect } from "vitest";
import { until } from "../../support/browser/chromium-until.js";
import { refusedUpgrade } from "../../support/gateway/gateway-bed.js";
import { fault, startWatch, type Tell } from "../../support/faults/fault.js";
import { FaultFleet } from "./fault-fleet.js";
import { downAfterMs, openSentinelNetwork, type SentinelNetwork } from "./sentinel-network.js";

let network: SentinelNetwork;
let fleet: FaultFleet;
beforeEach(async () => {
  network = await openSentinelNetwork();
  fleet = await FaultFleet.open(async () => network);
  await fleet.hold();
});
afterEach(() => fleet.close());

const limitMs = 240_000;

/** Asks until there is a lease, as callers do; gives how often each other answer came. */
async function lendAgain(): Promise<string> {
  const answers = new Map<number, number>();
  await until("a lease", async () => {
    const asked = { acquire_timeout_seconds: 1 };
    const { status, body } = await fleet.control.call("POST /browser_pools/herd/acquire", asked);
    if (status !== 200) answers.set(status, (answers.get(status) ?? 0) + 1);
    if (status !== 200) return false;
    const { session_id } = body;
    return (await fleet.control.call("POST /browser_pools/herd/release", { session_id })).status === 204;
  });
  // 204: nothing was idle yet of a node that had registered.
  expect([...answers.keys()].filter((status) => status !== 503 && status !== 204)).toEqual([]);
  return [...answers].map(([status, times]) => `${times} × ${status}`).join(", ");
}

async function proveFailover(
  tell: Tell,
  { fail, mend }: { fail(): Promise<void>; mend(): Promise<void> },
): Promise<void> {
  const unopened = await fleet.acquire();
  if (!unopened) throw new Error("nothing is lent");
  await network.caughtUp();
  await fail();
  const watch = startWatch();
  const answers = await lendAgain();
  const lendsMs = watch.since();
  await fleet.expectSound();
  const recoveryMs = watch.since();
  // It may have been released, and its browser lent to another, as far as the new primary knows.
  expect(await refusedUpgrade(unopened.cdp_ws_url)).toMatchObject({
    status: 410,
    body: { message: expect.stringContaining("unconfirmed") },
  });
  await mend();
  await network.follows(network.primary);
  await fleet.expectSound();
  for (const { daemon } of fleet.controls) {
    expect(daemon.log).toContain("another epoch of Redis has begun");
    expect(daemon.log).not.toContain('"node lost"');
  }
  tell({
    saw: `${answers}; leases went on, one that nobody had opened 410 unconfirmed; lent again after ${(lendsMs / 1000).toFixed(1)} s, ${downAfterMs / 1000} of them until sentinels look for another; ${network.kind}`,
    recoveryMs,
  });
}

fault(
  "the primary of a Sentinel set is killed (SIGKILL), and comes back",
  (tell) => proveFailover(tell, { fail: () => network.primary.kill(), mend: () => network.primary.start() }),
  limitMs,
);

fault(
  "the primary of a Sentinel set is cut off with the sentinel beside it, and comes back",
  (tell) => proveFailover(tell, { fail: () => network.cutPrimary(), mend: () => network.restorePrimary() }),
  limitMs,
);
