import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, onTestFinished, test } from "vitest";
import { until } from "../support/browser/chromium-until.js";
import type { Lease, PoolBrowser } from "../support/daemon/daemon.js";
import type { DaemonProcess } from "../support/daemon/daemon-process.js";
import { Fleet, type FleetNode } from "../support/daemon/fleet.js";

let fleet: Fleet;
let control: DaemonProcess;
let a: FleetNode;
/** A node whose beat is late gets nothing more, and on a busy machine it soon is. */
const patient = { beat_period_ms: 1000, lost_after_ms: 30_000 };
beforeEach(async () => {
  fleet = await Fleet.open();
  control = await fleet.control({ node: patient });
  a = await fleet.node("a", { node: { ...patient, zone: "north", labels: ["disk=fast", "team=x"] } });
  await fleet.node("b", { node: patient });
  for (const id of ["a", "b"]) await whenReady(id);
});
afterEach(() => fleet.close());

async function acquire(): Promise<Lease> {
  const got = await control.call("POST /browser_pools/herd/acquire", { acquire_timeout_seconds: 30 });
  if (got.status !== 200) throw new Error(`not acquired: ${got.status} ${got.text}`);
  return got.body as Lease;
}
const nodesOf = async (): Promise<string[]> =>
  (await control.browsersOf("herd")).map(({ node }) => node).toSorted();
interface ShownNode {
  readonly id: string;
  readonly state: string;
  readonly drains_until?: string;
}
const nodeOf = async (id: string): Promise<ShownNode | undefined> =>
  ((await control.call("GET /nodes")).body as ShownNode[]).find((node) => node.id === id);
const stateOf = async (id: string): Promise<unknown> => (await nodeOf(id))?.state;
const whenReady = (id: string): Promise<unknown> =>
  until(`${id} ready`, async () => (await stateOf(id)) === "ready");
/** A beat that is late is all that may keep it from being ready. */
async function expectDrainOver(id: string): Promise<void> {
  expect(await stateOf(id)).not.toBe("draining");
  await whenReady(id);
}
const leaseOn = async (node: string): Promise<Lease> => {
  const leases = [await acquire(), await acquire()];
  const browsers = await control.browsersOf("herd");
  const there = leases.find(({ session_id: id }) =>
    browsers.some((browser) => browser.session_id === id && browser.node === node),
  );
  if (!there) throw new Error(`nothing was lent on ${node}`);
  return there;
};
const release = async ({ session_id }: Lease): Promise<void> =>
  void (await control.call("POST /browser_pools/herd/release", { session_id }));

test("a node is drained by the API: it keeps its leases, gets nothing more, and is used again afterwards", async () => {
  expect((await control.call("GET /nodes")).body).toMatchObject([
    { id: "a", state: "ready", zone: "north", labels: { disk: "fast", team: "x" }, browsers: 0 },
    { id: "b", state: "ready", labels: {} },
  ]);
  await control.makePool({ name: "herd", size: 2 });
  await control.poolWhen("herd", (pool) => pool.available_count === 2);
  expect(await nodesOf()).toEqual(["a", "b"]);
  const held = await leaseOn("a");
  const asked = Date.now();
  const drained = await control.call("POST /nodes/a/drain", { limit_seconds: 300 });
  expect(drained).toMatchObject({ status: 200, body: { id: "a", state: "draining" } });
  const endsAt = Date.parse((drained.body as { drains_until: string }).drains_until);
  expect(endsAt - asked).toBeGreaterThan(295_000);
  expect(endsAt - Date.now()).toBeLessThanOrEqual(300_000);
  await until("the session tells", async () => {
    const { body } = await control.call(`GET /browsers/${held.session_id}`);
    return Date.parse((body as { drains_until?: string }).drains_until ?? "") === endsAt;
  });
  await control.poolWhen("herd", (pool) => pool.available_count === 1 && pool.acquired_count === 2);
  expect(await nodesOf()).toEqual(["a", "b", "b"]);
  await release(held);
  await until("nothing left there", async () => (await nodesOf()).every((node) => node === "b"));
  expect(await stateOf("a")).toBe("draining");
  expect((await fetch(`${a.daemon.url}/readyz`)).status).toBe(200);
  expect((await control.call("DELETE /nodes/a/drain")).status).toBe(204);
  await expectDrainOver("a");
  await control.call("PATCH /browser_pools/herd", { size: 4 });
  await until("something there again", async () => (await nodesOf()).includes("a"));
});

test("a drain by the API ends what outlasts its limit, with its reason, and the node goes on", async () => {
  await control.makePool({ name: "herd", size: 2 });
  await control.poolWhen("herd", (pool) => pool.available_count === 2);
  const held = await leaseOn("a");
  expect((await control.call("POST /nodes/a/drain", { limit_seconds: 2 })).status).toBe(200);
  await until("the lease over", async () => {
    const { status } = await control.call(`GET /browsers/${held.session_id}`);
    return status === 404;
  });
  expect((await control.call(`GET /browsers/${held.session_id}?include_deleted=true`)).body).toMatchObject({
    reason: "drained",
  });
  await until("nothing left there", async () => (await nodesOf()).every((node) => node === "b"));
  expect(await stateOf("a")).toBe("draining");
});

