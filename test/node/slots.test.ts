import { afterEach, beforeEach, expect, test } from "vitest";
import { newLeaseId } from "../../src/base/ids.js";
import { until } from "../support/browser/chromium-until.js";
import { isLiving } from "../support/living.js";
import { type NodeBed, openNodeBed } from "../support/node/node-bed.js";
import { nodeA, PoolBed } from "../support/store/pool-bed.js";
import { claimOf } from "../support/store/store-bed.js";

let node: NodeBed;
let count = 0;
const open = async (limits: Parameters<typeof openNodeBed>[1] = {}): Promise<void> => {
  node = await openNodeBed(`slots${(count += 1)}`, limits);
};
beforeEach(() => open());
afterEach(() => node.close());

/** A pool of one, its browser idle and running here. */
async function one() {
  const pool = await PoolBed.create(node.bed, { size: 1 });
  const [browser] = await pool.claim(1);
  if (!browser) throw new Error("nothing was claimed");
  await node.launch(browser);
  expect(await pool.state(browser.id)).toBe("idle");
  return { pool, id: browser.id };
}

const kill = (): void => {
  for (const { pid } of node.launched) if (isLiving(pid)) process.kill(pid, "SIGKILL");
};

test("a browser that crashes is over at once, its record too", async () => {
  const { pool, id } = await one();
  kill();
  await until("the record's end", async () => (await pool.state(id)) === "gone");
});

test("a crash that Redis cannot be told of is told as soon as it can be, and fails nothing", async () => {
  const { pool, id } = await one();
  node.broken.add("end").add("gone");
  kill();
  await until("the slot's end", () => node.slots.find(id) === undefined);
  expect(await pool.state(id)).toBe("idle");
  node.broken.clear();
  await node.clock.advance(5000);
  await until("the record's end", async () => (await pool.state(id)) === "gone");
});

test("an end whose last word is lost leaves a retiring record, for the tick", async () => {
  const { pool, id } = await one();
  node.broken.add("gone");
  kill();
  await until("the slot's end", () => node.slots.find(id) === undefined);
  expect(await pool.state(id)).toBe("retiring");
});

test("a launch whose report is lost on its way back ends, since the record may call it idle", async () => {
  const pool = await PoolBed.create(node.bed, { size: 1 });
  const [browser] = await pool.claim(1);
  if (!browser) throw new Error("nothing was claimed");
  node.broken.add("launched").add("end");
  const launching = node.launch(browser);
  await until("its launch", () => node.launched.length === 1);
  // The report did arrive; its answer did not.
  await node.bed.reports.launched(browser.id, claimOf(browser), "{}");
  await launching;
  expect(await pool.state(browser.id)).toBe("idle");
  node.broken.clear();
  await node.clock.advance(5000);
  await until("the record's end", async () => (await pool.state(browser.id)) === "gone");
  expect(node.launched.filter(({ pid }) => isLiving(pid))).toEqual([]);
});

test("launches that are under way count against what the node may hold", async () => {
  await node.close();
  await open({ maxBrowsers: 1 });
  const pool = await PoolBed.create(node.bed, { size: 2 });
  const claimed = await pool.claim(2);
  await Promise.all(claimed.map((browser) => node.launch(browser)));
  expect(node.launched).toHaveLength(1);
  expect(await pool.counts()).toMatchObject({ idle: 1, launching: 0 });
});

test("a lease the node has heard of is not cut because the records were read before it was granted", async () => {
  const { pool, id } = await one();
  const earlier = await pool.lend();
  const { poolStore } = node.bed;
  const stale = await poolStore.browsersOf(pool.partition, nodeA);
  await pool.release(earlier);
  const present = await pool.lend();
  node.slots.find(id)?.activity.begin(present.lease);
  poolStore.browsersOf = async () => stale;
  await node.reconciler.look();
  expect(node.slots.find(id)?.activity.isOver(present.lease)).toBe(false);
});

test("a holder whose fence never came is cut when the record names another", async () => {
  const { pool, id } = await one();
  const earlier = newLeaseId();
  node.slots.find(id)?.activity.begin(earlier);
  const present = await pool.lend();
  await node.reconciler.look();
  expect(node.slots.find(id)?.activity.isOver(earlier)).toBe(true);
  expect(node.slots.find(id)?.activity.lease).toBe(present.lease);
});

test("a launch that hangs fails within its limit, keeps no other from its turn, and is ended when it comes after all", async () => {
  await node.close();
  let letGo = (): void => {};
  const holds = [new Promise<void>((resolve) => (letGo = resolve))];
  const before = async (): Promise<void> => await holds.shift();
  await open({ isDriven: true, parallelLaunches: 1, launchLimitMs: 4000, before });
  const pool = await PoolBed.create(node.bed, { size: 2 });
  const [hanging, next] = await pool.claim(2);
  if (!hanging || !next) throw new Error("nothing was claimed");
  const hung = node.launch(hanging);
  await until("its begin", () => holds.length === 0);
  await node.clock.advance(4000);
  await hung;
  expect(await pool.state(hanging.id)).toBe("gone");
  expect((await pool.found()).fill?.last_error).toContain("the launch took longer than 4000 ms");
  await node.launch(next);
  expect(await pool.state(next.id)).toBe("idle");
  letGo();
  await until("the late one", () => node.launched.length === 2 || node.slots.count === 1);
  await until("its end", () => node.launched.filter(({ pid }) => isLiving(pid)).length === 1);
});
