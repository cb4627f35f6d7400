import { afterEach, beforeEach, expect } from "vitest";
import type { Lease } from "../../support/daemon/daemon.js";
import type { DaemonProcess } from "../../support/daemon/daemon-process.js";
import { Fleet } from "../../support/daemon/fleet.js";
import { connectRaw } from "../../support/gateway/raw-cdp.js";
import { fault, startWatch } from "../../support/faults/fault.js";
import { Load } from "../../support/faults/load.js";

let fleet: Fleet;
beforeEach(async () => {
  fleet = await Fleet.open();
});
afterEach(() => fleet.close());

const size = 4;
/** URLs lead to nodes themselves, so that a socket of a lease is its node's alone to keep. */
const direct = { hand_out_own_address: true };
const roomy = { node: { max_browsers: size + 2, ...direct }, drain: { limit_seconds: 90 } };

/** Ends a daemon as a roll-out does, and starts it again in its place. */
async function restart(daemon: DaemonProcess): Promise<DaemonProcess> {
  fleet.forget(daemon);
  expect(await daemon.end("SIGTERM")).toEqual({ code: 0, signal: null });
  return await fleet.again(daemon);
}

fault(
  "every daemon is restarted under load, one after the other: no lease ends and no acquire fails",
  async (tell) => {
    const controls = [await fleet.control({ node: direct }), await fleet.control({ node: direct })];
    const nodes: DaemonProcess[] = [];
    for (const id of ["a", "b", "c"]) nodes.push((await fleet.node(id, roomy)).daemon);
    const [first] = controls as [DaemonProcess, DaemonProcess];
    await first.makePool({ name: "herd", size, timeout_seconds: 600 });
    // One lease is held from the first stop to the last start of a control.
    const held = (await first.call("POST /browser_pools/herd/acquire", {})).body as Lease;
    const client = await connectRaw(held.cdp_ws_url);
    const load = new Load({
      pool: "herd",
      controls: () => controls,
      callers: size + 2,
      holdMs: 400,
      connects: true,
    });
    const watch = startWatch();
    for (const [at, control] of controls.entries()) controls[at] = await restart(control);
    expect((await client.send("Browser.getVersion")).result).toBeDefined();
    const [control] = controls as [DaemonProcess, DaemonProcess];
    const seen = await control.call(`GET /browsers/${held.session_id}`);
    expect(seen).toMatchObject({ status: 200, body: { lease_id: held.lease_id } });
    expect(
      (await control.call("POST /browser_pools/herd/release", { session_id: held.session_id })).status,
    ).toBe(204);
    for (const node of nodes) await restart(node);
    const tookMs = watch.since();
    const { granted, refusals, repeated } = await load.stop();
    expect(granted).toBeGreaterThan(10);
    // A place that was asked for with a key is kept for a repeat for a while.
    const isAtRest = (pool: { available_count: number; waiting_count: number }): boolean =>
      pool.available_count === size && pool.waiting_count === 0;
    expect(await control.poolWhen("herd", isAtRest)).toMatchObject({ acquired_count: 0 });
    tell({
      saw: `${granted} leases, ${refusals.get("204") ?? 0} × 204 of a stopping control, ${repeated} × asked of another control`,
      recoveryMs: tookMs,
    });
  },
  240_000,
);
