import { afterEach, beforeEach, expect, test } from "vitest";
import { proxyEndpoints } from "../../src/egress/port.js";
import { until } from "../support/browser/chromium-until.js";
import { isLiving } from "../support/living.js";
import { NetworkBed } from "../support/node/network-bed.js";
import type { NodeBed } from "../support/node/node-bed.js";
import { PoolBed } from "../support/store/pool-bed.js";
import { claimOf, request } from "../support/store/store-bed.js";

let bed: NetworkBed;
let node: NodeBed;
let count = 0;
beforeEach(async () => {
  bed = await NetworkBed.open(`egress${(count += 1)}`);
  node = bed.node;
});
afterEach(() => bed.close());

test("every browser has a way out of its own, which goes with it: at its retirement, its crash and the node's stop", async () => {
  const { pool, slot } = await bed.launch();
  expect(proxyEndpoints.size).toBe(1);
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
  expect(proxyEndpoints.size).toBe(0);
  const crashing = await bed.launch();
  for (const { pid } of node.launched) if (isLiving(pid)) process.kill(pid, "SIGKILL");
  await until("the crash", async () => (await crashing.pool.state(crashing.browser.id)) === "gone");
  expect(proxyEndpoints.size).toBe(0);
  await bed.launch();
});

test("a launch that fails or is given up leaves no way out behind", async () => {
  await node.fake.turn({ failWithCode: 3 });
  expect((await bed.launch()).slot).toBeUndefined();
  expect(proxyEndpoints.size).toBe(0);
  await node.fake.turn({ delayMs: 60_000 });
  const pool = await PoolBed.create(node.bed, { size: 1 });
  const [browser] = await pool.claim(1);
  if (!browser) throw new Error("nothing was claimed");
  const launching = node.launch(browser);
  await until("its way out", () => proxyEndpoints.size === 1);
  await node.slots.close();
  await launching;
});

test("a browser whose barrier cannot be proved is never idle", async () => {
  await node.fake.turn({ ignore: ["Network.loadNetworkResource"] });
  const pool = await PoolBed.create(node.bed, { size: 1 });
  const [browser] = await pool.claim(1);
  if (!browser) throw new Error("nothing was claimed");
  const launching = node.launch(browser);
  await until("its way out", () => proxyEndpoints.size === 1);
  await node.slots.close();
  await launching;
  expect(await pool.moves()).not.toContain("launching idle launched");
});

test("a browser whose proxy is gone is not launched, and the pool says why", async () => {
  const { pool, slot } = await bed.launch({ proxy_id: "p".repeat(24) });
  expect(slot).toBeUndefined();
  expect((await pool.found()).fill).toMatchObject({
    reason: "launch_failing",
    last_error: expect.stringContaining("there is no proxy"),
  });
});

test("a way out that is held shut lets nothing pass, and then goes by what came last meanwhile", async () => {
  const { slot } = await bed.lend();
  const { egress } = slot;
  let release = egress.hold();
  expect(await bed.reach(slot)).toBe("closed");
  await egress.apply(await egress.rulesWith({ revision: 1, allowedHosts: '["a.example"]' }));
  expect(await bed.reach(slot)).toBe("closed");
  await release();
  expect(await bed.reach(slot)).toBe("allowed_hosts");
  release = egress.hold();
  egress.shut();
  await release();
  expect(await bed.reach(slot)).toBe("closed");
  await egress.reopen();
  expect(await bed.reach(slot)).toBe("allowed_hosts");
});

test("a node that is to be strict closes every way out where it cannot look, and opens them when it can again", async () => {
  const { slot } = await bed.lend();
  for (const call of ["networkChanges", "now"]) node.broken.add(call);
  await node.clock.advance(3900);
  expect(await bed.reach(slot)).toBe(200);
  await node.clock.advance(600);
  expect(await bed.reach(slot)).toBe("closed");
  node.broken.clear();
  await node.clock.advance(1000);
  await until("the way out", async () => (await bed.reach(slot)) === 200);
});

test("a node that is to be strict and stood still lets nothing out before it has looked", async () => {
  const { slot } = await bed.lend();
  await node.clock.advance(1000);
  expect(await bed.reach(slot)).toBe(200);
  node.clock.stand(5000);
  // No timer has told it yet.
  await until("the way out closed", async () => (await bed.reach(slot)) === "closed");
  // The look that was begun before may be under way still, and the next one is left to it.
  await until("the way out", async () => {
    await node.clock.advance(1000);
    return (await bed.reach(slot)) === 200;
  });
});

test("a node without Redis for too long ends its browsers, and says so when Redis is back", async () => {
  const { pool, slot, held } = await bed.lend();
  for (const call of ["networkChanges", "now", "end"]) node.broken.add(call);
  await node.clock.advance(119_000);
  expect(slot.isEnding).toBe(false);
  await node.clock.advance(2000);
  await until("its end", () => node.slots.find(slot.id) === undefined);
  node.broken.clear();
  // A look that began before Redis was back may be under way still, and the next one joins it.
  await until("its record gone", async () => {
    await node.clock.advance(5000);
    return (await pool.state(held.id)) === "gone";
  });
});

test("time in which a node stands still counts, but it looks before it ends anything", async () => {
  const { slot } = await bed.lend();
  node.clock.stand(300_000);
  await node.clock.advance(1000);
  expect(slot.isEnding).toBe(false);
  node.broken.add("networkChanges");
  // A look at Redis takes real time: one that is under way does not count what is stood meanwhile.
  await until("its end", async () => {
    node.clock.stand(2000);
    await node.clock.advance(0);
    return node.slots.find(slot.id) === undefined;
  });
});
