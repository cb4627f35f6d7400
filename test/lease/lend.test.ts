import { afterEach, beforeEach, expect, test } from "vitest";
import { onDemandPartition } from "../../src/base/ids.js";
import type { Granted } from "../../src/pool/operations.js";
import { until } from "../support/browser/chromium-until.js";
import { callerOf, type ControlBed, openControlBed } from "../support/daemon/control-bed.js";
import { nodeA, PoolBed } from "../support/store/pool-bed.js";
import { claimOf } from "../support/store/store-bed.js";
import { nodeFacts } from "../support/store/node-facts.js";

let control: ControlBed;
let count = 0;
beforeEach(async () => {
  control = await openControlBed(`lending${(count += 1)}`);
});
afterEach(() => control.close());

const filled = (size = 1): Promise<PoolBed> => PoolBed.filled(control.bed, { size });
const nameHolder = (name: string) => control.bed.projects.findName("session", name);
const idle = async (pool: PoolBed): Promise<number> => (await pool.counts()).idle;
const beat = () => control.clock.advance(1000);

function grantOf(outcome: { kind: string }): Granted {
  if (outcome.kind !== "granted") throw new Error(`not granted: ${JSON.stringify(outcome)}`);
  return outcome as Granted;
}

/** An acquire that stands in line. */
async function waiting(pool: PoolBed, over: Parameters<typeof callerOf>[0] = {}, body = {}) {
  const before = (await pool.counts()).waiting;
  const outcome = control.acquire(pool.id, { acquire_timeout_seconds: 30, ...body }, callerOf(over));
  outcome.catch(() => {});
  await until("a waiter", async () => (await pool.counts()).waiting > before);
  return { answer: outcome };
}

test("an acquire that Redis never saw leaves neither place nor name", async () => {
  const pool = await filled();
  control.broken.add("acquire").add("freeName");
  await expect(control.acquire(pool.id, { name: "mine" }, callerOf())).rejects.toThrow("cannot be reached");
  expect(await nameHolder("mine")).toBeDefined();
  control.broken.clear();
  await beat();
  await until("the name's return", async () => (await nameHolder("mine")) === undefined);
  expect(await idle(pool)).toBe(1);
});

test("an acquire that was granted while its answer was lost gives its browser back", async () => {
  const pool = await filled();
  control.broken.add("acquire!").add("withdraw");
  await expect(control.acquire(pool.id, { name: "mine" }, callerOf())).rejects.toThrow("has not answered");
  expect(await idle(pool)).toBe(0);
  control.broken.clear();
  await beat();
  await until("the browser's return", async () => (await idle(pool)) === 1);
  await until("the name's return", async () => (await nameHolder("mine")) === undefined);
});

test("an acquire that was put in line while its answer was lost leaves the line", async () => {
  const pool = await filled();
  const held = await pool.lend();
  control.broken.add("acquire!");
  await expect(control.acquire(pool.id, { name: "mine" }, callerOf())).rejects.toThrow("has not answered");
  await until("an empty line", async () => (await pool.counts()).waiting === 0);
  await pool.release(held);
  expect(await idle(pool)).toBe(1);
});

test("a waiter whose place cannot be given up at its end is not lent a browser for good", async () => {
  const pool = await filled();
  const held = await pool.lend();
  const outcome = await waiting(pool);
  control.broken.add("withdraw").add("undo");
  await control.clock.advance(30_000);
  await expect(outcome.answer).rejects.toThrow("cannot be reached");
  await pool.release(held);
  expect(await idle(pool)).toBe(0);
  control.broken.clear();
  await beat();
  await until("the browser's return", async () => (await idle(pool)) === 1);
});

test("a waiter whose limit cannot be found out leaves the line", async () => {
  const pool = await filled();
  await pool.lend();
  control.broken.add("findTerms");
  await expect(control.acquire(pool.id, {}, callerOf())).rejects.toThrow("cannot be reached");
  await until("an empty line", async () => (await pool.counts()).waiting === 0);
});

test("a grant that cannot be shown is undone", async () => {
  const pool = await filled();
  control.broken.add("findTemplate");
  await expect(control.acquire(pool.id, {}, callerOf())).rejects.toThrow("cannot be reached");
  await until("the browser's return", async () => (await idle(pool)) === 1);
});

