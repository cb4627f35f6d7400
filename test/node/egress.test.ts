import { afterEach, beforeEach, expect, test } from "vitest";
import { proxyPorts } from "../../src/egress/port.js";
import { CurlFailure } from "../../src/egress/curl.js";
import type { Slot } from "../../src/node/slot.js";
import { openSite, type Site } from "../support/browser/chromium-site.js";
import { until } from "../support/browser/chromium-until.js";
import { isLiving } from "../support/living.js";
import { type NodeBed, openNodeBed } from "../support/node/node-bed.js";
import { type Held, PoolBed } from "../support/store/pool-bed.js";
import { claimOf, request } from "../support/store/store-bed.js";

let node: NodeBed;
let site: Site;
let count = 0;
beforeEach(async () => {
  [node, site] = await Promise.all([openNodeBed(`egress${(count += 1)}`), openSite()]);
});
afterEach(async () => {
  await node.close();
  await site.close();
  expect([...proxyPorts]).toEqual([]);
});

async function one(over: Parameters<typeof PoolBed.create>[1] = {}) {
  const pool = await PoolBed.create(node.bed, { size: 1, ...over });
  const [browser] = await pool.claim(1);
  if (!browser) throw new Error("nothing was claimed");
  await node.launch(browser);
  const slot = node.slots.find(browser.id);
  return { pool, browser, slot };
}
async function leased(
  over: Parameters<typeof PoolBed.create>[1] = {},
): Promise<{ pool: PoolBed; slot: Slot; held: Held }> {
  const { pool, slot } = await one(over);
  if (!slot) throw new Error("nothing was launched");
  return { pool, slot, held: await pool.lend() };
}
const ask = (pool: PoolBed, { id, lease }: Held, network: { allowedHosts?: string; proxy?: string }) =>
  node.bed.poolStore.touch(pool.partition, {
    browser: id,
    lease,
    change: { set: {}, clear: [], touched: true, network },
    request: request(),
  });

/** What a request through the browser's way out comes to: `200`, or which rule denies it. */
async function reach(slot: Slot): Promise<unknown> {
  const asked = { url: site.origin, method: "GET", headers: {}, timeoutMs: 5000 };
  return await slot.curl(asked, new AbortController().signal).then(
    ({ status }) => status,
    (error: unknown) => (error instanceof CurlFailure ? error.by : error),
  );
}

/** A first change, to a list without the site, is in the record and in force once the node has looked. */
async function changedAtNextLook({ pool, slot, held }: Awaited<ReturnType<typeof leased>>): Promise<void> {
  await node.clock.advance(1000);
  await until("it in the record", async () => (await pool.record(held.id)).lease?.network !== undefined);
  expect(await reach(slot)).toBe("allowed_hosts");
}

test("every browser has a way out of its own, which goes with it: at its retirement, its crash and the node's stop", async () => {
  const { pool, slot } = await one();
  expect(proxyPorts.size).toBe(1);
  expect(JSON.parse((await pool.record(slot?.id as never)).isolation ?? "{}")).toMatchObject({
    network: "proxy",
    attested: expect.stringMatching(/^\d{4}-/),
  });
  await node.bed.poolStore.flush(pool.partition, request());
  await node.slots.retire({
    kind: "retire",
    node: "n" as never,
    browser: slot?.id as never,
    claim: claimOf(await pool.record(slot?.id as never)),
  });
  expect(proxyPorts.size).toBe(0);
  const crashing = await one();
  for (const { pid } of node.launched) if (isLiving(pid)) process.kill(pid, "SIGKILL");
  await until("the crash", async () => (await crashing.pool.state(crashing.browser.id)) === "gone");
  expect(proxyPorts.size).toBe(0);
  await one();
});

test("a launch that fails or is given up leaves no way out behind", async () => {
  await node.fake.turn({ failWithCode: 3 });
  expect((await one()).slot).toBeUndefined();
  expect(proxyPorts.size).toBe(0);
  await node.fake.turn({ delayMs: 60_000 });
  const pool = await PoolBed.create(node.bed, { size: 1 });
  const [browser] = await pool.claim(1);
  if (!browser) throw new Error("nothing was claimed");
  const launching = node.launch(browser);
  await until("its way out", () => proxyPorts.size === 1);
  await node.slots.close();
  await launching;
});

