import { RemudaError } from "../../src/base/errors.js";
import { leaseOf } from "../../src/pool/browser.js";
import { afterEach, beforeEach, expect, test } from "vitest";
import { RedisContact } from "../../src/node/redis-contact.js";
import { silentLog } from "../support/browser/chromium-host.js";
import { until } from "../support/browser/chromium-until.js";
import { NetworkBed } from "../support/node/network-bed.js";
import type { NodeBed } from "../support/node/node-bed.js";
import { type Held, nodeA, PoolBed } from "../support/store/pool-bed.js";

let bed: NetworkBed;
let node: NodeBed;
let count = 0;
beforeEach(async () => {
  bed = await NetworkBed.open(`change${(count += 1)}`);
  node = bed.node;
});
afterEach(() => bed.close());

/** Two browsers of one pool, both lent. */
async function lendTwo(): Promise<{ pool: PoolBed; first: Held; second: Held }> {
  const pool = await PoolBed.create(node.bed, { size: 2 });
  for (const browser of await pool.claim(2)) await node.launch(browser);
  return { pool, first: await pool.lend(), second: await pool.lend() };
}

test("a change that no message tells of is put in force at the next look", async () => {
  const { pool, slot, held } = await bed.lend();
  slot.activity.begin(held.lease);
  expect(await bed.reach(slot)).toBe(200);
  await bed.change(pool, held, { allowedHosts: '["a.example"]' });
  await bed.changedAtNextLook({ pool, slot, held });
});

test("where the node has not heard of the lease either, it is when its records are looked at", async () => {
  const { pool, held } = await bed.lend();
  await bed.change(pool, held, { allowedHosts: '["a.example"]' });
  await node.reconciler.look();
  await node.clock.advance(1000);
  await until("it in the record", async () => (await pool.record(held.id)).lease?.network !== undefined);
});

test("it is also where the pool's changes were looked at before the node heard of the lease", async () => {
  const { pool, first, second } = await lendTwo();
  node.slots.find(first.id)?.activity.begin(first.lease);
  await bed.change(pool, second, { allowedHosts: '["a.example"]' });
  await node.redisContact.look();
  await node.reconciler.look();
  await node.redisContact.look();
  await until("it in the record", async () => (await pool.record(second.id)).lease?.network !== undefined);
});

test("a change to one browser asks nothing about others, whose changes are in force", async () => {
  const { pool, first, second } = await lendTwo();
  for (const held of [first, second]) {
    node.slots.find(held.id)?.activity.begin(held.lease);
    await bed.change(pool, held, { allowedHosts: '["a.example"]' });
  }
  const isInForce = async ({ id }: Held): Promise<boolean> =>
    (await pool.record(id)).lease?.network !== undefined;
  await node.clock.advance(1000);
  await until("both in force", async () => (await isInForce(first)) && (await isInForce(second)));
  const read: string[] = [];
  const { poolStore } = node.bed;
  const findBrowser = poolStore.findBrowser.bind(poolStore);
  poolStore.findBrowser = (id) => {
    read.push(id);
    return findBrowser(id);
  };
  await bed.change(pool, second, { allowedHosts: '["b.example"]' });
  await node.clock.advance(1000);
  await until(
    "the change in force",
    async () => leaseOf((await findBrowser(second.id))?.browser)?.network?.allowedHosts === '["b.example"]',
  );
  expect(new Set(read)).toEqual(new Set([second.id]));
});

test("a change whose proxy is gone is refused, and what was in force is", async () => {
  const { pool, slot, held } = await bed.lend();
  await bed.change(pool, held, { proxy: `{"id":"${"p".repeat(24)}"}` });
  expect(await node.networkSync.sync(slot, 1)).toBe(false);
  expect(await bed.reach(slot)).toBe(200);
  expect((await pool.record(held.id)).lease).not.toHaveProperty("networkWanted");
});

test("a change that is known and cannot be looked up closes the way out until it can", async () => {
  const { pool, slot, held } = await bed.lend();
  await bed.change(pool, held, { allowedHosts: "null" });
  node.broken.add("findBrowser");
  await expect(node.networkSync.sync(slot, 1)).rejects.toThrow("Redis");
  expect(await bed.reach(slot)).toBe("closed");
  node.broken.clear();
  await node.clock.advance(1000);
  await until("the way out", async () => (await bed.reach(slot)) === 200);
});

