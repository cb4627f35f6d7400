import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect } from "vitest";
import { until } from "../support/browser/chromium-until.js";
import { assertNothingLeft, type Lease } from "../support/daemon/daemon.js";
import type { DaemonProcess } from "../support/daemon/daemon-process.js";
import { Fleet, type FleetNode } from "../support/daemon/fleet.js";
import { fault } from "../support/faults/fault.js";

let fleet: Fleet;
let archives: { directory: string };
beforeEach(async () => {
  fleet = await Fleet.open();
  archives = { directory: await mkdtemp(join(tmpdir(), "remuda-test-archives-")) };
});
afterEach(async () => {
  await fleet.close();
  await rm(archives.directory, { recursive: true });
});

fault(
  "a node that stood still until another had its id ends, and leaves what is the other's alone",
  async (tell) => {
    const node = { lost_after_ms: 3000, beat_period_ms: 500 };
    const control = await fleet.control({ node });
    const first = await fleet.node("a", { node });
    await control.makePool({ name: "herd", size: 2 });
    first.daemon.signal("SIGSTOP");
    const second = await fleet.node("a", { node });
    await until(
      "browsers of the second",
      () => second.daemon.log.split('"msg":"browser launched"').length > 2,
    );
    await control.poolWhen("herd", (pool) => pool.available_count === 2);
    const lease = (await control.call("POST /browser_pools/herd/acquire", {})).body as Lease;
    first.daemon.signal("SIGCONT");
    fleet.forget(first.daemon);
    expect(await first.daemon.ended()).toMatchObject({ code: 1 });
    expect(first.daemon.log).toContain("the node id a is in use");
    await assertNothingLeft(first.daemon.place, first.daemon.log);
    first.daemon.place.remove();
    const got = await control.call(`GET /browsers/${lease.session_id}`);
    const { body } = await control.call("GET /browser_pools/herd");
    expect(got).toMatchObject({ status: 200, body: { lease_id: lease.lease_id } });
    expect(body).toMatchObject({ available_count: 1, acquired_count: 1 });
    tell({ saw: "browsers of the other; the one that stood still ends" });
  },
);

const node = { lost_after_ms: 3000, beat_period_ms: 500 };
/** A stopping node has two thirds of this for its saves; a browser that hangs has 10 s of them. */
const stop = { step_seconds: 40, limit_seconds: 100, hurried_seconds: 8 };

fault("a node whose browsers take long to save as it stops keeps its name until then", async (tell) => {
  const { control, first } = await stopWhileSaving();
  const second = await fleet.node("a", { node, archives });
  // It takes the name when it listens.
  expect(first.daemon.log).toContain("profile save ended");
  const lease = await leaseOf(control, second.daemon);
  expect(await first.daemon.ended()).toEqual({ code: 0, signal: null });
  await endsAlone(first.daemon);
  expect(await control.call(`GET /browsers/${lease.session_id}`)).toMatchObject({ status: 200 });
  const { body } = await control.call("GET /browser_pools/herd");
  expect(body).toMatchObject({ available_count: 0, acquired_count: 1 });
  tell({ saw: "waits for the node of that id until its saves are over" });
});

fault("a node that stands still as it stops leaves what is the other's alone", async (tell) => {
  const { control, first } = await stopWhileSaving();
  first.daemon.signal("SIGSTOP");
  const second = await fleet.node("a", { node, archives });
  const lease = await leaseOf(control, second.daemon);
  first.daemon.signal("SIGCONT");
  await first.daemon.ended();
  expect(await control.call(`GET /browsers/${lease.session_id}`)).toMatchObject({ status: 200 });
  await endsAlone(first.daemon);
  const { body } = await control.call("GET /browser_pools/herd");
  expect(body).toMatchObject({ available_count: 0, acquired_count: 1 });
  tell({ saw: "browsers of the other; the one that stood still ends" });
});

/** A node that was asked to stop, and has a browser that does not end when it is to be saved. */
async function stopWhileSaving(): Promise<{ control: DaemonProcess; first: FleetNode }> {
  const control = await fleet.control({ node, archives });
  const first = await fleet.node("a", { node, archives, stop, knobs: { ignore: ["Browser.close"] } });
  await control.call("POST /profiles", { name: "me" });
  const asked = { headless: true, profile: { name: "me", save_changes: true } };
  expect((await control.call("POST /browsers", asked)).status).toBe(200);
  await control.makePool({ name: "herd", size: 1 });
  first.daemon.signal("SIGTERM");
  fleet.forget(first.daemon);
  await control.poolWhen("herd", (pool) => pool.available_count === 0);
  return { control, first };
}

async function leaseOf(control: DaemonProcess, second: DaemonProcess): Promise<Lease> {
  await until("a browser of the second", () => second.log.includes('"msg":"browser launched"'));
  const asked = { acquire_timeout_seconds: 20 };
  const got = await control.call("POST /browser_pools/herd/acquire", asked);
  expect(got.status).toBe(200);
  return got.body as Lease;
}

async function endsAlone({ place, log }: DaemonProcess): Promise<void> {
  await assertNothingLeft(place, log);
  place.remove();
}