test("a browser whose barrier cannot be proved is never idle", async () => {
  await node.fake.turn({ ignore: ["Network.loadNetworkResource"] });
  const pool = await PoolBed.create(node.bed, { size: 1 });
  const [browser] = await pool.claim(1);
  if (!browser) throw new Error("nothing was claimed");
  const launching = node.launch(browser);
  await until("its way out", () => proxyPorts.size === 1);
  await node.slots.close();
  await launching;
  expect(await pool.moves()).not.toContain("launching idle launched");
});

test("a browser whose proxy is gone is not launched, and the pool says why", async () => {
  const { pool, slot } = await one({ proxy_id: "p".repeat(24) });
  expect(slot).toBeUndefined();
  expect((await pool.found()).fill).toMatchObject({
    reason: "launch_failing",
    last_error: expect.stringContaining("there is no proxy"),
  });
});

test("a change that no message tells of is put in force at the next look", async () => {
  const { pool, slot, held } = await leased();
  slot.activity.begin(held.lease);
  expect(await reach(slot)).toBe(200);
  await ask(pool, held, { allowedHosts: '["a.example"]' });
  await changedAtNextLook({ pool, slot, held });
});

test("where the node has not heard of the lease either, it is when its records are looked at", async () => {
  const { pool, held } = await leased();
  await ask(pool, held, { allowedHosts: '["a.example"]' });
  await node.reconciler.look();
  await node.clock.advance(1000);
  await until("it in the record", async () => (await pool.record(held.id)).lease?.network !== undefined);
});

