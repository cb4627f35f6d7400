import { expect, test } from "vitest";
import { newBrowserId, newPoolId, newProjectId, partitionOf } from "../../src/base/ids.js";
import type { Browser } from "../../src/pool/browser.js";
import type { Dataset, PoolRecord } from "../../src/pool/ports/dataset-store.js";
import { nodesKey } from "../../src/store/redis/keys.js";
import { indexFault } from "../support/store/index-check.js";
import { onBoth } from "../support/store/on-both.js";
import { type Held, heldOf, nodeB, PoolBed } from "../support/store/pool-bed.js";
import { type AnyRecord, poolSpec, request, writeOf } from "../support/store/store-bed.js";

onBoth("datasets", ({ bed }) => {
  const joined = async (known?: Dataset): Promise<Dataset> => (await bed().dataset.join(known)).dataset;

  /** What a node would have written of a pool before Redis forgot it. */
  const journalled = async (
    pool: PoolBed,
  ): Promise<{ record: PoolRecord; browsers: readonly AnyRecord[] }> => {
    const record = await bed().dataset.readPool(pool.partition, []);
    if (!record) throw new Error("there is no such pool");
    return { record, browsers: await pool.browsers() };
  };

  test("an emptied Redis is known by every node that had seen what it had", async () => {
    const known = await joined();
    expect(await bed().dataset.join(known)).toMatchObject({ kind: "same", dataset: { name: known.name } });
    await bed().redis.flushall();
    const first = await bed().dataset.join(known);
    expect(first.kind).toBe("emptied");
    expect(first.dataset.name).not.toBe(known.name);
    expect(await bed().dataset.join(known)).toMatchObject({
      kind: "emptied",
      dataset: { name: first.dataset.name },
    });
    expect((await bed().dataset.join(first.dataset)).kind).toBe("same");
    // One that has seen nothing yet has nothing to restore.
    expect((await bed().dataset.join(undefined)).kind).toBe("joined");
  });

  test("a Redis whose dataset is older than what the node has last seen is another's", async () => {
    const { seenAt } = await joined();
    const known = { name: "1", seenAt: seenAt + 3_600_000 };
    expect((await bed().dataset.join(known)).kind).toBe("foreign");
  });

  test("whoever was away while Redis was emptied brings nothing back that may be deleted by now", async () => {
    const known = await joined();
    await bed().redis.flushall();
    const longAgo = known.seenAt - 3_600_000;
    await bed().redis.set(nodesKey("dataset"), `${longAgo}000`);
    expect((await bed().dataset.join({ name: "1", seenAt: longAgo })).kind).toBe("late");
    expect((await bed().dataset.join({ name: "1", seenAt: longAgo + 3_500_000 })).kind).toBe("foreign");
  });

  test("whoever removes the name alone has emptied nothing", async () => {
    const known = await joined();
    await bed().redis.hset(nodesKey("epoch"), "startedAt", known.seenAt - 3_600_000);
    await bed().redis.del(nodesKey("dataset"));
    expect(await bed().dataset.join(known)).toMatchObject({ kind: "same", dataset: { name: known.name } });
    expect(await bed().dataset.present()).toBe(known.name);
  });

  /** A pool in its second generation: an idle and two lent browsers on a node, another idle elsewhere. */
  const herd = async (): Promise<{ pool: PoolBed; opened: Held; unopened: Held }> => {
    const pool = await PoolBed.create(bed(), { name: "herd", size: 4 });
    await bed().projects.openPool(pool.id);
    await pool.update({ stealth: true }, { isNewLaunch: true });
    await pool.launch(3);
    const opened = await pool.lend({ name: "mine", startUrl: "https://example.com/" });
    await pool.connect(opened);
    const unopened = await pool.lend();
    await pool.launch(1, { node: nodeB });
    return { pool, opened, unopened };
  };

  test("a pool, its browsers and their leases are what they were", async () => {
    const { pool, opened, unopened } = await herd();
    const before = await pool.found();
    const { record, browsers } = await journalled(pool);
    await bed().redis.flushall();
    expect(await bed().dataset.restorePool(pool.partition, record, true)).toEqual({
      kind: "restored",
      isRemnant: false,
    });
    const restored = await bed().dataset.restoreBrowsers(pool.partition, browsers);
    expect(restored.toSorted()).toEqual(browsers.map(({ id }) => id).toSorted());
    const byId = (records: readonly AnyRecord[]) =>
      records.toSorted((one, other) => (one.id < other.id ? -1 : 1));
    expect(byId(await pool.browsers())).toEqual(byId(browsers));
    expect(await pool.found()).toMatchObject({ ...before, counts: { idle: 2, leased: 2, stale: 0 } });
    expect(await indexFault(bed(), pool.partition, await pool.browsers())).toBeUndefined();
    expect(await bed().projects.newestPools(0, 10)).toEqual([pool.id]);
    expect(await bed().projects.findName("pool", "herd")).toMatchObject({ owner: pool.id });
    expect(await bed().projects.findName("session", "mine")).toMatchObject({ owner: opened.lease });
    await bed().poolStore.reap(pool.partition);
    // Who holds one is found, connects and gives it back; who asks for one is given one of the others.
    expect(await pool.connect(opened)).toMatchObject({
      kind: "connected",
      browser: { lease: { registrations: 2 } },
    });
    expect(await pool.connect(unopened)).toMatchObject({
      kind: "connected",
      browser: { lease: { registrations: 1 } },
    });
    const lent = heldOf((await pool.ask()).reply);
    expect([opened.id, unopened.id]).not.toContain(lent.id);
    for (const held of [opened, unopened, lent]) expect(await pool.release(held)).toBe("released");
  });

  test("what is there is left alone, and a browser whose lease is another's by now is not restored", async () => {
    const { pool, opened, unopened } = await herd();
    const { record, browsers } = await journalled(pool);
    await pool.release(opened);
    const moved = await pool.dump();
    expect((await bed().dataset.restorePool(pool.partition, record, true)).kind).toBe("there");
    expect(await bed().dataset.restoreBrowsers(pool.partition, browsers)).toEqual([]);
    expect(await pool.dump()).toEqual(moved);
    const lent = await pool.record(unopened.id);
    const twin = { ...lent, id: newBrowserId(pool.partition) } as Browser;
    expect(await bed().dataset.restoreBrowsers(pool.partition, [twin])).toEqual([]);
  });

  test("of two nodes the one that knows the later configuration wins, and neither over a change since", async () => {
    const { pool } = await herd();
    const { record: earlier } = await journalled(pool);
    await pool.update({ timeout_seconds: 77 });
    const { record: later } = await journalled(pool);
    const restore = async (record: PoolRecord): Promise<string> =>
      (await bed().dataset.restorePool(pool.partition, record, false)).kind;
    await bed().redis.flushall();
    expect(await restore(earlier)).toBe("restored");
    expect(await restore(later)).toBe("restored");
    expect(await restore(earlier)).toBe("there");
    expect((await pool.found()).spec.timeout_seconds).toBe(77);
    await bed().redis.flushall();
    expect(await restore(earlier)).toBe("restored");
    pool.revision = (await pool.found()).revision;
    expect(await pool.update({ timeout_seconds: 88 })).toBe("updated");
    const evenLater = { ...later, fields: { ...later.fields, revision: "99" } };
    expect(await restore(evenLater)).toBe("there");
    expect((await pool.found()).spec.timeout_seconds).toBe(88);
  });

  test("a pool whose name is another's by now comes back for its leases alone, and empties", async () => {
    const { pool, opened } = await herd();
    const { record, browsers } = await journalled(pool);
    await bed().redis.flushall();
    const owner = newPoolId();
    const partition = partitionOf(owner);
    await bed().projects.reserveName({ kind: "pool", name: "herd", owner, partition });
    expect(await bed().dataset.restorePool(pool.partition, record, false)).toEqual({
      kind: "left",
      isRemnant: true,
    });
    expect(await pool.dump()).toEqual({});
    expect(await bed().dataset.restorePool(pool.partition, record, true)).toEqual({
      kind: "restored",
      isRemnant: true,
    });
    await bed().dataset.restoreBrowsers(
      pool.partition,
      browsers.filter(({ id }) => id === opened.id),
    );
    const { name, spec } = await pool.found();
    expect([name, spec.name, spec.size]).toEqual([undefined, undefined, 0]);
    expect(await bed().poolStore.wanted(pool.partition, 10)).toMatchObject({ count: 0 });
    expect(await pool.release(opened, { reuse: true })).toBe("released");
    await pool.freed(opened.id);
    expect(await pool.state(opened.id)).toBe("retiring");
  });

  test("a pool of a project that Redis has forgotten is on no list of anybody's", async () => {
    const id = newPoolId(newProjectId());
    const partition = partitionOf(id);
    const write = writeOf(poolSpec({ name: "theirs" }));
    await bed().poolStore.createPool(partition, { id, write, request: request() });
    const record = await bed().dataset.readPool(partition, []);
    if (!record) throw new Error("there is no such pool");
    await bed().redis.flushall();
    expect((await bed().dataset.restorePool(partition, record, false)).kind).toBe("left");
    expect((await bed().dataset.restorePool(partition, record, true)).isRemnant).toBe(true);
    const { projects } = bed().allProjects.ofPartition(partition);
    expect([await projects.pools(), await projects.findName("pool", "theirs")]).toEqual([[], undefined]);
    expect((await bed().poolStore.findPool(partition))?.spec.size).toBe(0);
  });

  test("a session goes on without its name where somebody else has taken that", async () => {
    const { pool, opened } = await herd();
    const { record, browsers } = await journalled(pool);
    await bed().redis.flushall();
    const taker = { kind: "session", name: "mine", owner: "another", partition: pool.partition } as const;
    await bed().projects.reserveName(taker);
    await bed().dataset.restorePool(pool.partition, record, true);
    await bed().dataset.restoreBrowsers(pool.partition, browsers);
    const { lease } = await pool.record(opened.id);
    expect([lease?.id, lease?.name]).toEqual([opened.lease, undefined]);
    expect(await bed().projects.findName("session", "mine")).toMatchObject({ owner: "another" });
  });

  test("sessions on demand have the templates that they were made from", async () => {
    const { pool } = await herd();
    const [browser] = await pool.browsers();
    const version = await bed().dataset.poolVersion(pool.partition);
    await pool.update({ stealth: false }, { isNewLaunch: true });
    expect(await bed().dataset.poolVersion(pool.partition)).not.toBe(version);
    const record = await bed().dataset.readPool(pool.partition, [browser?.templateKey ?? ""]);
    expect(Object.keys(record?.templates ?? {})).toContain(browser?.templateKey);
  });
});
