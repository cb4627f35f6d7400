import { afterEach, beforeEach, expect } from "vitest";
import type { DaemonProcess } from "../../support/daemon/daemon-process.js";
import { Fleet, spread } from "../../support/daemon/fleet.js";
import { fault, startWatch } from "../../support/faults/fault.js";
import { Load } from "../../support/faults/load.js";

let fleet: Fleet;
beforeEach(async () => {
  fleet = await Fleet.open();
});
afterEach(() => fleet.close());

const size = 6;
const clients = 10;
const acquiresEach = 100;

/** Everything that an operator does to a pool and its nodes, in turn; each has to be accepted. */
function changesOf(control: DaemonProcess): readonly (() => Promise<void>)[] {
  const does = (operation: string, status: number, body?: object) => async (): Promise<void> => {
    const got = await control.call(operation, body);
    expect([operation, got.status, got.text]).toEqual([operation, status, got.text]);
  };
  let width = 1000;
  return [
    does("PATCH /browser_pools/herd", 200, { size: 2 }),
    does("POST /nodes/a/drain", 200, { limit_seconds: 120 }),
    does("PATCH /browser_pools/herd", 200, { size: size + 4 }),
    does("DELETE /nodes/a/drain", 204),
    // Each is another generation: idle browsers of the former are replaced, leased ones once they are back.
    () => does("PATCH /browser_pools/herd", 200, { viewport: { width: (width += 2), height: 700 } })(),
    does("POST /nodes/b/drain", 200, { limit_seconds: 120 }),
    does("PATCH /browser_pools/herd", 200, { size }),
    does("POST /browser_pools/herd/flush", 204),
    does("DELETE /nodes/b/drain", 204),
  ];
}

fault(
  "10 clients × 100 acquires on a pool that is scaled, drained and updated: no duplicate, no lost lease",
  async (tell) => {
    const controls = [await fleet.control(), await fleet.control()] as const;
    const nodes = { node: { max_browsers: size + 4 } };
    await Promise.all([fleet.node("a", nodes), fleet.node("b", nodes)]);
    const [control] = controls;
    await control.makePool({ name: "herd", size });
    const watch = startWatch();
    const load = new Load({
      pool: "herd",
      controls: () => controls,
      callers: clients,
      each: acquiresEach,
      holdMs: 20,
      connects: false,
    });
    const over = new AbortController();
    const ended = load.ended().finally(() => over.abort());
    let rounds = 0;
    for (; !over.signal.aborted; rounds += 1)
      for (const change of changesOf(control)) {
        const before = load.figures.granted;
        await change();
        // The next change comes when some leases were granted under this one.
        await expect.poll(() => over.signal.aborted || load.figures.granted > before + 10).toBe(true);
      }
    const { granted, refusals, repeated } = await ended;
    expect(granted).toBe(clients * acquiresEach);
    expect(rounds).toBeGreaterThan(0);
    await control.call("PATCH /browser_pools/herd", { size });
    await control.poolWhen(
      "herd",
      (pool) => pool.available_count === size && pool.stale_count === 0 && pool.launching_count === 0,
    );
    const browsers = await control.browsersOf("herd");
    expect(browsers.filter(({ state }) => state === "idle")).toHaveLength(size);
    expect((await control.call("GET /browser_pools/herd")).body).toMatchObject({
      acquired_count: 0,
      waiting_count: 0,
    });
    tell({
      saw: `${granted} leases over ${rounds} rounds of changes, ${refusals.get("204") ?? 0} × 204, ${repeated} repeats; ${JSON.stringify(await spread(control, "herd"))}`,
      recoveryMs: watch.since(),
    });
  },
  240_000,
);
