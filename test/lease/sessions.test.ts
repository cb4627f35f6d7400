import { afterEach, beforeEach, expect, test } from "vitest";
import { RemudaError } from "../../src/base/errors.js";
import { newLeaseId, newProxyId, onDemandPartition } from "../../src/base/ids.js";
import { lateSessionPorts } from "../../src/lease/release.js";
import { undoneWhereLate } from "../../src/pool/late-creation.js";
import type { PoolSpec } from "../../src/spec/launch-template.js";
import { until } from "../support/browser/chromium-until.js";
import { callerOf, type ControlBed, openControlBed } from "../support/daemon/control-bed.js";
import { type Held, PoolBed } from "../support/store/pool-bed.js";
import { beatOfNode, filledPool, lendFrom } from "../support/daemon/control-pools.js";
import type { AcquireBody } from "../../src/spec/bodies.js";

let control: ControlBed;
let count = 0;
beforeEach(async () => {
  control = await openControlBed(`sessions${(count += 1)}`);
});
afterEach(() => control.close());

const retry = () => callerOf({ retryCount: 1 });

const filled = (size = 1, over: Partial<PoolSpec> = {}): Promise<PoolBed> =>
  filledPool(control, { size, name: "herd", ...over });
const lend = (pool: PoolBed, body: AcquireBody = {}): Promise<Held> => lendFrom(control, pool, body);

test("a session names its proxy as it is called now", async () => {
  const id = newProxyId();
  const record = {
    protocol: "http",
    host: "proxy.example",
    port: 3128,
    hasPassword: false,
    hasCaBundle: false,
    bypassHosts: [],
  } as const;
  await control.bed.proxies.create({ id, record, name: "out", most: 10 });
  const held = await lend(await filled(1, { proxy_id: id }));
  const shown = async () => {
    const got = await control.getSession(held.id, { includeDeleted: false });
    return got.kind === "done" && got.value.kind === "session"
      ? [got.value.session.launch.proxy_id, got.value.session.proxyName]
      : got;
  };
  expect(await shown()).toEqual([id, "out"]);
  const found = async (query: string) =>
    (await control.listSessions({ limit: 20, offset: 0, status: "all", query })).items.length;
  expect([await found(id), await found(newProxyId()), await found("")]).toEqual([1, 0, 1]);
  await control.bed.proxies.rename(id, "away");
  expect(await shown()).toEqual([id, "away"]);
  await control.bed.proxies.remove(id);
  expect(await shown()).toEqual([id, undefined]);
});

test("operations that name another lease than the present one change nothing", async () => {
  const pool = await filled();
  const earlier = await lend(pool);
  await pool.release(earlier);
  const present = await lend(pool);
  const late = callerOf({ lease: earlier.lease });
  expect(await control.updateSession(present.id, { name: "late" }, late)).toMatchObject({
    code: "lease_superseded",
  });
  expect(await control.remove(present.id, late)).toMatchObject({ code: "lease_superseded" });
  expect(
    await control.release(pool.id, { session_id: present.id }, callerOf({ lease: newLeaseId() })),
  ).toMatchObject({ code: "lease_superseded" });
  // What is released is released.
  expect(await control.release(pool.id, { session_id: present.id }, late)).toMatchObject({ kind: "done" });
  expect((await pool.record(present.id)).lease?.id).toBe(present.lease);
});

test("a release is done once: its repeat, by whatever reference to the pool, is no error and ends nothing", async () => {
  const pool = await filled();
  const held = await lend(pool);
  expect(
    await control.release(pool.id, { session_id: held.id, reuse: false }, callerOf({ lease: held.lease })),
  ).toMatchObject({ kind: "done" });
  expect(await control.release(pool.id, { session_id: held.id }, retry())).toMatchObject({ kind: "done" });
  await pool.clear();
  expect(await control.release(pool.id, { session_id: held.id }, retry())).toMatchObject({ kind: "done" });
  expect(
    await control.release(pool.id, { session_id: held.id }, callerOf({ lease: held.lease })),
  ).toMatchObject({ kind: "done" });
  expect(
    await control.release(
      pool.id,
      { session_id: held.id },
      callerOf({ lease: "0123456789abcdef01234567" as typeof held.lease }),
    ),
  ).toMatchObject({ code: "lease_superseded" });
  expect(await control.release("nowhere", { session_id: held.id }, callerOf())).toMatchObject({
    code: "pool_not_found",
  });
  expect(await control.release(pool.id, { session_id: "nothing" }, callerOf())).toMatchObject({
    code: "browser_not_found",
  });
});

test("a DELETE ends the session; only its repeat by the client's own retry is no error", async () => {
  const pool = await filled();
  const held = await lend(pool, { name: "one" });
  const { lease } = held;
  const retryWith = (named: typeof lease) => callerOf({ retryCount: 1, lease: named });
  expect(await control.remove("one", callerOf({ lease }))).toMatchObject({ kind: "done" });
  for (const ref of [held.id, "one"]) {
    expect(await control.remove(ref, retry())).toMatchObject({ kind: "done" });
    expect(await control.remove(ref, retryWith(lease))).toMatchObject({ kind: "done" });
    expect(await control.remove(ref, callerOf())).toMatchObject({ code: "browser_not_found" });
  }
  await pool.clear();
  for (const ref of [held.id, "one"]) {
    expect(await control.remove(ref, retry())).toMatchObject({ kind: "done" });
    expect(await control.remove(ref, retryWith(lease))).toMatchObject({ kind: "done" });
    expect(await control.remove(ref, retryWith(newLeaseId()))).toMatchObject({ code: "browser_not_found" });
  }
  expect(await control.remove("other", retry())).toMatchObject({ code: "browser_not_found" });
});

