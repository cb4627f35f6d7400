import { expect } from "vitest";
import { until } from "../../support/browser/chromium-until.js";
import type { DaemonProcess } from "../../support/daemon/daemon-process.js";
import type { Lease } from "../../support/daemon/daemon.js";
import { spread } from "../../support/daemon/fleet.js";
import { connectRaw } from "../../support/gateway/raw-cdp.js";
import { useFaultBed } from "../../support/faults/bed.js";
import { fault, startWatch } from "../../support/faults/fault.js";

const bed = useFaultBed();
const size = 4;

/** Every browser of the pool, each lent once. */
async function acquireAll(control: DaemonProcess): Promise<readonly Lease[]> {
  const leases: Lease[] = [];
  while (leases.length < size) {
    const { status, body } = await control.call("POST /browser_pools/herd/acquire", {
      acquire_timeout_seconds: 30,
    });
    expect(status).toBe(200);
    leases.push(body as Lease);
  }
  expect(new Set(leases.map(({ session_id }) => session_id)).size).toBe(size);
  return leases;
}

const nodesOf = async (control: DaemonProcess): Promise<ReadonlyMap<string, string>> =>
  new Map((await control.browsersOf("herd")).map(({ session_id, node }) => [session_id, node]));

fault(
  "a node stands still until it is taken for lost (SIGSTOP), and comes back",
  async (tell) => {
    const control = await bed.start("control");
    const [a] = [
      await bed.start("node", { node: { id: "a" } }),
      await bed.start("node", { node: { id: "b" } }),
    ];
    await control.makePool({ name: "herd", size });
    const leases = await acquireAll(control);
    const at = await nodesOf(control);
    const [onA, onB] = ["a", "b"].map((id) =>
      leases.filter(({ session_id }) => at.get(session_id) === id),
    ) as [Lease[], Lease[]];
    expect([onA.length, onB.length]).toEqual([2, 2]);
    const clientsOf = (all: readonly Lease[]) =>
      Promise.all(all.map(({ cdp_ws_url }) => connectRaw(cdp_ws_url)));
    const [former, staying] = [await clientsOf(onA), await clientsOf(onB)];
    const from = control.log.length;
    a.signal("SIGSTOP");
    await until("the node lost", () => control.log.slice(from).includes('"node lost"'));
    for (const { session_id } of onA) {
      await until(
        "its leases over",
        async () => (await control.call(`GET /browsers/${session_id}`)).status === 404,
      );
      await control.call("POST /browser_pools/herd/release", { session_id });
    }
    // Their replacements are lent before it is back.
    await control.poolWhen("herd", (pool) => pool.available_count === 2 && pool.acquired_count === 2);
    expect(await spread(control, "herd")).toEqual({ b: size });
    const next = await control.call("POST /browser_pools/herd/acquire", {});
    a.signal("SIGCONT");
    const watch = startWatch();
    for (const client of former) await client.closed;
    const cutMs = watch.since();
    await until(
      "what lived there ended",
      () =>
        a.log.match(/browser without a record ended|browser retired/) !== null ||
        a.log.includes("node was taken for lost"),
    );
    const still = await connectRaw((next.body as Lease).cdp_ws_url);
    for (const client of [...staying, still])
      expect(await client.send("Browser.getVersion")).toHaveProperty("result");
    // It is launched on again, and its name is its own.
    await until("browsers on both", async () => {
      await control.call("POST /browser_pools/herd/flush", {});
      return (await spread(control, "herd"))["a"] !== undefined;
    });
    await control.poolWhen("herd", (pool) => pool.available_count === 1 && pool.acquired_count === 3, 60_000);
    expect(
      (await control.browsersOf("herd"))
        .filter(({ state }) => state === "leased")
        .map(({ session_id }) => session_id)
        .toSorted(),
    ).toEqual([...onB, next.body as Lease].map(({ session_id }) => session_id).toSorted());
    tell({
      saw: `leases there over, former sockets cut ${(cutMs / 1000).toFixed(1)} s after its return; other leases went on`,
      recoveryMs: watch.since(),
    });
  },
  240_000,
);
