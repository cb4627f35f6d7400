import { afterAll, beforeAll, expect, test } from "vitest";
import {
  newExtensionId,
  newBrowserId,
  newLeaseId,
  newPoolId,
  onDemandPartition,
  partitionOf,
  newProfileId,
} from "../../src/base/ids.js";
import { makeFill } from "../../src/pool/fill.js";
import { refuseInUse } from "../../src/registry/in-use.js";
import { gaugesOf } from "../../src/daemon/metrics.js";
import { age } from "../support/store/age.js";
import { callerOf, type ControlBed, openControlBed } from "../support/daemon/control-bed.js";
import { nodeA, nodeB, PoolBed } from "../support/store/pool-bed.js";
import { costOf, type Cost } from "../support/store/redis-cost.js";
import { poolSpec, request } from "../support/store/store-bed.js";
import { until } from "../support/browser/chromium-until.js";
import { nodeFacts } from "../support/store/node-facts.js";

/** A record has some 400 bytes: all of them are many times what any answer here takes. */
const size = 400;
const tombstones = 1000;
const smallBytes = 30_000;

let control: ControlBed;
let pool: PoolBed;
beforeAll(async () => {
  control = await openControlBed("costs");
  pool = await PoolBed.filled(control.bed, { size, network: { allowed_hosts: ["*.example"] } });
  // Every browser is stale from now on.
  await pool.update({ viewport: { width: 1024, height: 768, refresh_rate: 60 } }, { isNewLaunch: true });
  await control.bed.projects.addPool(pool.id);
  await control.bed.projects.openPool(pool.id);
}, 120_000);
afterAll(() => control.close());

const facts = nodeFacts(nodeA);

const cost = (work: () => Promise<unknown>): Promise<Cost> => costOf(control.bed.redis, work);
const cheap = {
  bytes: expect.toSatisfy((bytes: number) => bytes < smallBytes),
  reads: expect.toSatisfy((reads: number) => reads < 30),
};

test("an acquire with a start page reads what it answers with, however many browsers are stale", async () => {
  expect(
    await cost(() => control.acquire(pool.id, { start_url: "https://a.example/" }, callerOf())),
  ).toMatchObject({ ...cheap, wholeReads: 0 });
  expect(await control.acquire(pool.id, { start_url: "https://elsewhere.test/" }, callerOf())).toMatchObject({
    code: "bad_request",
  });
});

test("a GET of the pool counts its stale browsers without reading them", async () => {
  expect(await cost(() => control.getPool(pool.id))).toMatchObject({ ...cheap, wholeReads: 0 });
  expect(await pool.counts()).toMatchObject({ stale: size });
});

test("a fill, a reap and a recycling read no browser that they leave as it is", async () => {
  const { poolStore } = control.bed;
  expect(await cost(() => poolStore.wanted(pool.partition, 100))).toMatchObject({ ...cheap, wholeReads: 0 });
  expect(await cost(() => poolStore.spread(pool.partition))).toMatchObject({ ...cheap, wholeReads: 0 });
  expect(await cost(() => poolStore.reap(pool.partition))).toMatchObject({ ...cheap, wholeReads: 0 });
  expect(
    await cost(() => poolStore.recycle(pool.partition, { maxLeases: 5, request: request() })),
  ).toMatchObject({ ...cheap, wholeReads: 0 });
  expect(
    await cost(() =>
      poolStore.clearNode(pool.partition, { node: nodeB, why: "drained", which: "all", request: request() }),
    ),
  ).toMatchObject({ ...cheap, wholeReads: 0 });
});

test("a fill that finds no room reads no configuration again and again", async () => {
  const { poolStore, nodes } = control.bed;
  const browser_policy = {
    URLBlocklist: Array.from({ length: 5000 }, (_, place) => `host-${place}.example`),
  };
  const other = await PoolBed.create(control.bed, { size: 5, browser_policy });
  const fill = makeFill({
    poolStore,
    nodes,
    jobs: { add: async () => {} },
    random: () => 0,
    recycle: { maxAgeMs: null, jitterRatio: 0 },
  });
  await fill(other.partition);
  expect(await cost(() => fill(other.partition))).toMatchObject(cheap);
  expect(await other.counts()).toMatchObject({ launching: 0 });
});

