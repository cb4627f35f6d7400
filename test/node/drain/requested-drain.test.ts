import { afterEach, beforeEach, expect, test } from "vitest";
import { RequestedDrain } from "../../../src/node/drain/drain.js";
import type { PoolStore } from "../../../src/pool/ports/pool-store.js";
import { silentLog } from "../../support/browser/chromium-host.js";
import { until } from "../../support/browser/chromium-until.js";
import { claimSession, closedIn, idleBrowser, launchHere, portsOf } from "../../support/node/drain-bed.js";
import { type NodeBed, openNodeBed } from "../../support/node/node-bed.js";
import { nodeFacts } from "../../support/store/node-facts.js";
import { nodeA, nodeB, type PoolBed } from "../../support/store/pool-bed.js";

let node: NodeBed;
let count = 0;
beforeEach(async () => {
  node = await openNodeBed(`asked${(count += 1)}`);
});
afterEach(() => node.close());

/** A store whose first call of this name arrives only when a test lets it go. */
function heldUp(call: "recycle" | "reopenNode"): {
  readonly poolStore: PoolStore;
  readonly isThere: Promise<void>;
  readonly go: () => void;
} {
  let [arrived, go] = [(): void => {}, (): void => {}];
  const [isThere, mayGo] = [
    new Promise<void>((resolve) => (arrived = resolve)),
    new Promise<void>((resolve) => (go = resolve)),
  ];
  let calls = 0;
  const poolStore = new Proxy(node.poolStore, {
    get: (store, name) => {
      const value: unknown = Reflect.get(store, name);
      if (name !== call || typeof value !== "function") return value;
      return async (...given: unknown[]): Promise<unknown> => {
        arrived();
        if ((calls += 1) === 1) await mayGo;
        return (await value.apply(store, given)) as unknown;
      };
    },
  });
  return { poolStore, isThere, go };
}
const isMarked = async (pool: PoolBed): Promise<boolean> => nodeA in (await closedIn(node, pool));
/** Gives what is under way time to arrive, if it can. */
const ask = async (times: number, pool: PoolBed): Promise<void> => {
  for (let asked = 0; asked < times; asked += 1) await isMarked(pool);
};

test("a drain that was ended leaves no mark, also where the node was just about to set it", async () => {
  const { pool, id } = await idleBrowser(node);
  await node.bed.nodes.beat(nodeFacts(nodeB));
  const { poolStore, isThere, go } = heldUp("recycle");
  const drain = new RequestedDrain(portsOf(node, poolStore));
  drain.follow(120_000);
  await isThere;
  // Whoever ends the drain tells the pools; the node hears of it at its next beat.
  await node.poolStore.reopenNode(pool.partition, nodeA);
  go();
  await until("the mark of the node", async () => JSON.stringify(await closedIn(node, pool)).includes(nodeA));
  drain.follow(undefined);
  await until("no mark", async () => {
    await node.clock.advance(100);
    return JSON.stringify(await closedIn(node, pool)) === "{}";
  });
  expect((await pool.lend()).id).toBe(id);
  // The next drain is not undone by what is left of the last.
  drain.follow(120_000);
  await until("the next mark", async () => JSON.stringify(await closedIn(node, pool)).includes(nodeA));
  drain.close();
});

test("a drain whose last step fails is tried again, and leaves nothing behind when it is ended", async () => {
  const { pool, id } = await idleBrowser(node);
  const said: string[] = [];
  const log = { ...silentLog, warn: (_: object, text: string) => void said.push(text) };
  const drain = new RequestedDrain({ ...portsOf(node, node.poolStore), log });
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
  const launched = await launchHere(node, pool);
  expect(await pool.state(launched)).toBe("idle");
  expect(said).toEqual(Array.from({ length: 3 }, () => "drain is tried again"));
});

test("a node that is told to stop as its drain has ended waits until the marks of that are taken back", async () => {
  const { pool } = await idleBrowser(node);
  await node.bed.nodes.beat(nodeFacts(nodeB));
  const { poolStore, isThere, go } = heldUp("reopenNode");
  const drain = new RequestedDrain(portsOf(node, poolStore));
  drain.follow(120_000);
  await until("the mark of the node", () => isMarked(pool));
  drain.follow(undefined);
  await isThere;
  let isClosed = false;
  const closing = (async () => {
    await drain.close();
    isClosed = true;
  })();
  await ask(50, pool);
  expect(isClosed).toBe(false);
  go();
  await closing;
  expect(await isMarked(pool)).toBe(false);
});

test("a drain that is asked for until another time marks pools after the one before, not before it", async () => {
  const { pool } = await idleBrowser(node);
  await node.bed.nodes.beat(nodeFacts(nodeB));
  const { poolStore, isThere, go } = heldUp("recycle");
  const drain = new RequestedDrain(portsOf(node, poolStore));
  drain.follow(3_600_000);
  await isThere;
  const from = await node.bed.store.now();
  drain.follow(120_000);
  await ask(200, pool);
  go();
  const untilOf = async (): Promise<number> =>
    ((await closedIn(node, pool))[nodeA] as { drainsUntil?: number } | undefined)?.drainsUntil ?? 0;
  await until("the mark of the second", async () => {
    const at = await untilOf();
    return at > from && at <= from + 130_000;
  });
  await drain.close();
  expect(await untilOf()).toBeLessThan(from + 130_000);
});

test("a drain that is asked for until now ends what the one before still waits for", async () => {
  const { pool, id } = await idleBrowser(node);
  await node.bed.nodes.beat(nodeFacts(nodeB));
  const drain = new RequestedDrain(portsOf(node, node.poolStore));
  drain.follow(120_000);
  await until("the mark of the node", () => isMarked(pool));
  expect((await pool.lend()).id).toBe(id);
  drain.follow(0);
  await until("its end", async () => (await pool.state(id)) !== "leased");
  await drain.close();
});

test.each([120_000, 0])(
  "a session on demand that comes when a drain of %s ms has found its node empty lives until the drain's end, and no longer",
  async (limitMs) => {
    await node.bed.nodes.beat(nodeFacts(nodeB));
    let isEmptied = false;
    const poolStore = new Proxy(node.poolStore, {
      get: (store, name) =>
        name === "clearNode"
          ? (...given: Parameters<PoolStore["clearNode"]>) =>
              store.clearNode(...given).finally(() => (isEmptied = true))
          : (Reflect.get(store, name) as unknown),
    });
    const drain = new RequestedDrain(portsOf(node, poolStore));
    drain.follow(limitMs);
    await until("an empty node", () => isEmptied);
    const session = await claimSession(node);
    await node.launch(session);
    const found = async () => (await node.poolStore.findBrowser(session.id))?.browser;
    if (limitMs > 0) {
      await node.clock.advance(limitMs / 2);
      drain.follow(limitMs / 2);
      for (let asked = 0; asked < 50; asked += 1) expect(await found()).toMatchObject({ state: "leased" });
      await node.clock.advance(limitMs / 2);
    }
    expect(await found()).toMatchObject({ state: "leased" });
    drain.follow(0);
    await until("its end", async () => (await found())?.state !== "leased");
    expect(await found()).toMatchObject({ state: "retiring", why: "drained" });
    await drain.close();
  },
);
