import { expect, test } from "vitest";
import { age } from "../../../support/store/age.js";
import { openMessageListener } from "../../../support/egress/listener.js";
import { onBoth } from "../../../support/store/on-both.js";
import { controlA, nodeA, nodeB } from "../../../support/store/pool-bed.js";
import { candidateOn, claimOf, poolSpec, request, writeOf } from "../../../support/store/store-bed.js";
import { newLeaseId, onDemandPartition } from "../../../../src/base/ids.js";
import { partitionKey } from "../../../../src/store/redis/keys.js";
import type { Waiter } from "../../../../src/pool/ports/pool-store.js";

onBoth("an idempotency key on a session on demand", ({ bed, server }) => {
  const create = async (
    over: Partial<Waiter> = {},
  ): Promise<{
    waiter: Waiter;
    reply: Awaited<ReturnType<ReturnType<typeof bed>["poolStore"]["createSession"]>>;
  }> => {
    const id = request();
    const waiter: Waiter = {
      id,
      lease: newLeaseId(),
      control: controlA,
      connection: id,
      timeoutSeconds: 60,
      ...over,
    };
    const { template } = writeOf(poolSpec());
    const idempotencyKey =
      waiter.key === undefined ? {} : { idempotencyKey: { key: waiter.key, body: "body" } };
    return {
      waiter,
      reply: await bed().poolStore.createSession(onDemandPartition, {
        candidate: candidateOn(onDemandPartition, nodeA),
        waiter,
        template,
        ...idempotencyKey,
      }),
    };
  };
  const launchOf = ({ reply }: Awaited<ReturnType<typeof create>>): Promise<"launched" | "stale"> => {
    if (reply.kind !== "claimed") throw new Error(reply.kind);
    return bed().reports.launched(reply.browser.id, claimOf(reply.browser), "{}");
  };

  test("a place whose launch failed, and of which no control knows any more, is given up with its name", async () => {
    const first = await create({ name: "mine" });
    if (first.reply.kind !== "claimed") throw new Error(first.reply.kind);
    await bed().projects.reserveName({
      kind: "session",
      name: "mine",
      owner: first.waiter.lease,
      partition: onDemandPartition,
    });
    await bed().reports.launchFailed(first.reply.browser.id, claimOf(first.reply.browser), "no display");
    const standing = () =>
      bed().redis.hexists(partitionKey(bed().project, onDemandPartition, "waiterRecords"), first.waiter.id);
    await bed().poolStore.reap(onDemandPartition);
    expect(await standing()).toBe(1);
    await age(bed().redis, "remuda:*", 61_000);
    await bed().poolStore.beat(onDemandPartition, controlA);
    await bed().poolStore.reap(onDemandPartition);
    expect([await standing(), await bed().projects.findName("session", "mine")]).toEqual([0, undefined]);
  });

  test("finds its place while it launches and its lease afterwards, whose configuration stays until it is gone", async () => {
    const first = await create({ key: "k" });
    expect((await create({ key: "k" })).reply).toMatchObject({
      kind: "waiting",
      waiter: first.waiter.id,
      lease: first.waiter.lease,
    });
    await launchOf(first);
    expect((await create({ key: "k" })).reply).toMatchObject({
      kind: "granted",
      browser: { lease: { id: first.waiter.lease } },
    });
    const held = await bed().poolStore.findHeld(onDemandPartition, first.waiter.lease);
    const id = held?.browser.id ?? ("" as never);
    await bed().poolStore.release(onDemandPartition, {
      browser: id,
      reuse: false,
      why: "deleted",
      isRetry: false,
      request: request(),
    });
    expect((await create({ key: "k" })).reply).toEqual({ kind: "over" });
    const found = await bed().poolStore.findBrowser(id);
    if (found) await bed().reports.gone(id, claimOf(found.browser));
    expect(await bed().poolStore.findTemplate(onDemandPartition, id)).toBeUndefined();
  });

  test("keeps a browser whose caller went while it launched for the retry, then lets it go", async () => {
    const first = await create({ key: "k" });
    await bed().poolStore.withdraw(onDemandPartition, {
      waiter: first.waiter.id,
      connection: first.waiter.connection,
      lease: first.waiter.lease,
    });
    await launchOf(first);
    expect((await create({ key: "k" })).reply).toMatchObject({ kind: "granted" });
    const second = await create({ key: "other" });
    await bed().poolStore.withdraw(onDemandPartition, {
      waiter: second.waiter.id,
      connection: second.waiter.connection,
      lease: second.waiter.lease,
    });
    await launchOf(second);
    await age(bed().redis, `remuda:${bed().project}:{${onDemandPartition}}:*`, 11_000);
    await bed().poolStore.beat(onDemandPartition, controlA);
    await bed().poolStore.reap(onDemandPartition);
    expect(await bed().poolStore.findHeld(onDemandPartition, first.waiter.lease)).toBeDefined();
    expect(await bed().poolStore.findHeld(onDemandPartition, second.waiter.lease)).toBeUndefined();
  });

  test("without one, a browser whose caller went while it launched is retired", async () => {
    const first = await create();
    await bed().poolStore.withdraw(onDemandPartition, {
      waiter: first.waiter.id,
      connection: first.waiter.connection,
      lease: first.waiter.lease,
    });
    await launchOf(first);
    expect((await bed().poolStore.browsers(onDemandPartition)).browsers).toMatchObject([
      { state: "retiring", why: "unwanted" },
    ]);
  });

  test("without one, a browser whose caller's control died while it launched is retired, and its name given back", async () => {
    const first = await create({ name: "mine" });
    await bed().projects.reserveName({
      kind: "session",
      name: "mine",
      owner: first.waiter.lease,
      partition: onDemandPartition,
    });
    await age(bed().redis, `remuda:${bed().project}:{${onDemandPartition}}:*`, 11_000);
    await launchOf(first);
    expect((await bed().poolStore.browsers(onDemandPartition)).browsers).toMatchObject([
      { state: "retiring", why: "unwanted" },
    ]);
    expect(await bed().projects.findName("session", "mine")).toBeUndefined();
  });

  test("a further launch is claimed for the place of one that failed, once, and for no place that is another's or was given up", async () => {
    const first = await create({ key: "k" });
    const again = async (): Promise<Awaited<ReturnType<typeof create>>["reply"]> =>
      await bed().poolStore.createSession(onDemandPartition, {
        candidate: candidateOn(onDemandPartition, nodeB),
        waiter: first.waiter,
        template: writeOf(poolSpec()).template,
        relaunch: request(),
      });
    expect(await again()).toEqual({ kind: "superseded" });
    if (first.reply.kind === "claimed")
      await bed().reports.launchFailed(first.reply.browser.id, claimOf(first.reply.browser), "no display");
    const further = await again();
    expect(further).toMatchObject({
      kind: "claimed",
      browser: { node: nodeB },
      waiter: first.waiter.id,
      lease: first.waiter.lease,
    });
    expect(await again()).toEqual({ kind: "superseded" });
    await launchOf({ ...first, reply: further });
    expect(await bed().poolStore.findHeld(onDemandPartition, first.waiter.lease)).toMatchObject({
      browser: { node: nodeB },
    });
    expect(await again()).toEqual({ kind: "superseded" });
  });

  test("a launch that fails tells the caller why, and its key may ask anew", async () => {
    const first = await create({ key: "k" });
    const listener = await openMessageListener(server());
    if (first.reply.kind === "claimed")
      await bed().reports.launchFailed(first.reply.browser.id, claimOf(first.reply.browser), "no display");
    expect(await listener.heard()).toContainEqual({
      channel: `remuda:control:${controlA}`,
      message: {
        kind: "failed",
        waiter: first.waiter.id,
        connection: first.waiter.connection,
        node: "node-a",
        error: "no display",
        browser: first.reply.kind === "claimed" && first.reply.browser.id,
      },
    });
    listener.close();
    const { connection, id } = first.waiter;
    const failed = () => bed().poolStore.failedAmong(onDemandPartition, [request(), id]);
    expect(await failed()).toMatchObject([{ connection, node: "node-a", error: "no display" }]);
    expect((await create({ key: "k" })).reply.kind).toBe("claimed");
    expect(await failed()).toEqual([]);
  });
});
