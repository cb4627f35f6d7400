import { afterEach, beforeEach, expect, onTestFinished, test } from "vitest";
import { Drain } from "../../../src/node/drain/drain.js";
import type { PoolStore } from "../../../src/pool/ports/pool-store.js";
import { until } from "../../support/browser/chromium-until.js";
import {
  claimSession,
  closedIn,
  idleBrowser,
  launchHere,
  openPool,
  portsOf,
} from "../../support/node/drain-bed.js";
import { type NodeBed, openNodeBed } from "../../support/node/node-bed.js";
import { nodeFacts } from "../../support/store/node-facts.js";
import { type Held, nodeA, nodeB } from "../../support/store/pool-bed.js";
import { claimOf } from "../../support/store/store-bed.js";

let node: NodeBed;
let count = 0;
beforeEach(async () => {
  node = await openNodeBed(`drain${(count += 1)}`);
});
afterEach(() => node.close());

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
test("an idle browser for whose replacement there is no room stays in service for 30 s, and goes then", async () => {
  const { pool, id } = await idleBrowser(node);
  await node.bed.nodes.beat(nodeFacts(nodeB, { maxBrowsers: 0 }));
  const drain = new Drain(portsOf(node, node.poolStore));
  let isOver = false;
  const waiting = drain.wait(600_000, new AbortController().signal).then(() => (isOver = true));
  await until("the drain in the pool", async () => {
    await node.clock.advance(100);
    return JSON.stringify(await closedIn(node, pool)).includes(nodeA);
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

test("a drain goes on while Redis cannot be reached, and ends when the last lease has", async () => {
  const { clock, poolStore } = node;
  const { pool, id } = await idleBrowser(node);
  const held = await pool.lend();
  const drain = new Drain(portsOf(node, poolStore));
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
  const waiting = new Drain(portsOf(node, counted))
    .wait(600_000, end.signal)
    .then(() => void (isOver = true));
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
  const { pool } = await idleBrowser(node);
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

test("a node alone keeps what is idle in service for 30 s while something is lent, and no longer than that is", async () => {
  const pool = await openPool(node, 2);
  for (let browsers = 0; browsers < 2; browsers += 1) await launchHere(node, pool);
  await drainAll();
  const held = await pool.lend();
  const run = runDrain(node.poolStore);
  expect(await isOverSoon(run)).toBe(false);
  expect(await pool.counts()).toMatchObject({ idle: 1, leased: 1 });
  const other = await pool.lend();
  await pool.release(other, { reuse: false });
  await pool.release(held, { reuse: false });
  await until("the end of the drain", () => isOverSoon(run));
  expect(node.clock.now()).toBeLessThan(30_000);
  await run.waiting;
});

test("a drain that ends lends nothing that becomes free at its end: who waits gets nothing here", async () => {
  const { pool, id } = await idleBrowser(node);
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
  const { pool } = await idleBrowser(node);
  const others = [await openPool(node), await openPool(node)];
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
  // A look counts once it is answered: another may have begun.
  expect(read.get(pool.partition)).toBeLessThanOrEqual(run.looks + 1);
  expect(await closedIn(node, pool)).toHaveProperty(nodeA);
  for (const other of others) expect(await closedIn(node, other)).toEqual({});
});

test("what is launched on a draining node for a pool that had nothing there is not lent, also when all is over", async () => {
  const [early, late] = [await openPool(node, 3), await openPool(node, 2)];
  for (const pool of [early, late]) await pool.launch(1, { node: nodeB });
  await node.bed.nodes.beat(nodeFacts(nodeB));
  await launchHere(node, early);
  const held = [await early.lend(), await early.lend()];
  const run = runDrain(node.poolStore);
  expect(await isOverSoon(run)).toBe(false);
  expect(await closedIn(node, late)).toEqual({});
  const launched = await launchHere(node, late);
  expect(await late.record(launched)).toMatchObject({ state: "retiring", why: "drained" });
  for (const one of held) await early.release(one, { reuse: false });
  await until("the end of the drain", () => isOverSoon(run));
  const afterwards = await launchHere(node, early);
  expect(await early.record(afterwards)).toMatchObject({ state: "retiring", why: "drained" });
});

test("a drain waits for the launch of a session on demand, which is its caller's already", async () => {
  await drainAll();
  const session = await claimSession(node);
  const run = runDrain(node.poolStore);
  expect(await isOverSoon(run)).toBe(false);
  await node.bed.reports.launchFailed(session.id, claimOf(session), "no display");
  await until("the end of the drain", () => isOverSoon(run));
});
