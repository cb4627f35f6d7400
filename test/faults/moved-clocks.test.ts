import { expect } from "vitest";
import { until } from "../support/browser/chromium-until.js";
import { DaemonClient, type Lease } from "../support/daemon/daemon.js";
import { MovedClock } from "../support/daemon/moved-clock.js";
import { connectRaw } from "../support/gateway/raw-cdp.js";
import type { Got } from "../support/http/http-server.js";
import { commandsIn, gapsIn, StreamFollower, wrongNumbers } from "../support/telemetry/stream-follower.js";
import { useFaultBed } from "../support/faults/bed.js";
import { acquire, expectCycle, expectExpiry } from "../support/faults/cycles.js";
import { fault, startWatch } from "../support/faults/fault.js";

const bed = useFaultBed();
const [minuteMs, hourMs, dayMs] = [60_000, 3_600_000, 86_400_000];

const start = (role: "control" | "node", clock: MovedClock) =>
  bed.start(role, { node: { id: "far" } }, { environment: clock.environment });

fault("the clock of a control is two days off: API keys end by Redis's clock", async (tell) => {
  for (const days of [-2, 2]) {
    const control = await start("control", new MovedClock(days * dayMs));
    const made = await control.call("POST /org/api_keys", { name: `key ${days}`, days_to_expire: 1 });
    expect(made.status).toBe(201);
    expect(Math.abs(Date.parse(made.body.expires_at) - dayMs - Date.now())).toBeLessThan(minuteMs);
    const owner = new DaemonClient(control.url, made.body.key);
    expect((await owner.call("GET /browsers")).status).toBe(200);
    const rotate = `POST /org/api_keys/${made.body.id}/rotate`;
    const next = await control.call(rotate, { expire_in_days: 1 });
    expect((await owner.call("GET /browsers")).status).toBe(200);
    const heir = new DaemonClient(control.url, next.body.key);
    expect((await heir.call("GET /browsers")).status).toBe(200);
    await control.call(`POST /org/api_keys/${next.body.id}/rotate`, { expire_in_days: 0 });
    expect((await heir.call("GET /browsers")).status).toBe(401);
  }
  tell({ saw: "nothing" });
});

/** Those of the last 5 minutes. */
async function commandsOfLate(control: DaemonClient, { session_id }: Lease): Promise<readonly number[]> {
  const path = `/browsers/${session_id}/telemetry/events?type=cdp_command&limit=100`;
  const { body } = await control.call(`GET ${path}`);
  return (body as { event: { data: { command_id: number } } }[]).map(({ event }) => event.data.command_id);
}

const jumps = [-hourMs, hourMs, -5 * minuteMs, 5 * minuteMs, 0] as const;

/** All idle browsers are replaced, which ticks have to do. */
async function expectFill(control: DaemonClient): Promise<void> {
  const idle = async () =>
    (await control.browsersOf("herd")).flatMap(({ state, session_id: id }) => (state === "idle" ? id : []));
  const before = await idle();
  expect((await control.call("POST /browser_pools/herd/flush")).status).toBe(204);
  await until("another in its place", async () => (await idle()).some((id) => !before.includes(id)));
}

fault("clocks jump while browsers are lent: pools fill, holders stay, streams have no gap", async (tell) => {
  const clocks = { control: new MovedClock(), node: new MovedClock() };
  const daemons = { control: await start("control", clocks.control), node: await start("node", clocks.node) };
  const { control } = daemons;
  const telemetry = { browser: { control: { enabled: true } } };
  await control.makePool({ name: "herd", size: 3, timeout_seconds: 10, telemetry });
  const expiry = expectExpiry(control);
  const held = await acquire(control);
  const client = await connectRaw(held.cdp_ws_url);
  const follower = new StreamFollower([control], held.session_id);
  const silent: Got[] = [];
  let [recoveryMs, sent] = [0, 0];
  for (const role of ["control", "node"] as const)
    for (const aheadMs of jumps) {
      await clocks[role].jump(daemons[role], aheadMs);
      const watch = startWatch();
      await client.send("Target.activateTarget", { targetId: "there-is-none" });
      sent += 1;
      follower.cut();
      await until("it in what has happened of late", async () =>
        (await commandsOfLate(control, held)).includes(sent),
      );
      await expectCycle(control, silent);
      await expectFill(control);
      recoveryMs = Math.max(recoveryMs, watch.since());
    }
  await expiry;
  expect(silent.length).toBeLessThan(3);
  await until("all that was sent", async () => commandsIn(follower.told).length === sent);
  expect([wrongNumbers(follower.told), gapsIn(follower.told)]).toEqual([[], 0]);
  await follower.stop();
  expect((await control.call(`GET /browsers/${held.session_id}`)).status).toBe(200);
  for (const { log } of Object.values(daemons)) expect(log).not.toContain("lease cut");
  tell({ saw: "nothing", recoveryMs });
});