test("what a save has flushed is not looked through again, but for browsers that were in use then", async () => {
  const { poolStore } = control.bed;
  const other = await PoolBed.filled(control.bed, { size: 100 });
  await other.lend();
  await other.age(1000);
  const held = await other.lend();
  const [newest] = await other.browsers();
  const savedAt = (newest?.createdAt ?? 0) - 1;
  const refresh = (): Promise<void> => other.refresh(savedAt + 2);
  const idle = async (): Promise<number> => (await other.counts()).idle;
  await other.refresh(savedAt);
  expect(await idle()).toBe(98);
  const again = { before: savedAt, request: request() };
  expect(await cost(() => poolStore.refresh(other.partition, again))).toMatchObject({
    ...cheap,
    reads: 0,
    wholeReads: 0,
  });
  await refresh();
  expect(await idle()).toBe(0);
  await other.connect(held);
  await other.release(held);
  await other.freed(held.id);
  expect(await idle()).toBe(1);
  await refresh();
  expect(await idle()).toBe(0);
});

test("a pool that shrinks reads the browsers that go", async () => {
  const other = await PoolBed.filled(control.bed, { size: 100 });
  expect(await cost(() => other.update({ size: 98 }))).toMatchObject({ ...cheap, wholeReads: 0 });
  expect(await other.counts()).toMatchObject({ idle: 98 });
});

test("a node that looks again at browsers of which none has changed is told just that", async () => {
  const look = (): Promise<unknown> => control.bed.poolStore.browsersOf(pool.partition, nodeB);
  await look();
  expect(await cost(look)).toMatchObject({ ...cheap, wholeReads: 0 });
});

test("metrics and a page of sessions read no more than they show", async () => {
  const { bed } = control;
  for (let leased = (await pool.counts()).leased; leased < size; leased += 1) await pool.lend();
  expect(await cost(() => gaugesOf({ ...bed, projects: bed.allProjects }).pools())).toMatchObject({
    ...cheap,
    wholeReads: 0,
  });
  const page = (): ReturnType<ControlBed["listSessions"]> =>
    control.listSessions({ limit: 3, offset: 200, status: "active" });
  expect(await cost(page)).toMatchObject({ ...cheap, wholeReads: 0 });
  expect(await page()).toMatchObject({
    items: [{ kind: "session" }, { kind: "session" }, { kind: "session" }],
    hasMore: true,
    nextOffset: 203,
  });
});

test("a look at rooms and names does not ask for each by itself", async () => {
  const { bed } = control;
  const named = await PoolBed.filled(bed, { size: 60 });
  for (const { id } of await named.browsers()) await bed.nodes.reserveRoom(facts, { id, bytes: 1 });
  for (let unborn = 0; unborn < 60; unborn += 1)
    await bed.nodes.reserveRoom(facts, { id: newBrowserId(named.partition), bytes: 1 });
  for (let lent = 0; lent < 60; lent += 1) {
    const name = `named-${lent}`;
    const { lease } = await named.lend({ name });
    await bed.projects.reserveName({ kind: "session", name, owner: lease, partition: named.partition });
  }
  await bed.projects.reserveName({
    kind: "session",
    name: "nobody's",
    owner: newLeaseId(),
    partition: named.partition,
  });
  await age(bed.redis, "remuda:*", 10_000_000);
  expect((await cost(() => bed.nodes.sweepRooms(facts.id))).roundTrips).toBeLessThan(10);
  expect((await bed.nodes.occupancy(facts.id)).browsers).toBe(60);
  expect((await cost(() => bed.projects.sweepNames())).roundTrips).toBeLessThan(15);
  expect(await bed.projects.findName("session", "nobody's")).toBeUndefined();
  expect(await bed.projects.findName("session", "named-59")).toBeDefined();
});

