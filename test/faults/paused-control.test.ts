import { expect } from "vitest";
import { until } from "../support/browser/chromium-until.js";
import type { Lease } from "../support/daemon/daemon.js";
import { useFaultBed } from "../support/faults/bed.js";
import { fault, startWatch } from "../support/faults/fault.js";

const bed = useFaultBed();

fault(
  "a control stands still (SIGSTOP) for longer than it may be silent, and callers wait at it",
  async (tell) => {
    const [paused, other] = [await bed.start("control"), await bed.start("control")];
    await bed.start("node");
    await other.makePool({ name: "herd", size: 1 });
    const held = (await other.call("POST /browser_pools/herd/acquire", {})).body as Lease;
    const ask = async (at: typeof paused, place: number) => {
      const asked = at.call("POST /browser_pools/herd/acquire", { acquire_timeout_seconds: 40 });
      await other.poolWhen("herd", (pool) => pool.waiting_count === place);
      return asked;
    };
    // Not awaited here: an answer comes when a browser does.
    const first = paused.call("POST /browser_pools/herd/acquire", { acquire_timeout_seconds: 40 });
    await other.poolWhen("herd", (pool) => pool.waiting_count === 1);
    const second = ask(other, 2);
    await other.poolWhen("herd", (pool) => pool.waiting_count === 2);
    paused.signal("SIGSTOP");
    await other.poolWhen("herd", (pool) => pool.waiting_count === 1);
    paused.signal("SIGCONT");
    const watch = startWatch();
    await other.poolWhen("herd", (pool) => pool.waiting_count === 2);
    const recoveryMs = watch.since();
    expect(
      (await other.call("POST /browser_pools/herd/release", { session_id: held.session_id })).status,
    ).toBe(204);
    const served = await first;
    expect(served.status).toBe(200);
    await other.poolWhen("herd", (pool) => pool.waiting_count === 1);
    expect(
      (
        await other.call("POST /browser_pools/herd/release", {
          session_id: (served.body as Lease).session_id,
        })
      ).status,
    ).toBe(204);
    expect((await second).status).toBe(200);
    await until(
      "nobody in line",
      async () => (await other.call("GET /browser_pools/herd")).body.waiting_count === 0,
    );
    tell({ saw: "everybody served, in the order in which they came", recoveryMs });
  },
);

fault("two controls stand still in turn (SIGSTOP), and callers wait at both", async (tell) => {
  const [one, two, other] = [
    await bed.start("control"),
    await bed.start("control"),
    await bed.start("control"),
  ];
  await bed.start("node");
  await other.makePool({ name: "herd", size: 1 });
  const waitingOf = (count: number) => other.poolWhen("herd", (pool) => pool.waiting_count === count);
  let held = (await other.call("POST /browser_pools/herd/acquire", {})).body as Lease;
  const asked: Promise<{ status: number | undefined; body: unknown }>[] = [];
  for (const at of [one, two, one, two]) {
    asked.push(at.call("POST /browser_pools/herd/acquire", { acquire_timeout_seconds: 50 }));
    await waitingOf(asked.length);
  }
  one.signal("SIGSTOP");
  await waitingOf(2);
  // The second stands still before the first has looked for its places.
  two.signal("SIGSTOP");
  one.signal("SIGCONT");
  await until("those of the second passed over, those of the first back", async () =>
    one.log.includes("waiters put back in line"),
  );
  await waitingOf(2);
  two.signal("SIGCONT");
  const watch = startWatch();
  await waitingOf(4);
  const recoveryMs = watch.since();
  for (const [place, answer] of asked.entries()) {
    const { session_id } = held;
    expect((await other.call("POST /browser_pools/herd/release", { session_id })).status).toBe(204);
    const { status, body } = await answer;
    expect([place, status]).toEqual([place, 200]);
    held = body as Lease;
    await waitingOf(asked.length - place - 1);
  }
  tell({ saw: "everybody served, in the order in which they came", recoveryMs });
});
