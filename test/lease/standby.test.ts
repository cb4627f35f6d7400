import { afterEach, beforeEach, expect, test } from "vitest";
import { defaultProject, onDemandPartition, partitionOf } from "../../src/base/ids.js";
import { makeFill } from "../../src/pool/fill.js";
import type { Granted } from "../../src/pool/operations.js";
import { makeFillStandby } from "../../src/pool/standby/fill-standby.js";
import type { Jobs } from "../../src/pool/ports/pool-store.js";
import { type StandbyShape, standbyFaults, standbyShapes } from "../../src/pool/standby/shapes.js";
import type { SessionCreate } from "../../src/spec/bodies.js";
import { callerOf, type ControlBed, defaultsOfBed, openControlBed } from "../support/daemon/control-bed.js";
import { nodeFacts } from "../support/store/node-facts.js";
import { nodeA } from "../support/store/pool-bed.js";
import { claimOf } from "../support/store/store-bed.js";

const gib = 2 ** 30;
const headless = { headless: true, memory: "1GiB" } as const;
const shapesOf = (...declared: object[]): readonly StandbyShape[] => standbyShapes(declared, defaultsOfBed);

let control: ControlBed;
let count = 0;
beforeEach(async () => {
  const shapes = shapesOf({ ...headless, count: 3 });
  control = await openControlBed(`standby${(count += 1)}`, { shapes });
  await beat({ memoryBytes: 6 * gib });
});
afterEach(() => control.close());

const beat = (over: object = {}) => control.bed.nodes.beat(nodeFacts(nodeA, over));
const jobs: Jobs = { add: async (more) => void control.bed.jobs.push(...more) };
const fill = (shapes: readonly StandbyShape[], over: { maxAgeMs?: number; isActive?: boolean } = {}) =>
  makeFillStandby({
    standby: control.bed.standby,
    nodes: control.bed.nodes,
    jobs,
    shapes,
    maxAgeMs: over.maxAgeMs ?? null,
    isActive: async () => over.isActive ?? true,
  })(onDemandPartition);
const standing = async () => (await control.bed.standby.find(onDemandPartition)).browsers;
/** Nodes launch what they were told to. */
async function launch(): Promise<void> {
  for (const browser of await standing())
    if (browser.state === "launching") await control.bed.reports.launched(browser.id, claimOf(browser), "{}");
}
/** The nodes end all that is retiring. */
async function clear(): Promise<void> {
  for (const browser of (await control.bed.poolStore.browsers(onDemandPartition)).browsers)
    if (browser.state === "retiring") await control.bed.reports.gone(browser.id, browser.claim, undefined);
  await control.bed.effects.idle();
}
async function filled(shapes: readonly StandbyShape[]): Promise<void> {
  for (const _ of [1, 2, 3]) {
    await fill(shapes);
    await launch();
  }
}
function grantOf(outcome: { kind: string }): Granted {
  if (outcome.kind !== "granted") throw new Error(`not granted: ${JSON.stringify(outcome)}`);
  return outcome as Granted;
}
const launching = async (): Promise<number> =>
  (await control.bed.poolStore.counts(onDemandPartition)).launching;

test("few are launched at a time, as many as are wanted", async () => {
  const shapes = shapesOf({ ...headless, count: 3 });
  await fill(shapes);
  await fill(shapes);
  expect(await standing()).toHaveLength(2);
  await launch();
  await fill(shapes);
  await fill(shapes);
  expect(await standing()).toHaveLength(3);
  expect(control.bed.jobs.filter(({ kind }) => kind === "launch")).toHaveLength(3);
});

test("a session of that shape is one that stood by, whatever only its lease says", async () => {
  await filled(shapesOf({ ...headless, count: 3 }));
  const body = {
    ...headless,
    name: "mine",
    tags: { a: "b" },
    timeout_seconds: 120,
    start_url: "https://example.com/",
    telemetry: { enabled: true },
  } as const;
  const { session } = grantOf(await control.createSession(body, callerOf()));
  expect(session.launch).toMatchObject({ start_url: body.start_url, telemetry: { enabled: true } });
  expect(session.browser.lease).toMatchObject({
    name: "mine",
    timeoutSeconds: 120,
    startUrl: body.start_url,
  });
  expect(session.pool).toBeUndefined();
  expect(await standing()).toHaveLength(2);
  // Nobody else is given its room from now on.
  await expect
    .poll(() => control.bed.nodes.occupancy(nodeA))
    .toMatchObject({ browsers: 1, standby: { browsers: 2 } });
});

const others: readonly SessionCreate[] = [
  { stealth: true },
  { kiosk_mode: true },
  { memory: "2GiB" },
  { viewport: { width: 800, height: 600 } },
  { browser_policy: { BookmarkBarEnabled: true } },
  { network: { allowed_hosts: ["example.com"] } },
  { proxy: { mode: "direct" } },
];
test.each(others)("a session that asks for %o is launched", async (other) => {
  await filled(shapesOf({ ...headless, count: 3 }));
  const outcome = control.createSession({ ...headless, ...other }, callerOf());
  await expect.poll(launching).toBe(1);
  expect(await standing()).toHaveLength(3);
  const { browsers } = await control.bed.poolStore.browsers(onDemandPartition);
  const browser = browsers.find(({ state }) => state === "launching");
  if (browser) await control.bed.reports.launched(browser.id, claimOf(browser), "{}");
  grantOf(await outcome);
});

