import { afterEach, beforeEach, expect, test } from "vitest";
import { newRequestId, onDemandPartition, type Partition } from "../../src/base/ids.js";
import { until } from "../support/browser/chromium-until.js";
import { callerOf, type ControlBed, openControlBed } from "../support/daemon/control-bed.js";
import { partitionKeys } from "../../src/store/redis/keys.js";
import { nodeA, nodeB, PoolBed } from "../support/store/pool-bed.js";
import { nodeFacts } from "../support/store/node-facts.js";

let control: ControlBed;
let count = 0;
beforeEach(async () => {
  control = await openControlBed(`rejoining${(count += 1)}`);
});
afterEach(() => control.close());

/** For so long each waits, and is then answered as one that is to ask again. */
const waitMs = 30_000;
async function waiting(pool: PoolBed, body = {}, over: Parameters<typeof callerOf>[0] = {}) {
  const before = (await pool.counts()).waiting;
  const answer = control.acquire(
    pool.id,
    { acquire_timeout_seconds: waitMs / 1000, ...body },
    callerOf(over),
  );
  answer.catch(() => {});
  await until("a waiter", async () => (await pool.counts()).waiting > before);
  return { answer };
}

/** What the ticks of other controls do while this one stands still for longer than it may be silent. */
async function taken(pool: PoolBed): Promise<void> {
  await pool.age(10_000);
  await control.bed.poolStore.reap(pool.partition);
  expect((await pool.counts()).waiting).toBe(0);
}
/** Moves time on until it holds, and gives for how long. */
async function passing(what: string, holds: () => Promise<boolean> | boolean): Promise<number> {
  const from = control.clock.now();
  await until(what, async () => {
    await control.clock.advance(500);
    // Redis answers in real time: what it was asked is answered before more time passes.
    await control.bed.redis.ping();
    return await holds();
  });
  return control.clock.now() - from;
}

const nameLeft = () => control.bed.projects.findName("session", "mine");
const forget = async (partition: Partition): Promise<void> => {
  const { waitQueue: waiters, waiterRecords: texts } = partitionKeys(control.bed.project, partition);
  await control.bed.redis.del(waiters);
  await control.bed.redis.del(texts);
};

test("callers of a control that stood still wait on at their rank, and are served in order", async () => {
  const pool = await PoolBed.filled(control.bed, { size: 1 });
  const held = await pool.lend();
  const [first, second] = [await waiting(pool), await waiting(pool)];
  await taken(pool);
  await passing("both in line", async () => (await pool.counts()).waiting === 2);
  await pool.release(held);
  const served = await first.answer;
  expect(served).toMatchObject({ kind: "granted" });
  expect((await pool.counts()).waiting).toBe(1);
  if (served.kind === "granted") served.settle("lost");
  expect(await second.answer).toMatchObject({ kind: "granted" });
});

test("those whom Redis has lost are answered at once, so that they ask again: they may have been served", async () => {
  const pool = await PoolBed.filled(control.bed, { size: 1 });
  await pool.lend();
  const { answer } = await waiting(pool, { name: "mine" });
  await forget(pool.partition);
  let outcome: unknown;
  void answer.then((given) => (outcome = given));
  expect(await passing("its answer", () => outcome !== undefined)).toBeLessThan(waitMs);
  expect([outcome, await nameLeft()]).toEqual([{ kind: "timed-out" }, undefined]);
});

test("one that leaves no place where its time is over gives its name back", async () => {
  const pool = await PoolBed.filled(control.bed, { size: 1 });
  await pool.lend();
  const going = new AbortController();
  const { answer } = await waiting(pool, { name: "mine" }, { gone: going.signal });
  await forget(pool.partition);
  going.abort();
  await answer;
  expect(await nameLeft()).toBeUndefined();
});

test("one whose name was taken meanwhile is answered at once, so that it asks again", async () => {
  const pool = await PoolBed.filled(control.bed, { size: 1 });
  await pool.lend();
  const { answer } = await waiting(pool, { name: "mine" });
  await taken(pool);
  await control.bed.projects.reserveName({
    kind: "session",
    name: "mine",
    owner: newRequestId(),
    partition: pool.partition,
  });
  let outcome: unknown;
  void answer.then((given) => (outcome = given));
  expect(await passing("its answer", () => outcome !== undefined)).toBeLessThan(waitMs);
  expect(outcome).toEqual({ kind: "timed-out" });
});

test("one whose pool is gone by then hears that", async () => {
  const pool = await PoolBed.filled(control.bed, { size: 1 });
  await pool.lend();
  const { answer } = await waiting(pool, { name: "mine" });
  await taken(pool);
  await control.bed.poolStore.deletePool(pool.partition, { force: true, request: newRequestId() });
  let outcome: unknown;
  void answer.then((given) => (outcome = given));
  await passing("its answer", () => outcome !== undefined);
  expect(outcome).toMatchObject({ kind: "refused", code: "pool_not_found" });
  expect(await nameLeft()).toBeUndefined();
});

