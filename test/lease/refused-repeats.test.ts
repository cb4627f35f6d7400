import { afterEach, beforeEach, expect, test } from "vitest";
import { newOtlpDestinationId, onDemandPartition, type PoolId } from "../../src/base/ids.js";
import type { Granted } from "../../src/pool/operations.js";
import type { Pool } from "../../src/pool/pool.js";
import { until } from "../support/browser/chromium-until.js";
import { callerOf, type ControlBed, openControlBed } from "../support/daemon/control-bed.js";
import { beatOfNode, filledPool } from "../support/daemon/control-pools.js";
import { aProfile } from "../support/node/registered.js";
import { age } from "../support/store/age.js";
import { nodeFacts } from "../support/store/node-facts.js";
import { nodeA, nodeB } from "../support/store/pool-bed.js";

let control: ControlBed;
let count = 0;
beforeEach(async () => {
  control = await openControlBed(`repeats${(count += 1)}`);
  await beatOfNode(control);
});
afterEach(() => control.close());

const keyed = (key = "once") => callerOf({ idempotencyKey: key });
const leaseOf = (outcome: { kind: string }): string | undefined => {
  if (outcome.kind !== "granted") throw new Error(JSON.stringify(outcome));
  return (outcome as Granted).session.browser.lease?.id;
};
function poolOf(outcome: { kind: string }): Pool {
  if (outcome.kind !== "done") throw new Error(JSON.stringify(outcome));
  return (outcome as { kind: "done"; value: Pool }).value;
}

const withLogin = { headless: true, name: "mine", profile: { name: "login" } } as const;

test("a session on demand whose profile was deleted since is its key's still, and nobody else's", async () => {
  const login = await aProfile(control.bed, "login");
  const first = control.createSession(withLogin, keyed());
  const { browser, claim } = await until("a launch", () =>
    control.bed.jobs.find(({ kind }) => kind === "launch"),
  );
  await control.bed.profiles.remove(login);
  const meanwhile = control.createSession(withLogin, keyed());
  await until("the second's place", () => control.messages.some(({ kind }) => kind === "superseded"));
  await control.bed.reports.launched(browser, claim, "{}");
  const lease = leaseOf(await meanwhile);
  expect(await first).toMatchObject({ code: "conflict" });
  expect(leaseOf(await control.createSession(withLogin, keyed()))).toBe(lease);
  expect(await control.createSession({ ...withLogin, stealth: true }, keyed())).toMatchObject({
    code: "idempotency_mismatch",
  });
  expect(await control.createSession(withLogin, keyed("other"))).toMatchObject({ code: "bad_request" });
  expect(control.bed.jobs.filter(({ kind }) => kind === "launch")).toHaveLength(1);
  expect((await control.bed.projects.findName("session", "mine"))?.owner).toBe(lease);
  await control.remove(browser, callerOf());
  expect(await control.createSession(withLogin, keyed())).toMatchObject({ code: "lease_ended" });
});

/** A first request for a session with a profile, whose launch has begun. */
async function begun() {
  const login = await aProfile(control.bed, "login");
  const first = control.createSession(withLogin, keyed());
  const launch = await until("a launch", () => control.bed.jobs.find(({ kind }) => kind === "launch"));
  const fails = () => control.bed.reports.launchFailed(launch.browser, launch.claim, "no display");
  return { first, launch, fails, forgetsProfile: () => control.bed.profiles.remove(login) };
}
const launches = () => control.bed.jobs.filter(({ kind }) => kind === "launch");
const refusedAsFirst = () => ({
  code: "bad_request",
  details: [{ message: expect.stringContaining("profile") as string }],
});

test("a repeat whose launch has failed already is refused as a first request, and revives no place", async () => {
  const { first, fails, forgetsProfile } = await begun();
  await fails();
  expect(await first).toMatchObject({ code: "launch_failed" });
  await forgetsProfile();
  expect(await control.createSession(withLogin, keyed())).toMatchObject(refusedAsFirst());
  expect(launches()).toHaveLength(1);
  await age(control.bed.redis, `remuda:${control.bed.project}:{${onDemandPartition}}:*`, 11_000);
  await control.bed.poolStore.reap(onDemandPartition);
  expect(await control.bed.projects.findName("session", "mine")).toBeUndefined();
});

