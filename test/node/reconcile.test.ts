import { afterEach, beforeEach, expect, test } from "vitest";
import { type LeaseId, newBrowserId, newLeaseId } from "../../src/base/ids.js";
import { LeaseHandover } from "../../src/node/lease-handover.js";
import type { Slot } from "../../src/node/slot.js";
import { partitionKey, projectKey } from "../../src/store/redis/keys.js";
import { until } from "../support/browser/chromium-until.js";
import { isLiving } from "../support/living.js";
import { makeLogBook } from "../support/http/http-server.js";
import { type NodeBed, openNodeBed } from "../support/node/node-bed.js";
import { oneSlot, seatClient, takeSnapshot } from "../support/node/one-slot.js";
import { nodeA, PoolBed } from "../support/store/pool-bed.js";
import { request } from "../support/store/store-bed.js";

let node: NodeBed;
let count = 0;
beforeEach(async () => {
  node = await openNodeBed(`reconcile${(count += 1)}`);
});
afterEach(() => node.close());

const one = (over: Parameters<typeof PoolBed.create>[1] = {}) => oneSlot(node, over);
const snapshot = () => takeSnapshot(node);

const comes = (slot: Slot, lease: LeaseId, cuts: string[] = []): Promise<boolean> =>
  seatClient(node, slot, { lease, cuts });

test.each(["idle", "leased", "resetting"] as const)(
  "a record that is %s and has no browser here is ended, and its pool replaces it",
  async (state) => {
    const pool = await PoolBed.create(node.bed, { size: 1 });
    await node.bed.projects.addPool(pool.id);
    const [id] = await pool.launch(1, { node: nodeA });
    if (!id) throw new Error("nothing was launched");
    const held = state === "idle" ? undefined : await pool.lend();
    if (held && state === "resetting") {
      await pool.connect(held);
      await pool.release(held);
    }
    expect(await pool.state(id)).toBe(state);
    await node.clock.advance(5000);
    await until("its end", async () => (await pool.state(id)) === "gone");
    // It is moved once the record is gone.
    if (state === "leased")
      expect(await until("its tombstone", () => node.bed.projects.findTombstone(id))).toMatchObject({
        reason: "missing",
      });
    expect(await pool.claim(1)).toHaveLength(1);
  },
);

test("a pool that a failover has taken from the lists is on them again, with its name; one that is deleted is not", async () => {
  const { pool } = await one({ name: "herd" });
  const { projects, project, redis } = node.bed;
  const lists = (["pools", "poolOrder", "names"] as const).map((part) => projectKey(project, part));
  const look = async () => {
    await redis.del(...lists);
    await node.reconciler.look();
    return {
      isKept: (await projects.partitions()).includes(pool.partition),
      shown: await projects.newestPools(0, 10),
      named: (await projects.findName("pool", "herd"))?.owner,
    };
  };
  expect(await look()).toEqual({ isKept: true, shown: [pool.id], named: pool.id });
  await redis.hset(partitionKey(project, pool.partition, "pool"), "state", "deleting");
  expect(await look()).toEqual({ isKept: false, shown: [], named: undefined });
});

test("a client that comes for a browser which is not here has its record ended at once", async () => {
  const pool = await PoolBed.create(node.bed, { size: 1 });
  const [id] = await pool.launch(1, { node: nodeA });
  if (!id) throw new Error("nothing was launched");
  await node.reconciler.lookFor(newBrowserId(pool.partition));
  expect(await pool.state(id)).toBe("idle");
  await node.reconciler.lookFor(id);
  expect(await pool.state(id)).toBe("gone");
});

test("a record that a failover has put back to launching becomes idle again under its next claim", async () => {
  const pool = await PoolBed.create(node.bed, { size: 1 });
  const [browser] = await pool.claim(1);
  if (!browser) throw new Error("nothing was claimed");
  const restore = await snapshot();
  await node.launch(browser);
  await restore();
  expect(await pool.state(browser.id)).toBe("launching");
  await node.launch(browser);
  expect(await pool.state(browser.id)).toBe("idle");
  expect(node.launched).toHaveLength(1);
});

