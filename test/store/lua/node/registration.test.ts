import { describe, expect, onTestFinished, test } from "vitest";
import { indexFault } from "../../../support/store/index-check.js";
import { type Held, nodeA, nodeB, PoolBed } from "../../../support/store/pool-bed.js";
import { type RestartedRedis, startRestartedRedis } from "../../../support/store/restarted-redis.js";
import { answers, bedAt, nodeOf, open, registers, spreadPool } from "../../../support/store/spread-pool.js";

/** A lease that Redis keeps, and a later one that it is to forget, with the end of the first. */
async function lendAgain(pool: PoolBed, detach: () => Promise<void>) {
  const first = await pool.lend();
  await open(pool, first);
  await detach();
  await pool.release(first);
  await pool.freed(first.id);
  await pool.lend();
  const second = await pool.lend();
  expect(second.id).toBe(first.id);
  return { first, second, record: await open(pool, second) };
}

describe("after a failover", () => {
  test("nothing of a node is lent before it has registered, and then whoever waits is served of it", async () => {
    const { pool, detach, failOver } = await spreadPool();
    await detach();
    await failOver();
    for (let asked = 0; asked < 2; asked += 1) expect((await pool.ask()).reply.kind).toBe("waiting");
    expect(await registers(pool, nodeB)).toEqual({ resumed: [], void: [] });
    expect(await pool.counts()).toMatchObject({ leased: 1, waiting: 1 });
    expect((await pool.browsers()).find(({ state }) => state === "leased")).toMatchObject({ node: nodeB });
    expect(await registers(pool, nodeA)).toEqual({ resumed: [], void: [] });
    expect(await pool.counts()).toMatchObject({ leased: 2, waiting: 0 });
    expect(await registers(pool, nodeA)).toBeUndefined();
  });

  test("what is launched on a node that has not registered is not lent either, nor what is released there", async () => {
    const { pool, detach, failOver } = await spreadPool();
    const held = await pool.lend();
    await open(pool, held);
    await detach();
    await failOver();
    await pool.release(held);
    await pool.freed(held.id);
    await pool.update({ size: 3 });
    await pool.launch(1, { node: nodeOf(held) });
    expect(await pool.counts()).toMatchObject({ idle: 3 });
    expect((await pool.ask()).reply.kind).toBe("waiting");
  });

  test("a lease that clients have opened goes on, though Redis has forgotten it", async () => {
    const { pool, detach, failOver } = await spreadPool();
    await detach();
    const held = await pool.lend({ name: "mine" });
    const record = await open(pool, held);
    await failOver();
    expect(await pool.state(held.id)).toBe("idle");
    expect(await registers(pool, nodeOf(held), { opened: [record] })).toEqual({
      resumed: [held.lease],
      void: [],
    });
    // Its name may be another's by now.
    expect((await pool.record(held.id)).lease).toEqual({ ...record.lease, name: undefined });
    expect(await open(pool, held)).toMatchObject({ lease: { registrations: 2 } });
    expect(await pool.release(held)).toBe("released");
  });

  test("it goes on in place of an earlier one, whose end Redis has forgotten", async () => {
    const { pool, detach, failOver } = await spreadPool();
    const { first, second, record } = await lendAgain(pool, detach);
    await failOver();
    expect(await registers(pool, nodeOf(first), { opened: [record] })).toEqual({
      resumed: [second.lease],
      void: [],
    });
    expect(await pool.connect(first)).toEqual({ kind: "over", why: "released" });
    expect(await indexFault(pool.bed, pool.partition, await pool.browsers())).toBeUndefined();
    expect(await pool.release(second)).toBe("released");
  });

  test("it does so where the clock is behind that by which the earlier one was granted", async () => {
    const { pool, detach, failOverBack } = await spreadPool();
    const { first, second, record } = await lendAgain(pool, detach);
    await failOverBack();
    expect(await registers(pool, nodeOf(first), { opened: [record] })).toEqual({
      resumed: [second.lease],
      void: [],
    });
    expect((await pool.record(first.id)).lease?.id).toBe(second.lease);
  });

  test("it is not taken back for want of a client of which Redis has forgotten", async () => {
    const { pool, detach, failOver } = await spreadPool();
    const held = await pool.lend();
    await detach();
    const record = await open(pool, held);
    await failOver();
    expect(await registers(pool, nodeOf(held), { opened: [record] })).toEqual({
      resumed: [held.lease],
      void: [],
    });
    await pool.age(40_000);
    await pool.bed.poolStore.reap(pool.partition);
    expect(await pool.state(held.id)).toBe("leased");
  });

  test("one whose end Redis knows does not come back", async () => {
    const { pool, detach, failOver } = await spreadPool();
    const held = await pool.lend();
    const record = await open(pool, held);
    await pool.release(held);
    await detach();
    await failOver();
    expect(await registers(pool, nodeOf(held), { opened: [record] })).toEqual({ resumed: [], void: [] });
    expect(await pool.state(held.id)).toBe("resetting");
  });

  test("whoever was served before is not served again", async () => {
    const { pool, detach, failOver } = await spreadPool();
    const [first] = [await pool.lend(), await pool.lend()];
    await open(pool, first);
    await pool.ask();
    await detach();
    await pool.release(first);
    await pool.freed(first.id);
    const { lease } = await pool.record(first.id);
    if (!lease) throw new Error("nobody was served");
    const record = await open(pool, { ...first, lease: lease.id });
    await failOver();
    expect(await pool.counts()).toMatchObject({ waiting: 1 });
    expect(await registers(pool, nodeOf(first), { opened: [record] })).toMatchObject({ resumed: [lease.id] });
    expect(await pool.counts()).toMatchObject({ waiting: 0 });
  });

  test("a lease that nobody has opened is void, and its browser replaced", async () => {
    const { pool, detach, failOver } = await spreadPool();
    const [held, opened] = [await pool.lend(), await pool.lend()];
    await open(pool, opened);
    await detach();
    await failOver();
    expect(await registers(pool, nodeOf(held))).toEqual({ resumed: [], void: [held.lease] });
    expect(await registers(pool, nodeOf(opened))).toEqual({ resumed: [], void: [] });
    expect(await pool.record(held.id)).toMatchObject({ state: "retiring", why: "unconfirmed" });
    expect(await pool.connect(held)).toEqual({ kind: "over", why: "unconfirmed" });
    expect(await pool.state(opened.id)).toBe("leased");
    expect(await pool.claim(1)).toMatchObject([{ paid: "credit" }]);
  });

  test.each([
    ["before", async () => {}],
    ["after", async (pool: PoolBed) => void (await pool.bed.poolStore.reap(pool.partition))],
  ])("it is void where the clock is behind, %s a tick has seen that", async (_, tick) => {
    const { pool, detach, failOverBack } = await spreadPool();
    const held = await pool.lend();
    await detach();
    await failOverBack();
    await tick(pool);
    expect(await registers(pool, nodeOf(held))).toEqual({ resumed: [], void: [held.lease] });
    expect(await pool.connect(held)).toEqual({ kind: "over", why: "unconfirmed" });
  });

  test("records of browsers that the node has no more end with that, and none of them is lent", async () => {
    const { pool, detach, failOver } = await spreadPool();
    const held = await pool.lend();
    await detach();
    await failOver();
    const lacks = (await pool.browsers()).map(({ id }) => id);
    for (const node of [nodeA, nodeB]) await registers(pool, node, { lacks });
    expect((await pool.ask()).reply.kind).toBe("waiting");
    expect(await pool.counts()).toMatchObject({ idle: 0, leased: 0, waiting: 1 });
    expect(await pool.record(held.id)).toMatchObject({ why: "missing" });
  });

  test("a lease of this epoch is not void, and no earlier one takes its place", async () => {
    const { pool, detach, failOver } = await spreadPool();
    await detach();
    const earlier = await pool.lend();
    const record = await open(pool, earlier);
    await failOver();
    await registers(pool, nodeA);
    await registers(pool, nodeB);
    const held = [await pool.lend(), await pool.lend()].find(({ id }) => id === earlier.id);
    if (!held) throw new Error("it was not lent");
    expect(await registers(pool, nodeOf(held), { opened: [record] })).toBeUndefined();
    expect((await pool.record(held.id)).lease?.id).toBe(held.lease);
  });

  test("a node that lives and does not register is of an earlier release: it lends again in the end", async () => {
    const { pool, detach, failOver } = await spreadPool();
    await detach();
    await failOver();
    await pool.bed.poolStore.reap(pool.partition);
    await pool.age(30_000);
    await pool.bed.poolStore.reap(pool.partition);
    expect((await pool.ask({ mayWait: false })).reply.kind).toBe("none");
    await pool.age(35_000);
    await pool.bed.poolStore.reap(pool.partition);
    expect((await pool.ask({ mayWait: false })).reply.kind).toBe("granted");
  });

  test("a node that was taken for lost and has started anew has nothing to register", async () => {
    const { pool, detach, failOver } = await spreadPool();
    await detach();
    await failOver();
    await pool.bed.poolStore.reap(pool.partition);
    const clear = { node: nodeA, why: "node_lost", which: "lost", request: "a".repeat(24) as never } as const;
    await pool.bed.poolStore.clearNode(pool.partition, clear);
    await pool.launch(1, { node: nodeA });
    expect((await pool.ask()).reply.kind).toBe("granted");
  });
});

