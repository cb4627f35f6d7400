import { expect, onTestFinished, test } from "vitest";
import { age } from "../../../support/store/age.js";
import { nodeFacts } from "../../../support/store/node-facts.js";
import { onBoth } from "../../../support/store/on-both.js";
import { nodeA, nodeB } from "../../../support/store/pool-bed.js";
import { startRedis } from "../../../support/store/redis.js";
import { openRedisProxy } from "../../../support/store/redis-proxy.js";
import { openStoreBed } from "../../../support/store/store-bed.js";

onBoth("drains that nodes were asked for", ({ bed }) => {
  const draining = async (): Promise<readonly string[]> =>
    (await bed().redis.hkeys("remuda:{nodes}:drains")).toSorted();
  /** Only the second node beats meanwhile; what is lost is forgotten. */
  const passHours = async (hours: number): Promise<void> => {
    const { nodes, redis } = bed();
    await age(redis, "remuda:{nodes}:*", hours * 3_600_000);
    await nodes.beat(nodeFacts(nodeB));
    for (const node of await nodes.lost()) await nodes.forgetLost(node);
  };

  test("one of a node that is gone is kept for a day after its end, one of a node that lives as long as it does", async () => {
    const { nodes } = bed();
    for (const node of [nodeA, nodeB]) {
      await nodes.beat(nodeFacts(node));
      await nodes.drain(node, 60_000);
    }
    await passHours(12);
    expect(await nodes.known()).toEqual([nodeB]);
    expect(await draining()).toEqual([nodeA, nodeB]);
    await passHours(13);
    expect(await draining()).toEqual([nodeB]);
    expect(await nodes.living()).toMatchObject([{ id: nodeB, isDraining: true, isStopping: false }]);
  });

  test("one of a node that stops, or starts anew, goes with what it was before", async () => {
    const { nodes } = bed();
    for (const ended of [() => nodes.forget(nodeA), () => nodes.endDrain(nodeA)]) {
      await nodes.beat(nodeFacts(nodeA));
      await nodes.drain(nodeA, 3_600_000);
      expect(await nodes.beat(nodeFacts(nodeA))).toMatchObject({ drainMs: expect.any(Number) as unknown });
      await ended();
      expect(await draining()).toEqual([]);
      expect(await nodes.beat(nodeFacts(nodeA))).toEqual({ kind: "accepted" });
    }
  });
});

test("the end of one is told as done, though Redis's answer was lost and it was asked for again", async () => {
  const redis = await startRedis();
  const proxy = await openRedisProxy(redis.url);
  const { nodes, close } = await openStoreBed(
    { ...redis, url: proxy.url },
    { project: "lost-answer", commandTimeoutMs: 3000 },
  );
  onTestFinished(async () => {
    await close();
    await proxy.close();
    await redis.stop();
  });
  await nodes.beat(nodeFacts(nodeA));
  await nodes.drain(nodeA, 60_000);
  const lost = proxy.freezeAt("hdel", "replies");
  const ended = nodes.endDrain(nodeA);
  await lost;
  expect(await ended).toBe(true);
  expect(await nodes.endDrain(nodeA)).toBe(false);
});