test("a node that is told to stop has its sessions say until when they live", async () => {
  const node = { ...patient, labels: ["spot=yes"] };
  const c = await fleet.node("c", { drain: { limit_seconds: 200 }, node });
  await control.makePool({ name: "herd", node_selector: { spot: "yes" } });
  const held = await acquire();
  const shown = async (): Promise<string | undefined> =>
    ((await control.call(`GET /browsers/${held.session_id}`)).body as { drains_until?: string }).drains_until;
  expect(await shown()).toBeUndefined();
  const asked = Date.now();
  c.daemon.signal("SIGTERM");
  const until200 = Date.parse(await until("the session tells", shown));
  expect(until200 - asked).toBeGreaterThan(195_000);
  expect(until200 - Date.now()).toBeLessThanOrEqual(200_000);
  // It drains by its own limit: nobody else ends that, or says another time.
  const refused = { status: 409, body: { code: "conflict" } };
  expect(await control.call("DELETE /nodes/c/drain")).toMatchObject(refused);
  expect(await control.call("POST /nodes/c/drain", { limit_seconds: 1000 })).toMatchObject(refused);
  expect(await nodeOf("c")).toMatchObject({ state: "draining" });
  expect(Date.parse((await nodeOf("c"))?.drains_until ?? "")).toBe(until200);
  await release(held);
  expect(await c.daemon.ended()).toEqual({ code: 0, signal: null });
  fleet.forget(c.daemon);
  c.daemon.place.remove();
});

test("a node that stands still amid its drain until it is taken for lost drains on when it goes on", async () => {
  const hasty = await fleet.control({ node: { lost_after_ms: 4000 } });
  expect((await control.call("POST /nodes/a/drain", { limit_seconds: 300 })).status).toBe(200);
  const before = await nodeOf("a");
  a.daemon.signal("SIGSTOP");
  const lost = /"node":"a"[^\n]*"node lost"/;
  await until("the node lost", () => [control, hasty].some(({ log }) => lost.test(log)));
  expect(await nodeOf("a")).toBeUndefined();
  a.daemon.signal("SIGCONT");
  const after = await until("its return", () => nodeOf("a"));
  expect(after).toMatchObject({ state: "draining", drains_until: before?.drains_until });
  expect((await control.call("DELETE /nodes/a/drain")).status).toBe(204);
  await expectDrainOver("a");
});

test("a drain that is ended after replacements were begun leaves the pool at its size, all of it lent", async () => {
  await control.makePool({ name: "herd", size: 4 });
  for (let times = 0; times < 3; times += 1) {
    const before = await control.browsersOf("herd");
    const isNew = ({ session_id: id }: PoolBrowser): boolean =>
      before.every((browser) => browser.session_id !== id);
    const node = before[0]?.node;
    expect((await control.call(`POST /nodes/${node}/drain`, { limit_seconds: 300 })).status).toBe(200);
    await until("a replacement begun", async () => (await control.browsersOf("herd")).some(isNew));
    expect((await control.call(`DELETE /nodes/${node}/drain`)).status).toBe(204);
    await until("as many as there are to be", async () => {
      const browsers = await control.browsersOf("herd");
      return browsers.length === 4 && browsers.every(({ state }) => state === "idle");
    });
    const leases = await Promise.all([acquire(), acquire(), acquire(), acquire()]);
    expect(new Set(leases.map(({ session_id: id }) => id)).size).toBe(4);
    await Promise.all(leases.map(release));
    await control.poolWhen("herd", (pool) => pool.available_count === 4 && pool.acquired_count === 0);
  }
});

test("a drain by the API saves a session's profile before its browser is gone", async () => {
  const directory = await mkdtemp(join(tmpdir(), "remuda-test-archives-"));
  onTestFinished(() => rm(directory, { recursive: true }));
  const saving = await fleet.control({ archives: { directory }, node: patient });
  await fleet.node("c", { archives: { directory }, node: patient });
  // Sessions on demand go where nothing drains.
  for (const node of ["a", "b"]) await saving.call(`POST /nodes/${node}/drain`, { limit_seconds: 300 });
  await saving.call("POST /profiles", { name: "me" });
  const asked = { headless: true, profile: { name: "me", save_changes: true } };
  const made = await saving.call("POST /browsers", asked);
  expect(made.status).toBe(200);
  expect((await saving.call("GET /profiles/me")).body.updated_at).toBeFalsy();
  expect((await saving.call("POST /nodes/c/drain", { limit_seconds: 1 })).status).toBe(200);
  const { session_id: id } = made.body as Lease;
  await until("the session over", async () => (await saving.call(`GET /browsers/${id}`)).status === 404);
  expect((await saving.call(`GET /browsers/${id}?include_deleted=true`)).body).toMatchObject({
    reason: "drained",
  });
  await until("its profile saved", async () => (await saving.call("GET /profiles/me")).body.updated_at);
  expect((await saving.call("GET /profiles/me/download?format=tar")).status).toBe(200);
});

test("what is no node is 404", async () => {
  for (const call of ["POST /nodes/nowhere/drain", "DELETE /nodes/nowhere/drain", "POST /nodes/A!/drain"])
    expect(await control.call(call, call.startsWith("POST") ? {} : undefined)).toMatchObject({
      status: 404,
      body: { code: "node_not_found" },
    });
});