test("a lost grant that cannot be undone at once is undone at a later beat", async () => {
  const pool = await filled();
  const lent = grantOf(await control.acquire(pool.id, {}, callerOf()));
  control.broken.add("undo");
  lent.settle("lost");
  await beat();
  expect(await idle(pool)).toBe(0);
  control.broken.clear();
  await beat();
  await until("the browser's return", async () => (await idle(pool)) === 1);
});

test("a lost grant under a key is kept for its retry, however often its undoing is tried", async () => {
  const pool = await filled();
  const caller = callerOf({ idempotencyKey: "once" });
  const lent = grantOf(await control.acquire(pool.id, {}, caller));
  control.broken.add("undo!");
  lent.settle("lost");
  await beat();
  control.broken.clear();
  await beat();
  const again = grantOf(await control.acquire(pool.id, {}, callerOf({ idempotencyKey: "once" })));
  expect(again.session.browser.lease?.id).toBe(lent.session.browser.lease?.id);
});

test("a granted wait whose caller has gone gives the browser back", async () => {
  const pool = await filled();
  const held = await pool.lend();
  const gone = new AbortController();
  const outcome = await waiting(pool, { gone: gone.signal });
  control.broken.add("withdraw!");
  await pool.release(held);
  gone.abort();
  await outcome.answer.catch(() => {});
  control.broken.clear();
  await beat();
  const answered = await outcome.answer.then(
    (answer) => answer,
    () => undefined,
  );
  if (answered?.kind === "granted") answered.settle("lost");
  await until("the browser's return", async () => (await idle(pool)) === 1);
});

test("a browser that is lent to a place which nobody holds any more, as after a failover, is given back", async () => {
  const pool = await filled();
  const held = await pool.lend();
  await pool.ask({ control: control.control });
  await pool.beat(control.control);
  await pool.release(held);
  await until("the browser's return", async () => (await idle(pool)) === 1);
});

test("a stopping control answers its waiters at once", async () => {
  const pool = await filled();
  await pool.lend();
  const outcome = await waiting(pool);
  control.waiters.close();
  expect(await outcome.answer).toEqual({ kind: "timed-out" });
  expect((await pool.counts()).waiting).toBe(0);
  expect(await control.acquire(pool.id, {}, callerOf())).toEqual({ kind: "timed-out" });
});

test("a pool that is deleted answers its waiters at once, and an unknown one is not found whatever name is asked for", async () => {
  const pool = await filled();
  await pool.lend({ name: "taken" });
  await control.bed.projects.reserveName({
    kind: "session",
    name: "taken",
    owner: "other",
    partition: pool.partition,
  });
  const outcome = await waiting(pool);
  await control.bed.poolStore.deletePool(pool.partition, { force: true, request: callerOf().request });
  expect(await outcome.answer).toMatchObject({ kind: "refused", code: "pool_not_found" });
  expect(await control.acquire("0123456789abcdef01234567", { name: "taken" }, callerOf())).toMatchObject({
    code: "pool_not_found",
  });
});

test("a name that another pool has by now is judged by that pool's allowlist", async () => {
  const make = (host: string) =>
    control.createPool(
      { size: 1, headless: true, name: "mine", network: { allowed_hosts: [host] } },
      callerOf(),
    );
  const ask = (url: string) =>
    control.acquire("mine", { start_url: url, acquire_timeout_seconds: 0 }, callerOf());
  const before = await make("a.example");
  if (before.kind !== "done") throw new Error(JSON.stringify(before));
  expect(await ask("https://b.example/")).toMatchObject({ code: "bad_request" });
  await control.updatePool(before.value.id, { name: "old" }, callerOf());
  await make("b.example");
  expect(await ask("https://b.example/")).toEqual({ kind: "timed-out" });
  expect(await ask("https://a.example/")).toMatchObject({ code: "bad_request" });
});

test("no wait is longer than one request may wait, and by default it is the time in which the pool fills", async () => {
  const pool = await PoolBed.create(control.bed, { size: 1, fill_rate_per_minute: 600 });
  const outcome = control.acquire(pool.id, {}, callerOf());
  await until("a waiter", async () => (await pool.counts()).waiting === 1);
  let isOver = false;
  void outcome.then(() => (isOver = true));
  await control.clock.advance(9_999);
  expect(isOver).toBe(false);
  await control.clock.advance(1);
  expect(await outcome).toEqual({ kind: "timed-out" });
  const long = await waiting(pool, {}, { acquire_timeout_seconds: 3600 });
  await control.clock.advance(50_000);
  expect(await long.answer).toEqual({ kind: "timed-out" });
});