test("whether a pool names something is found out without reading configurations, but for what an earlier release has written", async () => {
  const { poolStore, projects, redis } = control.bed;
  const browser_policy = {
    URLBlocklist: Array.from({ length: 5000 }, (_, place) => `host-${place}.example`),
  };
  const [used, worn, later] = [newExtensionId(), newProfileId(), newExtensionId()];
  const beds = await Promise.all(
    Array.from({ length: 20 }, (_, at) =>
      PoolBed.create(control.bed, {
        size: 1,
        browser_policy,
        ...(at === 7 && { extension_ids: [used], profile_id: worn, proxy_id: "way" }),
      }),
    ),
  );
  for (const { id } of beds) {
    await projects.addPool(id);
    await projects.openPool(id);
  }
  const refused = (id: string) => refuseInUse({ poolStore, projects }, "Pools use this", id);
  expect(await cost(() => refused("nothing"))).toMatchObject(cheap);
  for (const id of [used, worn, "way"])
    expect(await refused(id)).toMatchObject({
      code: "resource_in_use",
      details: [{ message: expect.stringContaining(beds[7]?.id ?? "") }],
    });
  const [first] = beds;
  if (!first) throw new Error("there is no pool");
  await redis.hset(first.key("pool"), "spec", JSON.stringify({ ...poolSpec(), extension_ids: [later] }));
  await redis.hincrby(first.key("pool"), "revision", 1);
  expect(await refused(later)).toMatchObject({ details: [{ message: expect.stringContaining(first.id) }] });
});

test("a DELETE of a pool that is not there reads nothing of others", async () => {
  const name = "reserved-by-nobody";
  const owner = newPoolId();
  await control.bed.projects.reserveName({ kind: "pool", name, owner, partition: partitionOf(owner) });
  for (const ref of [newPoolId(), name, "unknown"]) {
    const remove = () => control.removePool(ref, { force: false });
    expect(await cost(remove)).toMatchObject({ ...cheap, wholeReads: 0 });
    expect(await remove()).toMatchObject({ code: "pool_not_found" });
  }
});

test("a waiting acquire that names no time reads what decides how long it waits", async () => {
  const waiting = new AbortController();
  let answer: Promise<unknown> = Promise.resolve();
  const wait = async (): Promise<void> => {
    answer = control.acquire(pool.id, {}, callerOf({ gone: waiting.signal }));
    await until("a waiter", async () => (await control.bed.redis.zcard(pool.key("waitQueue"))) === 1);
  };
  expect(await cost(wait)).toMatchObject({ ...cheap, wholeReads: 0 });
  waiting.abort();
  await answer;
});

test("a look-up of a session that nobody knows reads no tombstone, a page of them no more than it shows", async () => {
  const { redis, projects } = control.bed;
  const now = Date.now();
  const records = Array.from({ length: tombstones }, (_, place) => ({
    id: newBrowserId(onDemandPartition),
    lease: newLeaseId(),
    deletedAt: now - place,
    createdAt: now - 1000,
    reason: "released",
    headless: true,
    stealth: false,
    kiosk_mode: false,
    memory: "1GiB",
    timeoutSeconds: 60,
    name: `session-${place}`,
  }));
  const pending = records.flatMap((record) => [record.id, JSON.stringify(record)]);
  await redis.hset(pool.key("pendingTombstones"), ...pending);
  await projects.moveTombstones(pool.partition);
  expect(await cost(() => control.getSession("nobody", { includeDeleted: true }))).toMatchObject({
    ...cheap,
    wholeReads: 0,
  });
  expect(await cost(() => control.remove("nobody", callerOf({ retryCount: 1 })))).toMatchObject({
    ...cheap,
    wholeReads: 0,
  });
  expect(await control.getSession("session-7", { includeDeleted: true })).toMatchObject({
    value: { tombstone: { name: "session-7" } },
  });
  const page = (): ReturnType<ControlBed["listSessions"]> =>
    control.listSessions({ limit: 2, offset: 500, status: "deleted" });
  expect(await cost(page)).toMatchObject({ ...cheap, wholeReads: 0 });
  expect((await page()).items).toMatchObject([
    { tombstone: { name: "session-500" } },
    { tombstone: { name: "session-501" } },
  ]);
});