test("a session with a key is lent one that stands by once, however often it is asked for", async () => {
  await filled(shapesOf({ ...headless, count: 3 }));
  const create = () =>
    control.createSession({ headless: true, memory: "1GiB" }, callerOf({ idempotencyKey: "k" }));
  const [first, second] = [grantOf(await create()), grantOf(await create())];
  expect(second.session.browser.lease.id).toBe(first.session.browser.lease.id);
  expect(await standing()).toHaveLength(2);
});

test("what stands by goes where a pool's browser or another session has no room beside it, and comes back", async () => {
  const shapes = shapesOf({ ...headless, count: 3 });
  await filled(shapes);
  const pool = await control.createPool({ size: 2, headless: true, memory: "2GiB" }, callerOf());
  if (pool.kind !== "done") throw new Error(pool.code);
  const { poolStore, nodes } = control.bed;
  const recycle = { maxAgeMs: null, jitterRatio: 0 };
  await makeFill({ poolStore, nodes, jobs, recycle, random: () => 0 })(partitionOf(pool.value.id));
  expect((await poolStore.counts(partitionOf(pool.value.id))).launching).toBe(2);
  expect(await standing()).toHaveLength(2);
  await fill(shapes);
  expect(await standing()).toHaveLength(2);
  const outcome = control.createSession({ headless: true, memory: "2GiB" }, callerOf());
  await expect.poll(launching).toBe(1);
  expect(await standing()).toHaveLength(0);
  await clear();
  const { browsers } = await control.bed.poolStore.browsers(onDemandPartition);
  for (const browser of browsers) await control.bed.reports.launched(browser.id, claimOf(browser), "{}");
  const { session } = grantOf(await outcome);
  await control.remove(session.browser.id, callerOf());
  await clear();
  await fill(shapes);
  expect(await standing()).toHaveLength(2);
});

test("none is launched to stand by on a node whose memory is short; pools and sessions go by classes", async () => {
  const shapes = shapesOf({ ...headless, count: 3 });
  await beat({ memoryBytes: 6 * gib, memoryIsShort: true });
  await fill(shapes);
  expect(await standing()).toEqual([]);
  const outcome = control.createSession({ ...headless }, callerOf());
  await expect.poll(launching).toBe(1);
  expect(control.standbyAsked).toEqual(["missed"]);
  const { browsers } = await control.bed.poolStore.browsers(onDemandPartition);
  for (const browser of browsers) await control.bed.reports.launched(browser.id, claimOf(browser), "{}");
  grantOf(await outcome);
  await beat({ memoryBytes: 6 * gib });
  await filled(shapes);
  grantOf(await control.createSession({ ...headless }, callerOf()));
  grantOf(await control.createSession({ ...headless, name: "mine" }, callerOf({ idempotencyKey: "k" })));
  grantOf(await control.createSession({ ...headless, name: "mine" }, callerOf({ idempotencyKey: "k" })));
  // What an earlier request was given is lent to nobody anew.
  expect(control.standbyAsked).toEqual(["missed", "taken", "taken"]);
});

test("what no shape asks for any more, what is old and what an archived project has is retired", async () => {
  const shapes = shapesOf({ ...headless, count: 3 });
  await filled(shapes);
  await fill(shapesOf({ ...headless, count: 1 }));
  expect(await standing()).toHaveLength(1);
  await fill(shapesOf({ ...headless, stealth: true, count: 1 }));
  await launch();
  expect((await standing()).map(({ standby }) => standby)).toEqual([
    shapesOf({ ...headless, stealth: true, count: 1 })[0]?.key,
  ]);
  await fill(shapesOf({ ...headless, stealth: true, count: 1 }), { isActive: false });
  expect(await standing()).toEqual([]);
  await clear();
  await filled(shapes);
  await fill(shapes, { maxAgeMs: -1 });
  expect((await standing()).map(({ state }) => state)).toEqual(["launching", "launching"]);
  await fill([]);
  expect(await standing()).toEqual([]);
});

test("the setting is refused where it names what is registered, an unknown field, a project, or a shape twice", () => {
  const faultsOf = (...declared: object[]) =>
    standbyFaults(declared, { defaults: defaultsOfBed, hasProjects: false });
  expect(faultsOf({ ...headless, count: 2 }, { count: 1, project: defaultProject })).toEqual([]);
  expect(faultsOf({ count: 1, profile: { name: "mine" } })).toEqual([
    "standby[0].profile: is not a known field",
  ]);
  expect(faultsOf({ headless: true })).toEqual(["standby[0].count: is required"]);
  expect(faultsOf({ count: 1, project: "abcdefghijkl" })).toEqual([
    "standby[0].project: needs projects.enabled",
  ]);
  expect(faultsOf({ count: 1, headless: true, memory: "8GiB" })).toEqual([
    expect.stringMatching(/^standby\[0\]\.memory/),
  ]);
  const routes = [{ hosts: ["example.com"], proxy: { name: "mine" } }];
  expect(faultsOf({ count: 1, network: { proxy_routes: routes } })).toEqual([
    "standby[0].network.proxy_routes: proxies may change while browsers stand by",
  ]);
  expect(faultsOf({ ...headless, count: 1 }, { ...headless, count: 2 })).toEqual([
    "standby[1]: is that of standby[0]",
  ]);
});
