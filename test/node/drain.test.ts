import { afterEach, beforeEach, expect, onTestFinished, test } from "vitest";
import { type BrowserId, newLeaseId, onDemandPartition } from "../../src/base/ids.js";
import { Drain, RequestedDrain } from "../../src/node/drain/drain.js";
import type { PoolStore } from "../../src/pool/ports/pool-store.js";
import { silentLog } from "../support/browser/chromium-host.js";
import { until } from "../support/browser/chromium-until.js";
import { type NodeBed, openNodeBed } from "../support/node/node-bed.js";
import { nodeFacts } from "../support/store/node-facts.js";
import { controlA, type Held, nodeA, nodeB, PoolBed } from "../support/store/pool-bed.js";
import { candidateOn, claimOf, poolConfig, request } from "../support/store/store-bed.js";

let node: NodeBed;
let count = 0;
beforeEach(async () => {
  node = await openNodeBed(`drain${(count += 1)}`);
});
afterEach(() => node.close());

/** An empty pool, which its project lists. */
async function openPool(size = 1): Promise<PoolBed> {
  const { bed } = node;
  const pool = await PoolBed.create(bed, { size });
  await bed.projects.addPool(pool.id);
  await bed.projects.openPool(pool.id);
  return pool;
}
/** Launches a browser of a pool on this node. */
async function launchHere(pool: PoolBed): Promise<BrowserId> {
  const [browser] = await pool.claim(1);
  if (!browser) throw new Error("nothing was claimed");
  await node.launch(browser);
  return browser.id;
}
/** A pool with an idle browser on this node, which runs it. */
async function idleBrowser(): Promise<{ readonly pool: PoolBed; readonly id: BrowserId }> {
  const pool = await openPool();
  return { pool, id: await launchHere(pool) };
}
const portsOf = (poolStore: PoolStore): ConstructorParameters<typeof Drain>[0] => {
  const { bed, slots, clock } = node;
  return { node: nodeA, poolStore, projects: bed.projects, nodes: bed.nodes, slots, clock, log: silentLog };
};
/** A store where something happens each time that a call of it has been answered. */
const after = (from: PoolStore, call: keyof PoolStore, happens: () => Promise<void>): PoolStore =>
  new Proxy(from, {
    get: (store, name) => {
      const value: unknown = Reflect.get(store, name);
      if (name !== call || typeof value !== "function") return value;
      return async (...given: unknown[]): Promise<unknown> => {
        const answer = (await value.apply(store, given)) as unknown;
        await happens();
        return answer;
      };
    },
  });
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

test("a drain whose last step fails is tried again, and leaves nothing behind when it is ended", async () => {
  const { pool, id } = await idleBrowser();
  const said: string[] = [];
  const log = { ...silentLog, warn: (_: object, text: string) => void said.push(text) };
  const drain = new RequestedDrain({ ...portsOf(node.poolStore), log });
  node.broken.add("clearNode");
  for (let beats = 1; beats <= 3; beats += 1) {
    drain.follow(0);
    await until("its failure", () => said.length === beats);
  }
  expect(node.slots.beforeLaunched.size).toBe(1);
  expect(await pool.state(id)).toBe("idle");
  node.broken.clear();
  drain.follow(0);
  await until("its last step", async () => (await pool.state(id)) !== "idle");
  drain.follow(undefined);
  expect(node.slots.beforeLaunched.size).toBe(0);
  const launched = await launchHere(pool);
  expect(await pool.state(launched)).toBe("idle");
  expect(said).toEqual(Array.from({ length: 3 }, () => "drain is tried again"));
});

test("a drain goes on while Redis cannot be reached, and ends when the last lease has", async () => {
  const { clock, poolStore } = node;
  const { pool, id } = await idleBrowser();
  const held = await pool.lend();
  const drain = new Drain(portsOf(poolStore));
  node.broken.add("recycle").add("browsersOf");
  let isOver = false;
  const waiting = drain.wait(600_000, new AbortController().signal).then(() => (isOver = true));
  for (let second = 0; second < 5; second += 1) await clock.advance(1000);
  node.broken.clear();
  await clock.advance(1000);
  expect(isOver).toBe(false);
  expect(await pool.state(id)).toBe("leased");
  await pool.release(held, { reuse: false });
  await until("the end of the drain", async () => {
    await clock.advance(1000);
    return isOver;
  });
  await waiting;
});

