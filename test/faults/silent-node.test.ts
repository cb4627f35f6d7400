import { afterEach, beforeEach, expect } from "vitest";
import { until } from "../support/browser/chromium-until.js";
import type { Lease } from "../support/daemon/daemon.js";
import { type DaemonProcess } from "../support/daemon/daemon-process.js";
import { Fleet } from "../support/daemon/fleet.js";
import { refusedUpgrade } from "../support/gateway/gateway-bed.js";
import { fault } from "../support/faults/fault.js";

let fleet: Fleet;
beforeEach(async () => {
  fleet = await Fleet.open();
});
afterEach(() => fleet.close());

/** Beats tell nothing within a test. */
const slowBeats = { beat_period_ms: 60_000, lost_after_ms: 500_000 };

const acquire = (control: DaemonProcess): ReturnType<DaemonProcess["call"]> =>
  control.call("POST /browser_pools/herd/acquire", { acquire_timeout_seconds: 0 });
const nodeOf = async (control: DaemonProcess, { session_id }: Lease): Promise<string> =>
  (await control.browsersOf("herd")).find((browser) => browser.session_id === session_id)?.node ?? "";

/** Lends whatever is lent at once; gives the leases, by node, and gives all of them back. */
async function lendable(control: DaemonProcess): Promise<Readonly<Record<string, Lease[]>>> {
  const on: Record<string, Lease[]> = {};
  for (let got = await acquire(control); got.status === 200; got = await acquire(control)) {
    const node = await nodeOf(control, got.body as Lease);
    on[node] = [...(on[node] ?? []), got.body as Lease];
  }
  for (const { session_id } of Object.values(on).flat())
    await control.call("POST /browser_pools/herd/release", { session_id });
  return on;
}

async function twoNodes(settings: object): Promise<{ control: DaemonProcess; a: DaemonProcess }> {
  const control = await fleet.control({ node: settings });
  const [a] = [await fleet.node("a", { node: settings }), await fleet.node("b", { node: settings })];
  await control.makePool({ name: "herd", size: 4 });
  return { control, a: a.daemon };
}

fault(
  "once a client could not be sent on to a node, none of its browsers is lent, long before the node is lost",
  async (tell) => {
    const { control, a } = await twoNodes(slowBeats);
    const before = await lendable(control);
    expect(Object.keys(before).toSorted()).toEqual(["a", "b"]);
    const held = await acquireOn(control, "a");
    await fleet.kill(a);
    expect(await refusedUpgrade(held.cdp_ws_url)).toMatchObject({
      status: 502,
      body: { code: "node_unreachable" },
    });
    await until("the node taken for silent", () => control.log.includes("its browsers are not lent"), 60_000);
    await until("nothing lent of it", async () => Object.keys(await lendable(control)).join() === "b");
    await fleet.again(a);
    tell({ saw: "502 once; then only browsers of other nodes" });
  },
);

fault(
  "once a lease of a dead node was released that nobody had used, none of its browsers is lent, long before the node is lost",
  async (tell) => {
    const { control, a } = await twoNodes(slowBeats);
    const before = await lendable(control);
    expect(Object.keys(before).toSorted()).toEqual(["a", "b"]);
    await fleet.kill(a);
    // Nobody connects: what tells of the node is that its browsers are given back unused. It may have
    // answered just before it died, and is then not asked at once.
    const isTakenForSilent = async (): Promise<boolean> => {
      await lendable(control);
      return control.log.includes("its browsers are not lent");
    };
    await until("the node taken for silent", isTakenForSilent, 60_000);
    await until("nothing lent of it", async () => Object.keys(await lendable(control)).join() === "b");
    await fleet.again(a);
    tell({ saw: "a lease of it that nobody could use; then only browsers of other nodes" });
  },
);

/** Keeps the first lease of that node, and gives back what came before it. */
async function acquireOn(control: DaemonProcess, node: string): Promise<Lease> {
  const leases: Lease[] = [];
  for (let got = await acquire(control); got.status === 200; got = await acquire(control))
    leases.push(got.body as Lease);
  const nodes = await Promise.all(leases.map((lease) => nodeOf(control, lease)));
  const kept = leases[nodes.indexOf(node)];
  if (!kept) throw new Error(`nothing is lent on ${node}`);
  for (const { session_id } of leases.filter((lease) => lease !== kept))
    await control.call("POST /browser_pools/herd/release", { session_id });
  return kept;
}

fault("a node that hangs is not lent from after a few beats, and is again when it goes on", async (tell) => {
  const { control, a } = await twoNodes({ beat_period_ms: 200, lost_after_ms: 60_000 });
  a.signal("SIGSTOP");
  await until("nothing lent of it", async () => Object.keys(await lendable(control)).join() === "b", 60_000);
  a.signal("SIGCONT");
  await until(
    "lent from again",
    async () =>
      Object.keys(await lendable(control))
        .toSorted()
        .join() === "a,b",
  );
  tell({ saw: "waits, or browsers of other nodes" });
});