test("a repeat that comes before its first request hears that the launch has failed leaves it its place", async () => {
  await control.bed.nodes.beat(nodeFacts(nodeB));
  const { first, launch, fails, forgetsProfile } = await begun();
  control.lost.add("failed");
  await fails();
  await forgetsProfile();
  expect(await control.createSession(withLogin, keyed())).toMatchObject(refusedAsFirst());
  const failure = await until("the failure", () => control.messages.find(({ kind }) => kind === "failed"));
  if (failure.kind === "failed") control.waiters.deliver(failure.connection, failure);
  const second = await until("a launch elsewhere", () => launches()[1]);
  expect(second.node).not.toBe(launch.node);
  await control.bed.reports.launched(second.browser, second.claim, "{}");
  const lease = leaseOf(await first);
  expect(leaseOf(await control.createSession(withLogin, keyed()))).toBe(lease);
});

test("a repeat whose launch fails as it waits is refused as a first request: no other node is tried", async () => {
  await control.bed.nodes.beat(nodeFacts(nodeB));
  const { first, fails, forgetsProfile } = await begun();
  await forgetsProfile();
  const meanwhile = control.createSession(withLogin, keyed());
  await until("the second's place", () => control.messages.some(({ kind }) => kind === "superseded"));
  await fails();
  expect(await meanwhile).toMatchObject(refusedAsFirst());
  expect(await first).toMatchObject({ code: "conflict" });
  expect(launches()).toHaveLength(1);
});

test("a repeat whose launch has failed, and for which no node has room now, is told so at once", async () => {
  await control.bed.nodes.beat(nodeFacts(nodeA, { maxBrowsers: 1 }));
  const { first, fails } = await begun();
  await fails();
  expect(await first).toMatchObject({ code: "launch_failed" });
  void control.createSession({ headless: true }, callerOf()).catch(() => {});
  await until("another's launch", () => launches()[1]);
  expect(await control.createSession(withLogin, keyed())).toMatchObject({ code: "capacity_exhausted" });
});

test("an acquire whose destination of telemetry was deleted since is its key's still, and nobody else's", async () => {
  const pool = await filledPool(control, { size: 2 });
  const id = newOtlpDestinationId();
  const record = { endpoint: "https://otlp.example", headerNames: [] };
  await control.bed.destinations.create({ id, name: "out", record, most: 10 });
  const body = { telemetry: { export: { otlp: { destination: { name: "out" } } } } };
  const lease = leaseOf(await control.acquire(pool.id, body, keyed()));
  await control.bed.destinations.remove(id);
  expect(leaseOf(await control.acquire(pool.id, body, keyed()))).toBe(lease);
  expect(await control.acquire(pool.id, body, keyed("other"))).toMatchObject({ code: "bad_request" });
  expect(await pool.counts()).toMatchObject({ idle: 1, leased: 1 });
});

test.each(["", "settleKey"])(
  "a pool whose profile was deleted since is its key's still, also after a fault of: %s",
  async (call) => {
    const login = await aProfile(control.bed, "login");
    const body = { size: 1, name: "herd", profile: { name: "login" } };
    control.broken.add(call);
    const first = await control.createPool(body, keyed()).catch(() => undefined);
    control.broken.clear();
    const [made] = await control.bed.projects.pools();
    poolOf(await control.updatePool(made as PoolId, { profile: { name: "" } }, callerOf()));
    await control.bed.profiles.remove(login);
    expect(poolOf(await control.createPool(body, keyed())).id).toBe(made);
    if (first) expect(poolOf(first).id).toBe(made);
    expect(await control.createPool(body, keyed("other"))).toMatchObject({ code: "bad_request" });
    expect(await control.bed.projects.pools()).toEqual([made]);
    await control.removePool(made as PoolId, { force: true });
    expect(await control.createPool(body, keyed())).toMatchObject({ code: "pool_not_found" });
  },
);