test("a change to one browser asks nothing about others, whose changes are in force", async () => {
  const pool = await PoolBed.create(node.bed, { size: 2 });
  for (const browser of await pool.claim(2)) await node.launch(browser);
  const [first, second] = [await pool.lend(), await pool.lend()];
  for (const held of [first, second]) {
    node.slots.find(held.id)?.activity.begin(held.lease);
    await ask(pool, held, { allowedHosts: '["a.example"]' });
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
  await ask(pool, second, { allowedHosts: '["b.example"]' });
  await node.clock.advance(1000);
  await until(
    "the change in force",
    async () => (await findBrowser(second.id))?.browser.lease?.network?.allowedHosts === '["b.example"]',
  );
  expect(new Set(read)).toEqual(new Set([second.id]));
});

test("a change whose proxy is gone is refused, and what was in force is", async () => {
  const { pool, slot, held } = await leased();
  await ask(pool, held, { proxy: `{"id":"${"p".repeat(24)}"}` });
  expect(await node.networkSync.sync(slot, 1)).toBe(false);
  expect(await reach(slot)).toBe(200);
  expect((await pool.record(held.id)).lease).not.toHaveProperty("networkWanted");
});

test("a change that is known and cannot be looked up closes the way out until it can", async () => {
  const { pool, slot, held } = await leased();
  await ask(pool, held, { allowedHosts: "null" });
  node.broken.add("findBrowser");
  await expect(node.networkSync.sync(slot, 1)).rejects.toThrow("Redis");
  expect(await reach(slot)).toBe("closed");
  node.broken.clear();
  await node.clock.advance(1000);
  await until("the way out", async () => (await reach(slot)) === 200);
});

test("a change whose content came with the question is put in force without Redis, and told when it can be", async () => {
  const { pool, slot, held } = await leased();
  await ask(pool, held, { allowedHosts: '["a.example"]' });
  for (const call of ["findBrowser", "applied", "networkChanges"]) node.broken.add(call);
  const changed = (revision: number, allowedHosts: string) =>
    node.networkSync.sync(slot, revision, {
      lease: held.lease,
      change: { revision, allowedHosts },
      isWanted: () => true,
    });
  expect(await changed(2, '["a.example"]')).toBe(true);
  expect(await reach(slot)).toBe("allowed_hosts");
  // It came late, or after a failover whose clock is behind: only the record could tell.
  await expect(changed(1, "null")).rejects.toThrow("cannot be read");
  expect(await reach(slot)).toBe("closed");
  expect(await changed(2, '["a.example"]')).toBe(true);
  node.broken.clear();
  await changedAtNextLook({ pool, slot, held });
});

test("a change under the number of one that a failover has taken from Redis is not taken for that one", async () => {
  const { slot, held } = await leased();
  node.broken.add("findBrowser");
  const changed = (allowedHosts: string) =>
    node.networkSync.sync(slot, 7, {
      lease: held.lease,
      change: { revision: 7, allowedHosts },
      isWanted: () => true,
    });
  expect(await changed("null")).toBe(true);
  expect(await reach(slot)).toBe(200);
  expect(await changed('["a.example"]')).toBe(true);
  expect(await reach(slot)).toBe("allowed_hosts");
});

test("nor is one whose lease is over by then", async () => {
  const { slot, held } = await leased();
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
  await until("the way out", async () => (await reach(slot)) === 200);
});

test("a browser of which no change is known goes on where its record cannot be read", async () => {
  const { slot } = await leased();
  node.broken.add("findBrowser");
  await expect(node.networkSync.sync(slot)).rejects.toThrow("Redis");
  expect(await reach(slot)).toBe(200);
});

test("a change that is in force and could not be told is told again, and holds meanwhile", async () => {
  const { pool, slot, held } = await leased();
  await ask(pool, held, { allowedHosts: '["a.example"]' });
  node.broken.add("applied");
  expect(await node.networkSync.sync(slot, 1)).toBe(true);
  expect(await reach(slot)).toBe("allowed_hosts");
  node.broken.clear();
  await changedAtNextLook({ pool, slot, held });
});

test("a node that is to be strict closes every way out where it cannot look, and opens them when it can again", async () => {
  const { slot } = await leased();
  for (const call of ["networkChanges", "now"]) node.broken.add(call);
  await node.clock.advance(3900);
  expect(await reach(slot)).toBe(200);
  await node.clock.advance(600);
  expect(await reach(slot)).toBe("closed");
  node.broken.clear();
  await node.clock.advance(1000);
  await until("the way out", async () => (await reach(slot)) === 200);
});

test("a node without Redis for too long ends its browsers, and says so when Redis is back", async () => {
  const { pool, slot, held } = await leased();
  for (const call of ["networkChanges", "now", "end"]) node.broken.add(call);
  await node.clock.advance(119_000);
  expect(slot.isEnding).toBe(false);
  await node.clock.advance(2000);
  await until("its end", () => node.slots.find(slot.id) === undefined);
  node.broken.clear();
  await node.clock.advance(5000);
  await until("its record gone", async () => (await pool.state(held.id)) === "gone");
});

test("time in which a node stands still counts, but it looks before it ends anything", async () => {
  const { slot } = await leased();
  node.clock.stand(300_000);
  await node.clock.advance(1000);
  expect(slot.isEnding).toBe(false);
  node.broken.add("networkChanges");
  for (let stood = 0; stood < 60; stood += 1) {
    node.clock.stand(2000);
    await node.clock.advance(0);
  }
  await until("its end", () => node.slots.find(slot.id) === undefined);
});

test("the next holder of a browser whose fence never came has the launch's own network", async () => {
  const { pool, slot, held } = await leased();
  slot.activity.begin(held.lease);
  await ask(pool, held, { allowedHosts: '["a.example"]' });
  expect(await node.networkSync.sync(slot, 1)).toBe(true);
  expect(await reach(slot)).toBe("allowed_hosts");
  await pool.release(held);
  await pool.freed(held.id);
  await pool.lend();
  await node.clock.advance(5000);
  await until("its own network", async () => (await reach(slot)) === 200);
});

test("the next holder's own change is not lost where the lease before, which nobody used, was never fenced", async () => {
  const { pool, slot, held } = await leased();
  slot.activity.begin(held.lease);
  await pool.release(held);
  const next = await pool.lend();
  await ask(pool, next, { allowedHosts: '["a.example"]' });
  expect(await node.networkSync.sync(slot, 1)).toBe(true);
  await node.clock.advance(5000);
  await until("its lease", () => slot.activity.lease === next.lease);
  expect(await reach(slot)).toBe("allowed_hosts");
});

test("a change that cannot be, and that another has taken the place of, is not told as in force", async () => {
  const { pool, slot, held } = await leased();
  await ask(pool, held, { allowedHosts: '["a.example"]', proxy: `{"id":"${"p".repeat(24)}"}` });
  const { rulesWith } = slot.egress;
  slot.egress.rulesWith = async (change) => {
    if (change.revision === 1) await ask(pool, held, { allowedHosts: '["b.example"]' });
    return await rulesWith.call(slot.egress, change);
  };
  expect(await node.networkSync.sync(slot, 1)).toBe(false);
  expect(await reach(slot)).toBe(200);
});
