import { afterEach, beforeEach, expect, test } from "vitest";
import { Drain, RequestedDrain } from "../../src/node/drain.js";
import type { PoolStore } from "../../src/pool/ports/pool-store.js";
import { silentLog } from "../support/browser/chromium-host.js";
import { until } from "../support/browser/chromium-until.js";
import { type NodeBed, openNodeBed } from "../support/node/node-bed.js";
import { nodeFacts } from "../support/store/node-facts.js";
import { nodeA, nodeB, PoolBed } from "../support/store/pool-bed.js";

let node: NodeBed;
let count = 0;
beforeEach(async () => {
  node = await openNodeBed(`drain${(count += 1)}`);
});
afterEach(() => node.close());

/** A pool with an idle browser on this node, which runs it. */
async function idleBrowser(): Promise<{
  readonly pool: PoolBed;
  readonly id: Parameters<PoolBed["state"]>[0];
}> {
  const { bed } = node;
  const pool = await PoolBed.create(bed, { size: 1 });
  await bed.projects.addPool(pool.id);
  await bed.projects.openPool(pool.id);
  const [browser] = await pool.claim(1);
  if (!browser) throw new Error("nothing was claimed");
  await node.launch(browser);
  return { pool, id: browser.id };
}
const portsOf = (poolStore: PoolStore): ConstructorParameters<typeof Drain>[0] => {
  const { bed, slots, clock } = node;
  return { node: nodeA, poolStore, projects: bed.projects, nodes: bed.nodes, slots, clock, log: silentLog };
};
/** The nodes of which a pool knows that they drain or are silent. */
const closedIn = async (pool: PoolBed): Promise<unknown> =>
  JSON.parse((await node.bed.redis.hget(pool.key("pool"), "closed")) ?? "{}") as unknown;

test("an idle browser for whose replacement there is no room stays in service for 30 s, and goes then", async () => {
  const { pool, id } = await idleBrowser();
  await node.bed.nodes.beat(nodeFacts(nodeB, { maxBrowsers: 0 }));
  const drain = new Drain(portsOf(node.poolStore));
  let isOver = false;
  const waiting = drain.wait(600_000, new AbortController().signal).then(() => (isOver = true));
  await until("the drain in the pool", async () => {
    await node.clock.advance(100);
    return JSON.stringify(await closedIn(pool)).includes(nodeA);
  });
  while (node.clock.now() < 29_000) await node.clock.advance(1000);
  expect(await pool.state(id)).toBe("idle");
  await until("its end", async () => {
    await node.clock.advance(1000);
    return (await pool.state(id)) !== "idle";
  });
  expect(node.clock.now()).toBeGreaterThanOrEqual(30_000);
  await until("the end of the drain", async () => {
    await node.clock.advance(1000);
    return isOver;
  });
  await waiting;
});

test("a drain that was ended leaves no mark, also where the node was just about to set it", async () => {
  const { pool, id } = await idleBrowser();
  await node.bed.nodes.beat(nodeFacts(nodeB));
  let [arrived, go] = [(): void => {}, (): void => {}];
  const [isThere, mayGo] = [
    new Promise<void>((resolve) => (arrived = resolve)),
    new Promise<void>((resolve) => (go = resolve)),
  ];
  const slow = new Proxy(node.poolStore, {
    get: (store, name) =>
      name === "recycle"
        ? async (...given: Parameters<PoolStore["recycle"]>) => {
            arrived();
            await mayGo;
            return await store.recycle(...given);
          }
        : (Reflect.get(store, name) as unknown),
  });
  const drain = new RequestedDrain(portsOf(slow));
  drain.follow(120_000);
  await isThere;
  // Whoever ends the drain tells the pools; the node hears of it at its next beat.
  await node.poolStore.reopenNode(pool.partition, nodeA);
  go();
  await until("the mark of the node", async () => JSON.stringify(await closedIn(pool)).includes(nodeA));
  drain.follow(undefined);
  await until("no mark", async () => {
    await node.clock.advance(100);
    return JSON.stringify(await closedIn(pool)) === "{}";
  });
  expect((await pool.lend()).id).toBe(id);
  // The next drain is not undone by what is left of the last.
  drain.follow(120_000);
  await until("the next mark", async () => JSON.stringify(await closedIn(pool)).includes(nodeA));
  drain.close();
});

test("a drain goes on while Redis cannot be reached, and ends when the last lease has", async () => {
  const { bed, slots, clock, poolStore } = node;
  const pool = await PoolBed.create(bed, { size: 1 });
  await bed.projects.addPool(pool.id);
  await bed.projects.openPool(pool.id);
  const [browser] = await pool.claim(1);
  if (!browser) throw new Error("nothing was claimed");
  await node.launch(browser);
  const held = await pool.lend();
  const drain = new Drain({
    node: nodeA,
    poolStore,
    projects: bed.projects,
    nodes: bed.nodes,
    slots,
    clock,
    log: silentLog,
  });
  node.broken.add("recycle").add("browsersOf");
  let isOver = false;
  const waiting = drain.wait(600_000, new AbortController().signal).then(() => (isOver = true));
  for (let second = 0; second < 5; second += 1) await clock.advance(1000);
  node.broken.clear();
  await clock.advance(1000);
  expect(isOver).toBe(false);
  expect(await pool.state(browser.id)).toBe("leased");
  await pool.release(held, { reuse: false });
  await until("the end of the drain", async () => {
    await clock.advance(1000);
    return isOver;
  });
  await waiting;
});
