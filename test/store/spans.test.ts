import { describe, expect, test } from "vitest";
import {
  type BrowserId,
  partitionOf,
  newBrowserId,
  newLeaseId,
  newPoolId,
  type NodeId,
} from "../../src/base/ids.js";
import type { NodeFacts } from "../../src/pool/ports/node-store.js";
import { RedisProjectStore } from "../../src/store/project/project-store.js";
import { RedisProjects } from "../../src/store/project/projects.js";
import { age } from "../support/store/age.js";
import { onBoth } from "../support/store/on-both.js";
import { nodeA, nodeB, PoolBed } from "../support/store/pool-bed.js";
import { request, writeOf } from "../support/store/store-bed.js";
import { defaultLimits } from "../support/store/store-limits.js";
import { nodeFacts } from "../support/store/node-facts.js";
import { unsynced } from "../support/store/unsynced.js";

const gib = 1024 ** 3;
const factsOf = (id: NodeId, over: Partial<NodeFacts> = {}): NodeFacts =>
  nodeFacts(id, { memoryBytes: 4 * gib, maxBrowsers: 3, ...over });

async function cycles(pool: PoolBed, count: number): Promise<void> {
  for (let done = 0; done < count; done += 1) await pool.release(await pool.lend());
}

onBoth("what spans partitions", ({ bed }) => {
  const later = (ms: number): Promise<void> => age(bed().redis, "remuda:*", ms);

  describe("names", () => {
    test("one owner at a time; reserving again is harmless; only the owner gives back", async () => {
      const { projects } = bed();
      const partition = partitionOf(newPoolId());
      const ask = { kind: "session" as const, name: "n", partition };
      expect(await projects.reserveName({ ...ask, owner: "a" })).toBeDefined();
      expect(await projects.reserveName({ ...ask, owner: "a" })).toBeDefined();
      expect(await projects.reserveName({ ...ask, owner: "b" })).toBeUndefined();
      expect(await projects.reserveName({ ...ask, kind: "pool", owner: "b" })).toBeDefined();
      await projects.freeName({ kind: "session", name: "n", owner: "b" });
      expect(await projects.findName("session", "n")).toMatchObject({ owner: "a" });
      await projects.freeName({ kind: "session", name: "n", owner: "a" });
      expect(await projects.findName("session", "n")).toBeUndefined();
    });

    test("a reservation is void after its deadline unless its owner bears the name", async () => {
      const pool = await PoolBed.create(bed(), { size: 2, name: "pool" });
      await pool.launch(1);
      const { projects } = bed();
      const reserve = (kind: "pool" | "session", name: string, owner: string): Promise<unknown> =>
        projects.reserveName({ kind, name, owner, partition: pool.partition });
      const held = await pool.lend({ name: "held" });
      const { waiter } = await pool.ask({ name: "waiting" });
      await Promise.all([
        reserve("pool", "pool", pool.id),
        reserve("pool", "former", pool.id),
        reserve("pool", "nobody", newPoolId()),
        reserve("session", "held", held.lease),
        reserve("session", "former", held.lease),
        reserve("session", "waiting", waiter.lease),
        reserve("session", "nobody", newLeaseId()),
      ]);
      const names = async (): Promise<readonly string[]> =>
        (await bed().redis.hkeys(`remuda:{project-${bed().project}}:names`)).toSorted();
      await projects.sweepNames();
      expect(await names()).toHaveLength(7);
      await later(121_000);
      await projects.sweepNames();
      expect(await names()).toEqual(["pool:pool", "session:held", "session:waiting"]);
    });
  });

  describe("pools", () => {
    test("listed once opened; one whose creator died on the way is settled by its record", async () => {
      const { projects, poolStore } = bed();
      const [made, unmade] = [newPoolId(), newPoolId()];
      await projects.addPool(made);
      await projects.addPool(unmade);
      const pool = await PoolBed.create(bed());
      await poolStore.createPool(partitionOf(made), {
        id: made,
        write: writeOf(pool.spec),
        request: request(),
      });
      await projects.sweepPools();
      expect(await projects.pools()).toEqual([made]);
      expect(await projects.partitions()).toHaveLength(3);
      await later(121_000);
      await projects.sweepPools();
      expect(await projects.pools()).toEqual([made]);
      expect(await projects.partitions()).toHaveLength(2);
    });

    test("one that is made while a tick takes it for deleted keeps its name", async () => {
      const { projects } = bed();
      const pool = await PoolBed.filled(bed(), { size: 1, name: "herd" });
      const { id: owner, partition } = pool;
      await projects.reserveName({ kind: "pool", name: "herd", owner, partition });
      await projects.openPool(owner);
      expect(await projects.settlePartition(partition)).toBe(false);
      expect(await projects.findName("pool", "herd")).toMatchObject({ owner });
      expect(await projects.pools()).toEqual([owner]);
    });

    test("a deleted one is looked after until its partition is empty, and its tombstones are kept", async () => {
      const { projects, poolStore } = bed();
      const pool = await PoolBed.filled(bed(), { size: 1 });
      await projects.openPool(pool.id);
      const held = await pool.lend();
      await poolStore.deletePool(pool.partition, { force: true, request: request() });
      await projects.dropPool(pool.id);
      expect(await projects.pools()).toEqual([]);
      await projects.sweepPools();
      expect(await projects.partitions()).toContain(pool.partition);
      await pool.clear();
      await projects.sweepPools();
      expect(await projects.partitions()).not.toContain(pool.partition);
      expect(await projects.findTombstone(held.id)).toMatchObject({ reason: "pool_deleted" });
    });
  });

  describe("tombstones", () => {
    test("a day, at most so many, the oldest go first", async () => {
      const { redis, project } = bed();
      const few = new RedisProjectStore(bed().store, project, { ...defaultLimits, maxTombstones: 2 });
      const pool = await PoolBed.filled(bed(), { size: 3 });
      for (let i = 0; i < 3; i += 1) {
        const held = await pool.lend();
        await pool.release(held, { reuse: false });
        await later(1000);
      }
      await few.sweepTombstones();
      expect(await few.tombstones(0, 10)).toHaveLength(2);
      await later(86_400_000);
      await few.sweepTombstones();
      expect(await few.tombstones(0, 10)).toHaveLength(0);
      expect(await redis.exists(`remuda:{project-${project}}:tombstoneOrder`)).toBe(0);
    });
  });

  test("events of all pools together are no more than they may be, of each at least a hundred", async () => {
    const { redis, project, projects, store } = bed();
    const pools = [
      await PoolBed.filled(bed(), { size: 1 }),
      await PoolBed.filled(bed(), { size: 1 }),
      await PoolBed.filled(bed(), { size: 1 }),
    ];
    const lengths = (): Promise<number[]> => Promise.all(pools.map((pool) => redis.xlen(pool.key("events"))));
    for (const { id } of pools) {
      await projects.addPool(id);
      await projects.openPool(id);
    }
    for (const busy of pools.slice(0, 1)) await cycles(busy, 150);
    const before = await lengths();
    const sweep = (eventsKeptInAll: number): Promise<void> =>
      new RedisProjects(store, {
        vaultWrites: unsynced,
        limits: { ...defaultLimits, eventsKeptInAll },
        unnamed: project,
        others: async () => [],
      }).sweepEvents();
    await sweep(800);
    // The partition of sessions on demand has a share as well.
    expect(await lengths()).toEqual([200, ...before.slice(1)]);
    await sweep(100);
    expect(await lengths()).toEqual([100, ...before.slice(1)]);
  });

  describe("rooms", () => {
    test("by memory and by number; an empty node admits one of any class; a repeat is the same place", async () => {
      const { nodes } = bed();
      const partition = partitionOf(newPoolId());
      const [one, two, three, four] = [
        newBrowserId(partition),
        newBrowserId(partition),
        newBrowserId(partition),
        newBrowserId(partition),
      ];
      expect(await nodes.reserveRoom(factsOf(nodeA), { id: one, bytes: 16 * gib })).toBe(true);
      expect(await nodes.reserveRoom(factsOf(nodeA), { id: one, bytes: 16 * gib })).toBe(true);
      expect(await nodes.reserveRoom(factsOf(nodeA), { id: two, bytes: gib })).toBe(false);
      await nodes.freeRoom(nodeA, one);
      await nodes.freeRoom(nodeA, one);
      for (const id of [two, three, four])
        expect(await nodes.reserveRoom(factsOf(nodeA), { id: id, bytes: gib })).toBe(true);
      expect(await nodes.reserveRoom(factsOf(nodeA), { id: one, bytes: gib })).toBe(false);
      expect(await nodes.occupancy(nodeA)).toEqual({ browsers: 3, bytes: 3 * gib });
    });

    test("a place whose browser never came to be is given back after its deadline, one with a record is not", async () => {
      const { nodes } = bed();
      const pool = await PoolBed.create(bed(), { size: 1 });
      const [browser] = await pool.claim(1);
      await nodes.reserveRoom(factsOf(nodeA), { id: browser?.id ?? ("" as never), bytes: gib });
      await nodes.reserveRoom(factsOf(nodeA), { id: newBrowserId(pool.partition), bytes: gib });
      await nodes.sweepRooms(nodeA);
      expect((await nodes.occupancy(nodeA)).browsers).toBe(2);
      await later(61_000);
      await nodes.sweepRooms(nodeA);
      expect((await nodes.occupancy(nodeA)).browsers).toBe(1);
    });
  });

  describe("nodes", () => {
    test("one that fails launches has no room while it rests, and then for one at a time", async () => {
      const { nodes } = bed();
      const ask = (isTrial = true): Promise<boolean> =>
        nodes.reserveRoom(factsOf(nodeA), { id: newBrowserId(partitionOf(newPoolId())), bytes: 1, isTrial });
      await nodes.rest(nodeA, 5000);
      expect(await ask()).toBe(false);
      expect(await ask(false)).toBe(true);
      await later(6000);
      expect([await ask(), await ask()]).toEqual([true, false]);
      await nodes.rest(nodeA, 5000);
      expect(await ask()).toBe(false);
      await nodes.wake(nodeA);
      expect(await ask()).toBe(true);
    });

    test("one that fails launches has room for another as soon as that one's is given back, and no sooner", async () => {
      const { nodes } = bed();
      const [first, second] = [
        newBrowserId(partitionOf(newPoolId())),
        newBrowserId(partitionOf(newPoolId())),
      ];
      const ask = (id: BrowserId): Promise<boolean> =>
        nodes.reserveRoom(factsOf(nodeA), { id, bytes: 1, isTrial: true });
      expect([await ask(first), await ask(second)]).toEqual([true, false]);
      await nodes.freeRoom(nodeA, second);
      expect(await ask(second)).toBe(false);
      await nodes.freeRoom(nodeA, first);
      expect([await ask(second), await ask(first)]).toEqual([true, false]);
    });

    const first = { ...factsOf(nodeA), run: "1", origin: "here" };
    const second = { ...first, run: "2", origin: "there" };
    test("a name is one daemon's as long as it beats; another of its data directory takes it at once", async () => {
      const { nodes } = bed();
      await nodes.beat(first);
      expect(await nodes.beat(second)).toEqual({ kind: "taken", by: first });
      expect(await nodes.beat({ ...first, run: "3" })).toEqual({ kind: "accepted" });
      await later(17_000);
      expect(await nodes.beat(second)).toEqual({ kind: "accepted" });
      expect(await nodes.beat({ ...first, run: "3" })).toMatchObject({ kind: "taken" });
    });

    test("a name whose daemon beat before the clock went back is another's once that could have beaten again", async () => {
      const { nodes } = bed();
      await nodes.beat(first);
      await later(-600_000);
      expect(await nodes.beat(second)).toEqual({ kind: "taken", by: first });
      await later(17_000);
      expect(await nodes.beat(second)).toEqual({ kind: "accepted" });
    });

    test("are read whatever text their facts have in them, line separators included", async () => {
      const { nodes } = bed();
      const failing = { failures: 1, error: "a\u2028b\u2029c\r\nd\u0085e\u0000f" };
      await nodes.beat(factsOf(nodeA, { failing }));
      await nodes.beat(factsOf(nodeB));
      expect(await nodes.living()).toMatchObject([{ id: nodeA, failing }, { id: nodeB }]);
    });

    test("live while they beat, are lost afterwards, and are forgotten with their room", async () => {
      const { nodes } = bed();
      await nodes.beat(factsOf(nodeA));
      await nodes.beat(factsOf(nodeB));
      await nodes.reserveRoom(factsOf(nodeA), { id: newBrowserId(partitionOf(newPoolId())), bytes: gib });
      expect((await nodes.living()).map((facts) => facts.id)).toEqual([nodeA, nodeB]);
      expect(await nodes.lost()).toEqual([]);
      await later(17_000);
      await nodes.beat(factsOf(nodeB));
      expect((await nodes.living()).map((facts) => facts.id)).toEqual([nodeB]);
      expect(await nodes.lost()).toEqual([nodeA]);
      await nodes.forget(nodeA);
      expect(await nodes.lost()).toEqual([]);
      expect(await nodes.occupancy(nodeA)).toEqual({ browsers: 0, bytes: 0 });
      await nodes.forget(nodeB);
      expect(await nodes.living()).toEqual([]);
    });
  });

  test("remember: the same answer for the same body, a mismatch for another, forgotten only while nobody was told", async () => {
    const { projects } = bed();
    expect(await projects.remember({ key: "k", body: "b" }, "value")).toEqual({ kind: "new" });
    expect(await projects.remember({ key: "k", body: "b" }, "other")).toEqual({
      kind: "same",
      value: "value",
    });
    expect(await projects.remember({ key: "k", body: "c" }, "other")).toEqual({ kind: "mismatch" });
    expect(await projects.forgetKey({ key: "k", body: "b" }, "value")).toBe(false);
    expect(await projects.remember({ key: "l", body: "b" }, "value")).toEqual({ kind: "new" });
    expect(await projects.remember({ key: "l", body: "b" }, "value")).toMatchObject({ kind: "same" });
    expect(await projects.forgetKey({ key: "l", body: "b" }, "other")).toBe(false);
    expect(await projects.forgetKey({ key: "l", body: "b" }, "value")).toBe(true);
    expect(await projects.remember({ key: "l", body: "c" }, "other")).toEqual({ kind: "new" });
  });
});