test("one whose caller goes as it is put back keeps no place and no browser", async () => {
  const pool = await PoolBed.filled(control.bed, { size: 1 });
  const held = await pool.lend();
  const going = new AbortController();
  const { answer } = await waiting(pool, {}, { gone: going.signal });
  await taken(pool);
  const { rejoin } = control.bed.poolStore;
  let isBack = false;
  control.bed.poolStore.rejoin = async (...given) => {
    going.abort();
    await answer;
    const words = await rejoin.apply(control.bed.poolStore, given);
    isBack = true;
    return words;
  };
  await passing("its way through", async () => isBack && (await pool.counts()).waiting === 0);
  await pool.release(held);
  expect((await pool.counts()).idle).toBe(1);
});

test("one whose caller goes as it is looked for in vain keeps no name", async () => {
  const pool = await PoolBed.filled(control.bed, { size: 1 });
  await pool.lend();
  const going = new AbortController();
  const { answer } = await waiting(pool, { name: "mine" }, { gone: going.signal });
  await forget(pool.partition);
  const { projects } = control.bed;
  const { reserveName } = projects;
  let isReserved = false;
  projects.reserveName = async (...given) => {
    going.abort();
    await answer;
    const reserved = await reserveName.apply(projects, given);
    isReserved = true;
    return reserved;
  };
  await passing("its way through", async () => isReserved && (await nameLeft()) === undefined);
});

test("a caller for whom a browser was to be launched is told to ask again", async () => {
  await control.bed.nodes.beat(nodeFacts(nodeA));
  const answer = control.createSession({ headless: true, name: "mine" }, callerOf());
  const { waiterRecords: texts } = partitionKeys(control.bed.project, onDemandPartition);
  await until("its launch", async () => (await control.bed.redis.hlen(texts)) === 1);
  await forget(onDemandPartition);
  let outcome: unknown;
  void answer.then((given) => (outcome = given));
  await passing("its answer", () => outcome !== undefined);
  expect(outcome).toMatchObject({ kind: "refused", code: "unavailable", retryAfterSeconds: 1 });
  expect(await nameLeft()).toBeUndefined();
});

/** A session on demand whose first launch has failed, unheard by its control, and a second was claimed. */
async function failedUnheard() {
  for (const node of [nodeA, nodeB]) await control.bed.nodes.beat(nodeFacts(node));
  const answer = control.createSession({ headless: true }, callerOf());
  const launches = () => control.bed.jobs.filter(({ kind }) => kind === "launch");
  const first = await until("a launch", () => launches()[0]);
  control.lost.add("failed");
  await control.bed.reports.launchFailed(first.browser, first.claim, "no display");
  await passing("a launch elsewhere", () => launches().length > 1);
  return { answer, launches, first };
}

test("a launch that fails is tried on another node, though nobody has heard that it failed", async () => {
  const { answer, launches, first } = await failedUnheard();
  const second = launches()[1] ?? first;
  expect([first.node, second.node].toSorted()).toEqual([nodeA, nodeB]);
  await control.bed.reports.launchFailed(second.browser, second.claim, "no display either");
  let outcome: unknown;
  void answer.then((given) => (outcome = given));
  await passing("its answer", () => outcome !== undefined);
  expect(outcome).toMatchObject({
    code: "launch_failed",
    details: [{ message: `${first.node}: no display` }, { message: `${second.node}: no display either` }],
  });
});

test("a failure that is heard late, and was known before, ends no launch that came after it", async () => {
  const { answer, launches } = await failedUnheard();
  const failure = control.messages.find(({ kind }) => kind === "failed");
  if (failure?.kind !== "failed") throw new Error("nothing has failed");
  control.waiters.deliver(failure.connection, failure);
  await control.clock.advance(2000);
  const second = launches().at(-1);
  if (!second) throw new Error("nothing is launched");
  await control.bed.reports.launched(second.browser, second.claim, "{}");
  expect(await answer).toMatchObject({ kind: "granted", session: { browser: { id: second.browser } } });
});

test("one whose place was detached while its control stood still leaves place and name to its retry", async () => {
  await control.bed.nodes.beat(nodeFacts(nodeA));
  const caller = callerOf({ idempotencyKey: "once" });
  const answer = control.createSession({ headless: true, name: "mine" }, caller);
  const { waiterRecords: texts } = partitionKeys(control.bed.project, onDemandPartition);
  await until("its launch", async () => (await control.bed.redis.hlen(texts)) === 1);
  const name = await nameLeft();
  // As the reap of another control does.
  for (const [id, text] of Object.entries(await control.bed.redis.hgetall(texts)))
    await control.bed.redis.hset(texts, id, JSON.stringify({ ...JSON.parse(text), detachedAt: Date.now() }));
  let outcome: unknown;
  void answer.then((given) => (outcome = given));
  await passing("its answer", () => outcome !== undefined);
  expect(outcome).toMatchObject({ kind: "refused", code: "unavailable", retryAfterSeconds: 1 });
  expect(await nameLeft()).toMatchObject({ owner: name?.owner });
});