test("a change whose content came with the question is put in force without Redis, and told when it can be", async () => {
  const { pool, slot, held } = await bed.lend();
  await bed.change(pool, held, { allowedHosts: '["a.example"]' });
  for (const call of ["findBrowser", "applied", "networkChanges"]) node.broken.add(call);
  const changed = (revision: number, allowedHosts: string) =>
    node.networkSync.sync(slot, revision, {
      lease: held.lease,
      change: { revision, allowedHosts },
      isWanted: () => true,
    });
  expect(await changed(2, '["a.example"]')).toBe(true);
  expect(await bed.reach(slot)).toBe("allowed_hosts");
  // It came late, or after a failover whose clock is behind: only the record could tell.
  await expect(changed(1, "null")).rejects.toThrow("cannot be read");
  expect(await bed.reach(slot)).toBe("closed");
  expect(await changed(2, '["a.example"]')).toBe(true);
  node.broken.clear();
  await bed.changedAtNextLook({ pool, slot, held });
});

test("a change under the number of one that a failover has taken from Redis is not taken for that one", async () => {
  const { slot, held } = await bed.lend();
  node.broken.add("findBrowser");
  const changed = (allowedHosts: string) =>
    node.networkSync.sync(slot, 7, {
      lease: held.lease,
      change: { revision: 7, allowedHosts },
      isWanted: () => true,
    });
  expect(await changed("null")).toBe(true);
  expect(await bed.reach(slot)).toBe(200);
  expect(await changed('["a.example"]')).toBe(true);
  expect(await bed.reach(slot)).toBe("allowed_hosts");
});

test("nor is one whose lease is over by then", async () => {
  const { slot, held } = await bed.lend();
  node.broken.add("findBrowser");
  expect(
    await node.networkSync.sync(slot, 1, {
      lease: held.lease,
      change: { revision: 1, allowedHosts: '["a.example"]' },
      isWanted: () => false,
    }),
  ).toBe(false);
  node.broken.clear();
  await node.clock.advance(1000);
  await until("the way out", async () => (await bed.reach(slot)) === 200);
});

test("a browser of which no change is known goes on where its record cannot be read", async () => {
  const { slot } = await bed.lend();
  node.broken.add("findBrowser");
  await expect(node.networkSync.sync(slot)).rejects.toThrow("Redis");
  expect(await bed.reach(slot)).toBe(200);
});

test("a change that is in force and could not be told is told again, and holds meanwhile", async () => {
  const { pool, slot, held } = await bed.lend();
  await bed.change(pool, held, { allowedHosts: '["a.example"]' });
  node.broken.add("applied");
  expect(await node.networkSync.sync(slot, 1)).toBe(true);
  expect(await bed.reach(slot)).toBe("allowed_hosts");
  node.broken.clear();
  await bed.changedAtNextLook({ pool, slot, held });
});

test("while Redis takes its time to be told of a change that is in force, the way out stays as it is", async () => {
  const { pool, slot, held } = await bed.lend();
  await bed.change(pool, held, { allowedHosts: '["a.example"]' });
  const { reports } = node.bed;
  const applied = reports.applied.bind(reports);
  let answer = (): void => {};
  const silence = new Promise<void>((resolve) => (answer = resolve));
  let isAsked = false;
  reports.applied = async (report) => {
    isAsked = true;
    await silence;
    return await applied(report);
  };
  const changed = node.networkSync.sync(slot, 1);
  await until("the rules in force", () => isAsked);
  await node.clock.advance(1000);
  const reached = await bed.reach(slot);
  answer();
  expect(reached).toBe("allowed_hosts");
  expect(await changed).toBe(true);
});

test("the next holder of a browser whose fence never came has the launch's own network", async () => {
  const { pool, slot, held } = await bed.lend();
  slot.activity.begin(held.lease);
  await bed.change(pool, held, { allowedHosts: '["a.example"]' });
  expect(await node.networkSync.sync(slot, 1)).toBe(true);
  expect(await bed.reach(slot)).toBe("allowed_hosts");
  await pool.release(held);
  await pool.freed(held.id);
  const next = await pool.lend();
  await node.reconciler.look();
  expect(slot.activity.lease).toBe(next.lease);
  expect(await bed.reach(slot)).toBe(200);
});