test("a lease that a failover has forgotten is cut when the next one begins, and the browser goes on", async () => {
  const { pool, slot } = await one();
  const restore = await snapshot();
  const [cuts, forgotten] = [[] as string[], await pool.lend()];
  expect(await comes(slot, forgotten.lease, cuts)).toBe(true);
  await restore();
  const held = await pool.lend();
  expect(held.id).toBe(forgotten.id);
  expect(await comes(slot, held.lease)).toBe(true);
  expect(cuts).toEqual(["superseded"]);
  expect([slot.activity.lease, slot.activity.isOver(forgotten.lease)]).toEqual([held.lease, true]);
  expect(await pool.state(held.id)).toBe("leased");
});

test.each(["state", "relaunch"] as const)(
  "where the pool resets by %s, what a forgotten lease has used is nobody else's",
  async (reset_on_release) => {
    const { pool, slot } = await one({ reset_on_release });
    const restore = await snapshot();
    const forgotten = await pool.lend();
    await comes(slot, forgotten.lease);
    await restore();
    const held = await pool.lend();
    expect(await comes(slot, held.lease)).toBe(false);
    expect(await pool.state(held.id)).toBe("gone");
    // It is moved once the record is gone.
    expect(await until("its tombstone", () => node.bed.projects.findTombstone(held.id))).toMatchObject({
      reason: "not_clean",
      lease: held.lease,
    });
    expect(node.launched.filter(({ pid }) => isLiving(pid))).toEqual([]);
  },
);

test("what cannot be settled while Redis is away is settled before the next holder's first client", async () => {
  const { pool, slot } = await one({ reset_on_release: "relaunch" });
  const restore = await snapshot();
  const forgotten = await pool.lend();
  await comes(slot, forgotten.lease);
  await restore();
  const held = await pool.lend();
  node.broken.add("unknownLease");
  await expect(node.handover.begin(slot, held.lease)).rejects.toThrow("Redis cannot be reached");
  node.broken.clear();
  expect(await node.handover.begin(slot, held.lease)).toBe(false);
});

test("two clients of the next holder that come together both wait for what the forgotten lease has left", async () => {
  const { pool, slot } = await one({ reset_on_release: "relaunch" });
  const restore = await snapshot();
  const forgotten = await pool.lend();
  await comes(slot, forgotten.lease);
  await restore();
  const held = await pool.lend();
  expect(await Promise.all([comes(slot, held.lease), comes(slot, held.lease)])).toEqual([false, false]);
});

test("whoever drives a browser that its record calls idle is cut", async () => {
  const { pool, slot } = await one();
  const restore = await snapshot();
  const [cuts, forgotten] = [[] as string[], await pool.lend()];
  await comes(slot, forgotten.lease, cuts);
  await restore();
  await node.clock.advance(5000);
  await until("the cut", () => cuts.length > 0);
  await until("the rest", () => slot.unknownLease === undefined);
  expect(await pool.state(slot.id)).toBe("idle");
});

test("a lease whose end a failover has forgotten is over, for its holder has gone", async () => {
  const { pool, slot } = await one();
  const held = await pool.lend();
  await comes(slot, held.lease);
  const restore = await snapshot();
  await pool.release(held);
  await slot.activity.cutLease(held.lease, "released");
  await pool.freed(held.id);
  await restore();
  expect(await pool.state(held.id)).toBe("leased");
  await node.clock.advance(5000);
  await until("its end", async () => (await pool.state(held.id)) === "gone");
});

const warned = async (slot: Slot, pool: PoolBed, came: boolean): Promise<readonly string[]> => {
  const { log, lines } = makeLogBook();
  const handover = new LeaseHandover({ ...node, reports: node.bed.reports, log });
  const restore = await snapshot();
  const earlier = await pool.lend();
  if (came) await comes(slot, earlier.lease);
  else expect(await handover.begin(slot, earlier.lease)).toBe(true);
  // The release of one that nobody came under tells its node nothing.
  await (came ? restore() : pool.release(earlier));
  expect(await pool.state(slot.id)).toBe("idle");
  const next = await pool.lend();
  expect(await handover.begin(slot, next.lease)).toBe(true);
  expect([slot.activity.lease, slot.activity.isOver(earlier.lease)]).toEqual([next.lease, true]);
  return lines.map(({ level, message }) => `${level}: ${message}`);
};