async function onNode(maxBrowsers = 10): Promise<void> {
  await control.bed.nodes.beat(nodeFacts(nodeA, { maxBrowsers }));
}
const headless = { headless: true } as const;
const job = () => until("a launch", () => control.bed.jobs.find(({ kind }) => kind === "launch"));

test("a browser on demand that was not launched in time leaves neither name nor browser", async () => {
  await onNode();
  const outcome = control.createSession({ ...headless, name: "mine" }, callerOf());
  const { browser, claim } = await job();
  await control.clock.advance(50_000);
  expect(await outcome).toMatchObject({ kind: "refused", code: "launch_failed" });
  expect(await nameHolder("mine")).toBeUndefined();
  await control.bed.reports.launched(browser, claim, "{}");
  expect((await control.bed.poolStore.findBrowser(browser))?.browser.state).toBe("retiring");
});

test("a name that waits for the retry under its key is nobody else's meanwhile", async () => {
  await onNode();
  const first = control.createSession({ ...headless, name: "mine" }, callerOf({ idempotencyKey: "once" }));
  const { browser, claim } = await job();
  await control.clock.advance(50_000);
  expect(await first).toMatchObject({ code: "launch_failed" });
  expect(await control.createSession({ ...headless, name: "mine" }, callerOf())).toMatchObject({
    code: "name_taken",
  });
  const retry = control.createSession({ ...headless, name: "mine" }, callerOf({ idempotencyKey: "once" }));
  await until("the retry's place", () => control.messages.some(({ kind }) => kind === "superseded"));
  await control.bed.reports.launched(browser, claim, "{}");
  const lent = grantOf(await retry);
  expect((await nameHolder("mine"))?.owner).toBe(lent.session.browser.lease?.id);
  expect(lent.session.browser.lease?.name).toBe("mine");
});

test("a launch that fails says what Chromium said, and frees the name", async () => {
  await onNode();
  const outcome = control.createSession({ ...headless, name: "mine" }, callerOf());
  const { browser, claim } = await job();
  await control.bed.reports.launchFailed(browser, claim, "no usable sandbox");
  expect(await outcome).toMatchObject({
    code: "launch_failed",
    details: [{ message: "node-a: no usable sandbox" }],
  });
  expect(await nameHolder("mine")).toBeUndefined();
});

test("no room is 529's code, and reserves nothing", async () => {
  expect(await control.createSession({ ...headless, name: "mine" }, callerOf())).toMatchObject({
    code: "capacity_exhausted",
  });
  expect(await nameHolder("mine")).toBeUndefined();
});

test("a browser on demand whose creation was answered with a fault is taken back", async () => {
  await onNode();
  control.broken.add("createSession!");
  await expect(control.createSession({ ...headless, name: "mine" }, callerOf())).rejects.toThrow(
    "has not answered",
  );
  control.broken.clear();
  await until("the name's return", async () => (await nameHolder("mine")) === undefined);
  const [browser] = (await control.bed.poolStore.browsers(onDemandPartition)).browsers;
  if (!browser) throw new Error("nothing was claimed");
  await control.bed.reports.launched(browser.id, claimOf(browser), "{}");
  expect((await control.bed.poolStore.findBrowser(browser.id))?.browser.state).toBe("retiring");
});

test("a retry under its key gets its browser also where no room is left for another", async () => {
  await onNode(1);
  const first = control.createSession({ ...headless }, callerOf({ idempotencyKey: "once" }));
  const { browser, claim } = await job();
  await control.bed.reports.launched(browser, claim, "{}");
  const lent = grantOf(await first);
  expect(await control.createSession({ ...headless }, callerOf({ idempotencyKey: "other" }))).toMatchObject({
    code: "capacity_exhausted",
  });
  const again = grantOf(await control.createSession({ ...headless }, callerOf({ idempotencyKey: "once" })));
  expect(again.session.browser.lease?.id).toBe(lent.session.browser.lease?.id);
  expect(
    await control.createSession({ ...headless, stealth: true }, callerOf({ idempotencyKey: "once" })),
  ).toMatchObject({ code: "idempotency_mismatch" });
  expect(await control.bed.nodes.occupancy(nodeA)).toMatchObject({ browsers: 1 });
});
