import { afterEach, expect, test } from "vitest";
import { RedisTickStore } from "../../../../src/store/tick-store.js";
import { age } from "../../../support/store/age.js";
import { openStoreBed, type StoreBed } from "../../../support/store/store-bed.js";
import { startRedisPair } from "../../../support/store/redis-pair.js";
import { startRestartedRedis } from "../../../support/store/restarted-redis.js";

const undo: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const each of undo.splice(0).toReversed()) await each();
});
const gapMs = 60_000;

async function bedAt(url: string): Promise<StoreBed> {
  const bed = await openStoreBed({ url } as never, { project: "epochs" });
  undo.push(() => bed.close());
  return bed;
}

test("a Redis that is started anew within two ticks gives every node its whole time again", async () => {
  const server = await startRestartedRedis();
  undo.push(() => server.stop());
  const bed = await bedAt(server.url);
  const ticks = new RedisTickStore(bed.store);
  const first = await ticks.listen(gapMs);
  expect(first.epoch).toMatchObject({ number: 1, why: "first" });
  await age(bed.redis, "remuda:*", 30_000);
  expect((await ticks.listen(gapMs)).forMs).toBeGreaterThanOrEqual(30_000);
  await server.restart();
  expect(await ticks.listen(gapMs)).toMatchObject({ forMs: 0, epoch: { number: 2, why: "restarted" } });
  await age(bed.redis, "remuda:*", 30_000);
  const later = await ticks.listen(gapMs);
  expect(later.forMs).toBeGreaterThanOrEqual(30_000);
  expect(later.epoch.number).toBe(2);
});

test("a replica that is made the primary begins an epoch, and so does a Redis that has forgotten all", async () => {
  const pair = await startRedisPair();
  undo.push(() => pair.stop());
  const before = new RedisTickStore((await bedAt(pair.primary.url)).store);
  const { epoch } = await before.listen(gapMs);
  await pair.caughtUp();
  await pair.swap();
  const bed = await bedAt(pair.replica.url);
  const after = new RedisTickStore(bed.store);
  expect(await after.listen(gapMs)).toMatchObject({
    forMs: 0,
    epoch: { number: epoch.number + 1, why: "failover" },
  });
  await bed.redis.flushall();
  expect((await after.listen(gapMs)).epoch).toMatchObject({ number: 1, why: "first" });
});

test("another replication id of the same process begins none: a first replica gives one, and loses nothing", async () => {
  const server = await startRestartedRedis(["--enable-debug-command", "yes"]);
  undo.push(() => server.stop());
  const bed = await bedAt(server.url);
  const ticks = new RedisTickStore(bed.store);
  await ticks.listen(gapMs);
  const id = async (): Promise<string | undefined> =>
    /master_replid:(\w+)/.exec(await bed.redis.info("replication"))?.[1];
  const earlier = await id();
  await bed.redis.call("DEBUG", "CHANGE-REPL-ID");
  expect(await id()).not.toBe(earlier);
  expect((await ticks.listen(gapMs)).epoch).toMatchObject({ number: 1, why: "first" });
});