/** Both nodes drain, so that nothing is warmed elsewhere. */
const drainAll = async (): Promise<void> => {
  for (const id of [nodeA, nodeB]) await node.bed.nodes.beat(nodeFacts(id, { isDraining: true }));
};
const isOverSoon = async (run: Run): Promise<boolean> => {
  const before = run.looks;
  await until("an end or some looks", async () => {
    await node.clock.advance(1000);
    return run.isOver || run.looks > before + 2;
  });
  return run.isOver;
};
interface Run {
  readonly looks: number;
  readonly isOver: boolean;
  readonly waiting: Promise<void>;
}
/** A drain of 600 s. */
const runDrain = (poolStore: PoolStore): Run => {
  let looks = 0;
  const counted = after(poolStore, "browsersOf", async () => void (looks += 1));
  let isOver = false;
  const end = new AbortController();
  onTestFinished(() => end.abort());
  const waiting = new Drain(portsOf(counted)).wait(600_000, end.signal).then(() => void (isOver = true));
  return {
    get looks() {
      return looks;
    },
    get isOver() {
      return isOver;
    },
    waiting,
  };
};

test("a node alone drains on where one of its browsers is lent after it was seen idle", async () => {
  const { pool } = await idleBrowser();
  await drainAll();
  let lending: Promise<Held> | undefined;
  const run = runDrain(after(node.poolStore, "recycle", async () => void (await (lending ??= pool.lend()))));
  expect(await isOverSoon(run)).toBe(false);
  const held = await (lending ?? Promise.reject(new Error("nothing was lent")));
  expect(await pool.state(held.id)).toBe("leased");
  await pool.release(held, { reuse: false });
  await until("the end of the drain", () => isOverSoon(run));
  await run.waiting;
});

test("a drain that ends lends nothing that becomes free at its end: who waits gets nothing here", async () => {
  const { pool, id } = await idleBrowser();
  await drainAll();
  const held = await pool.lend();
  await pool.connect(held);
  await pool.ask();
  await pool.release(held);
  expect(await pool.state(id)).toBe("resetting");
  const run = runDrain(node.poolStore);
  await until("the end of the drain", () => isOverSoon(run));
  await pool.freed(id);
  expect(await pool.state(id)).toBe("retiring");
  expect(await pool.counts()).toMatchObject({ leased: 0, waiting: 1 });
});

test("a drain marks and reads the pools that have browsers on its node, and no others", async () => {
  const { pool } = await idleBrowser();
  const others = [await openPool(), await openPool()];
  await others[0]?.launch(1, { node: nodeB });
  await node.bed.nodes.beat(nodeFacts(nodeB));
  await pool.lend();
  const read = new Map<unknown, number>();
  const counted = new Proxy(node.poolStore, {
    get: (store, name) =>
      name === "browsersOf"
        ? (...given: Parameters<PoolStore["browsersOf"]>) => {
            read.set(given[0], (read.get(given[0]) ?? 0) + 1);
            return store.browsersOf(...given);
          }
        : (Reflect.get(store, name) as unknown),
  });
  const run = runDrain(counted);
  expect(await isOverSoon(run)).toBe(false);
  expect([...read.keys()]).toEqual([pool.partition]);
  expect(read.get(pool.partition)).toBeLessThanOrEqual(run.looks);
  expect(await closedIn(pool)).toHaveProperty(nodeA);
  for (const other of others) expect(await closedIn(other)).toEqual({});
});

test("what is launched on a draining node for a pool that had nothing there is not lent, also when all is over", async () => {
  const [early, late] = [await openPool(3), await openPool(2)];
  for (const pool of [early, late]) await pool.launch(1, { node: nodeB });
  await node.bed.nodes.beat(nodeFacts(nodeB));
  await launchHere(early);
  const held = [await early.lend(), await early.lend()];
  const run = runDrain(node.poolStore);
  expect(await isOverSoon(run)).toBe(false);
  expect(await closedIn(late)).toEqual({});
  const launched = await launchHere(late);
  expect(await late.record(launched)).toMatchObject({ state: "retiring", why: "drained" });
  for (const one of held) await early.release(one, { reuse: false });
  await until("the end of the drain", () => isOverSoon(run));
  const afterwards = await launchHere(early);
  expect(await early.record(afterwards)).toMatchObject({ state: "retiring", why: "drained" });
});

test("a drain waits for the launch of a session on demand, which is its caller's already", async () => {
  await drainAll();
  const { poolStore, reports } = node.bed;
  const {
    size: _,
    fill_rate_per_minute: __,
    timeout_seconds: ___,
    reset_on_release: ____,
    ...template
  } = poolConfig();
  const claimed = await poolStore.createSession(onDemandPartition, {
    candidate: candidateOn(onDemandPartition, nodeA),
    waiter: {
      id: request(),
      lease: newLeaseId(),
      control: controlA,
      connection: request(),
      timeoutSeconds: 60,
    },
    template,
  });
  if (claimed.kind !== "claimed") throw new Error(`not claimed: ${claimed.kind}`);
  const run = runDrain(node.poolStore);
  expect(await isOverSoon(run)).toBe(false);
  await reports.launchFailed(claimed.browser.id, claimOf(claimed.browser), "no display");
  await until("the end of the drain", () => isOverSoon(run));
});