test("a DELETE whose control died before the tombstone was moved is repeated by id and by name, and its session is told", async () => {
  const pool = await filled(2);
  const held = await lend(pool, { name: "one" });
  const { projects } = control.bed;
  const { moveTombstones, freeName } = projects;
  const lost = async (): Promise<void> => {};
  Object.assign(projects, { moveTombstones: lost, freeName: lost });
  await pool.release(held, { reuse: false, why: "deleted" });
  await pool.clear();
  Object.assign(projects, { moveTombstones, freeName });
  for (const ref of ["one", held.id])
    expect(await control.remove(ref, retry())).toMatchObject({ kind: "done" });
  expect(await control.getSession(held.id, { includeDeleted: true })).toMatchObject({
    value: { kind: "deleted", tombstone: { id: held.id, reason: "deleted" } },
  });
});

test.each(["the look at its project", "its removal from a project that was closed"])(
  "a session on demand is given back where %s fails, so that its caller is not told of it",
  async (what) => {
    await beatOfNode(control);
    const fail = async (): Promise<never> => {
      throw new RemudaError("store_unavailable", { message: "Redis cannot be reached" });
    };
    const isActive = what === "the look at its project" ? fail : async () => false;
    const create = undoneWhereLate(control.createSession, { isActive, ...lateSessionPorts(fail) });
    const outcome = create({ headless: true }, callerOf());
    outcome.catch(() => {});
    const job = await until("the launch", () => control.bed.jobs.at(-1));
    await control.bed.reports.launched(job.browser, job.claim, "{}");
    await expect(outcome).rejects.toThrow("Redis cannot be reached");
    await control.grants.idle();
    const { browsers } = await control.bed.poolStore.browsers(onDemandPartition);
    expect(browsers.map(({ state }) => state)).toEqual(["retiring"]);
  },
);

test("an idle browser of a pool is no session", async () => {
  const pool = await filled();
  const [idle] = await pool.browsers();
  const id = idle?.id ?? "";
  expect(await control.getSession(id, { includeDeleted: true })).toMatchObject({ code: "browser_not_found" });
  expect(await control.updateSession(id, {}, callerOf())).toMatchObject({ code: "browser_not_found" });
  expect(await control.remove(id, callerOf())).toMatchObject({ code: "browser_not_found" });
  expect(await control.listSessions({ limit: 20, offset: 0, status: "all" })).toMatchObject({ items: [] });
});

test("a session that is over is shown only where that is asked for: the last of a name, an id before a name", async () => {
  const pool = await filled(2);
  const first = await lend(pool, { name: "one" });
  await control.remove(first.id, callerOf());
  await pool.age(1000);
  const second = await lend(pool, { name: "one" });
  await control.remove(second.id, callerOf());
  expect(await control.getSession("one", { includeDeleted: false })).toMatchObject({
    code: "browser_not_found",
  });
  expect(await control.getSession("one", { includeDeleted: true })).toMatchObject({
    value: { kind: "deleted", tombstone: { id: second.id, reason: "deleted" } },
  });
  expect(await control.getSession(first.id, { includeDeleted: true })).toMatchObject({
    value: { tombstone: { id: first.id } },
  });
});

test("pages of a list are disjoint and complete, whatever was made at the same instant; filters are joined", async () => {
  const pool = await filled(5);
  for (let i = 0; i < 5; i += 1)
    await lend(pool, { name: `session-${i}`, tags: { odd: String(i % 2), all: "yes" } });
  const seen: string[] = [];
  for (let offset = 0; offset < 6; offset += 2) {
    const { items } = await control.listSessions({ limit: 2, offset, status: "active" });
    seen.push(...items.map((item) => (item.kind === "session" ? item.session.browser.id : "")));
  }
  expect(new Set(seen).size).toBe(5);
  const named = async (query: object) =>
    (await control.listSessions({ limit: 20, offset: 0, status: "active", ...query })).items
      .map((item) => (item.kind === "session" ? item.session.browser.lease?.name : ""))
      .toSorted();
  expect(await named({ tags: { odd: "1" } })).toEqual(["session-1", "session-3"]);
  expect(await named({ tags: { odd: "1", all: "no" } })).toEqual([]);
  expect(await named({ query: "SESSION-3" })).toEqual(["session-3"]);
  expect(await named({ query: "HeR" })).toHaveLength(5);
  expect(await named({ query: pool.id })).toHaveLength(5);
  expect(await named({ region: "us-west" })).toEqual([]);
});

test("a session that ends while it is listed is left out", async () => {
  const pool = await filled();
  await pool.lend();
  control.bed.poolStore.findTemplate = async () => undefined;
  expect(await control.listSessions({ limit: 20, offset: 0, status: "active" })).toMatchObject({ items: [] });
});