test("a lease that somebody came under and Redis has forgotten is warned of", async () => {
  const { pool, slot } = await one();
  expect(await warned(slot, pool, true)).toEqual(["warn: lease cut: Redis has forgotten it"]);
});

test("one that nobody came under and that was released is over without a word", async () => {
  const { pool, slot } = await one();
  expect(await warned(slot, pool, false)).toEqual([]);
});

test("a word about a lease that the record does not name cuts nobody", async () => {
  const { pool, slot } = await one();
  const [cuts, held] = [[] as string[], await pool.lend()];
  await comes(slot, held.lease, cuts);
  expect(await node.handover.begin(slot, newLeaseId())).toBe(false);
  const lease = newLeaseId();
  await node.leaseCommands.receiveDirectly({ kind: "start", browser: slot.id, lease, url: "about:blank" });
  await node.reconciler.look();
  expect([cuts, slot.activity.lease]).toEqual([[], held.lease]);
});

test("a browser that could not be ended is tried again", async () => {
  const { pool, slot } = await one();
  const { chromium } = slot;
  const kill = chromium.kill.bind(chromium);
  let tries = 0;
  chromium.kill = async () => {
    tries += 1;
    if (tries < 3) throw new Error("its directories are busy");
    await kill();
  };
  await expect(node.slots.retireNow(slot, "unhealthy", "")).rejects.toThrow("busy");
  expect(node.slots.find(slot.id)).toBe(slot);
  await until("its end", async () => {
    await node.clock.advance(5000);
    return node.slots.find(slot.id) === undefined;
  });
  expect(tries).toBeGreaterThanOrEqual(3);
  expect(await pool.state(slot.id)).toBe("retiring");
});

test("a browser of a node that was taken for lost takes room there until it has ended", async () => {
  const { pool, slot } = await one();
  const { nodes, poolStore } = node.bed;
  await poolStore.clearNode(pool.partition, {
    node: nodeA,
    why: "node_lost",
    which: "lost",
    request: request(),
  });
  await nodes.forget(nodeA);
  const { chromium } = slot;
  const kill = chromium.kill.bind(chromium);
  let isStuck = true;
  chromium.kill = async () =>
    isStuck ? Promise.reject(new Error("its directories are busy")) : await kill();
  await node.clock.advance(60_000);
  await until("its room", async () => (await nodes.occupancy(nodeA)).browsers === 1);
  expect(node.slots.find(slot.id)).toBe(slot);
  isStuck = false;
  await until("its end", async () => {
    await node.clock.advance(5000);
    return node.slots.find(slot.id) === undefined;
  });
  expect(await nodes.living()).toEqual([]);
});

test("a browser whose record is gone while it ends leaves no room taken", async () => {
  const { slot } = await one();
  const { nodes, redis } = node.bed;
  const { chromium } = slot;
  const kill = chromium.kill.bind(chromium);
  let letEnd: () => void = () => {};
  const mayEnd = new Promise<void>((resolve) => (letEnd = resolve));
  chromium.kill = () => mayEnd.then(kill);
  const ended = node.slots.end(slot);
  await redis.flushall();
  const look = node.reconciler.look();
  await until("its room", async () => (await nodes.occupancy(nodeA)).browsers === 1);
  letEnd();
  await Promise.all([ended, look]);
  expect(await nodes.occupancy(nodeA)).toEqual({ browsers: 0, bytes: 0 });
});

test("browsers that Redis has forgotten end with the next look, however young they are, and none waits for another's end", async () => {
  const { pool, slot: held } = await one();
  const { lease } = await pool.lend();
  // Its client cannot be cut: the browser ends when that has lasted too long.
  held.activity.begin(lease);
  held.activity.enter(lease, { cut: () => new Promise(() => {}) });
  await node.bed.redis.flushall();
  await node.clock.advance(5000);
  await until("its end begun", () => held.isEnding);
  const { slot: other } = await one();
  await node.bed.redis.flushall();
  await node.clock.advance(10_000);
  await until("the other's end", () => node.slots.find(other.id) === undefined);
  expect(node.slots.find(held.id)).toBe(held);
  await until("its own", () => node.slots.find(held.id) === undefined);
});