test("the next holder's own change is not lost where the lease before, which nobody used, was never fenced", async () => {
  const { pool, slot, held } = await bed.lend();
  slot.activity.begin(held.lease);
  await pool.release(held);
  const next = await pool.lend();
  await bed.change(pool, next, { allowedHosts: '["a.example"]' });
  expect(await node.networkSync.sync(slot, 1)).toBe(true);
  await node.reconciler.look();
  expect(slot.activity.lease).toBe(next.lease);
  expect(await bed.reach(slot)).toBe("allowed_hosts");
});

test("a change that cannot be, and that another has taken the place of, is not told as in force", async () => {
  const { pool, slot, held } = await bed.lend();
  await bed.change(pool, held, { allowedHosts: '["a.example"]', proxy: `{"id":"${"p".repeat(24)}"}` });
  const { rulesWith } = slot.egress;
  slot.egress.rulesWith = async (change) => {
    if (change.revision === 1) await bed.change(pool, held, { allowedHosts: '["b.example"]' });
    return await rulesWith.call(slot.egress, change);
  };
  expect(await node.networkSync.sync(slot, 1)).toBe(false);
  expect(await bed.reach(slot)).toBe(200);
});

/** Two browsers of two pools, of which one is lent whose master is away, as in a cluster. */
async function launchNearAndFar() {
  const near = await bed.launch();
  const { slot } = near;
  if (!slot) throw new Error("nothing was launched");
  const far = await bed.lend();
  far.slot.activity.begin(far.held.lease);
  const { poolStore } = node.bed;
  const asked = { looks: 0, underWay: 0 };
  const counted = async <Value>(asking: Promise<Value>): Promise<Value> => {
    asked.underWay += 1;
    return await asking.finally(() => (asked.underWay -= 1));
  };
  const [networkChanges, browsersOf] = [poolStore.networkChanges, poolStore.browsersOf];
  poolStore.browsersOf = (...ask) => counted(browsersOf.apply(poolStore, ask));
  poolStore.networkChanges = (partition) => {
    if (partition === far.pool.partition) return Promise.reject(new RemudaError("store_unavailable"));
    asked.looks += 1;
    return counted(networkChanges.call(poolStore, partition));
  };
  // Redis answers in real time: without waiting for it the near one would seem to be alone, too.
  const passSeconds = async (seconds: number): Promise<void> => {
    for (let second = 0; second < seconds; second += 1) {
      await node.clock.advance(1000);
      await until("the answers", () => asked.underWay === 0);
    }
  };
  return { near: { ...near, slot }, far, asked, passSeconds };
}

test("where the master of one pool is away, as in a cluster, browsers of the others keep their egress and live on", async () => {
  const { near, far, asked, passSeconds } = await launchNearAndFar();
  near.slot.activity.begin((await near.pool.lend()).lease);
  await passSeconds(5);
  expect(asked.looks).toBe(5);
  expect(await bed.reach(near.slot)).toBe(200);
  expect(await bed.reach(far.slot)).not.toBe(200);
  await passSeconds(120);
  await until("the far one's end", async () => far.slot.isEnding);
  expect(near.slot.isEnding).toBe(false);
});

test("so do those that nobody has", async () => {
  const { near, far, passSeconds } = await launchNearAndFar();
  let shuts = 0;
  near.slot.egress.shut = () => void (shuts += 1);
  await passSeconds(125);
  await until("the far one's end", async () => far.slot.isEnding);
  expect({ shuts, isEnding: near.slot.isEnding }).toEqual({ shuts: 0, isEnding: false });
});

test("they live on as well where no egress is ever closed", async () => {
  const { near, far, passSeconds } = await launchNearAndFar();
  node.redisContact.close();
  const { slots, poolStore, networkSync, clock } = node;
  const limits = { isCluster: true, limitMs: null, isolatedMs: 120_000 };
  const ports = { node: nodeA, slots, poolStore, networkSync, clock, log: silentLog };
  const contact = new RedisContact({ ...ports, ...limits });
  await passSeconds(125);
  contact.close();
  await until("the far one's end", async () => far.slot.isEnding);
  expect(near.slot.isEnding).toBe(false);
});

test("and those of a node that stood still, whose own master has not failed to answer", async () => {
  const { near, far, passSeconds } = await launchNearAndFar();
  near.slot.activity.begin((await near.pool.lend()).lease);
  await passSeconds(1);
  node.clock.stand(300_000);
  await passSeconds(1);
  await until("the far one's end", async () => far.slot.isEnding);
  expect(near.slot.isEnding).toBe(false);
});