describe("after a restart", () => {
  async function restarted(
    more: readonly string[],
  ): Promise<{ pool: PoolBed; held: Held; server: RestartedRedis }> {
    const server = await startRestartedRedis(more);
    onTestFinished(() => server.stop());
    const pool = await PoolBed.filled(await bedAt(server.url), { size: 2 });
    return { pool, held: await pool.lend(), server };
  }

  test("on an append-only file nodes register too, and no lease is void", async () => {
    // Redis puts a write off by default where the disk is slow, also behind its answer.
    const { pool, held, server } = await restarted(["--appendfsync", "always"]);
    await server.restart();
    await answers(pool.bed);
    expect((await pool.ask()).reply.kind).toBe("waiting");
    expect(await registers(pool, nodeA)).toEqual({ resumed: [], void: [] });
    expect(await pool.state(held.id)).toBe("leased");
    expect(await pool.counts()).toMatchObject({ leased: 2, waiting: 0 });
  });

  test("on a snapshot that is older, leases that nobody has opened are void", async () => {
    const { pool, held, server } = await restarted(["--appendonly", "no"]);
    await pool.bed.redis.save();
    await server.restart();
    await answers(pool.bed);
    expect(await registers(pool, nodeA)).toEqual({ resumed: [], void: [held.lease] });
  });
});
