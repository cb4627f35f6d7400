import type { Redis } from "ioredis";
import { afterEach, beforeEach, expect, test } from "vitest";
import { DaemonClient } from "../../support/daemon/daemon.js";
import type { DaemonProcess } from "../../support/daemon/daemon-process.js";
import { Fleet } from "../../support/daemon/fleet.js";
import { openRedisProxy, type RedisProxy } from "../../support/store/redis-proxy.js";

let fleet: Fleet;
let redis: Redis;
/** The second control's way to Redis. */
let proxy: RedisProxy;
let controls: readonly [DaemonProcess, DaemonProcess];
beforeEach(async () => {
  fleet = await Fleet.open();
  redis = fleet.redis.client();
  proxy = await openRedisProxy(fleet.redis.url);
  controls = [await fleet.control(), await fleet.control({}, proxy.url)];
});
afterEach(async () => {
  redis.disconnect();
  await fleet.close();
  await proxy.close();
});

const redisNow = async (): Promise<number> => {
  const [seconds, micros] = await redis.time();
  return Number(seconds) * 1000 + Math.floor(Number(micros) / 1000);
};

/** A key that was rotated, and its successor. */
async function rotate() {
  const { body: old } = await controls[0].call("POST /org/api_keys", { name: "rotated" });
  const { body: next } = await controls[0].call(`POST /org/api_keys/${old.id}/rotate`, { expire_in_days: 1 });
  return { id: String(old.id), old: String(old.key), next: String(next.key) };
}

/**
 * Its grace ends in a second, by Redis's clock, as the rotation would have written it a day before; gives
 * when.
 */
async function endSoon(id: string): Promise<number> {
  const at = (await redisNow()) + 1000;
  const key = JSON.parse((await redis.hget("remuda:{access}:apiKeys", id)) ?? "{}") as { digest: string };
  await redis
    .multi()
    .hset("remuda:{access}:apiKeys", id, JSON.stringify({ ...key, expiresAt: at }))
    .hset("remuda:{access}:keyDigests", key.digest, `${id} ${at}`)
    .zadd("remuda:{access}:keyEnds", at, id)
    .exec();
  return at;
}

/** Asks with a key at both controls without a pause until it is told to stop; gives the statuses. */
function keepAsking(key: string) {
  const state = { isOver: false };
  const statuses: number[] = [];
  const ask = async (url: string): Promise<void> => {
    while (!state.isOver) {
      const { status } = await new DaemonClient(url, key)
        .call("GET /auth/context")
        .catch(() => ({ status: 0 }));
      statuses.push(status);
    }
  };
  const asking = Promise.all(controls.map(({ url }) => ask(url)));
  return {
    async stop(): Promise<ReadonlySet<number>> {
      state.isOver = true;
      await asking;
      return new Set(statuses);
    },
  };
}

const answersTo = (key: string): Promise<readonly number[]> =>
  Promise.all(
    controls.map(async ({ url }) => (await new DaemonClient(url, key).call("GET /auth/context")).status),
  );

/** What stands still from before the end of the grace until after it. */
const faults: readonly (readonly [string, () => () => unknown])[] = [
  ["Redis", () => (fleet.redis.signal("SIGSTOP"), () => fleet.redis.signal("SIGCONT"))],
  ["a control", () => (controls[1].signal("SIGSTOP"), () => controls[1].signal("SIGCONT"))],
  ["a connection to Redis", () => (proxy.freeze(), () => proxy.thaw())],
  ["what a connection to Redis answers", () => (proxy.freeze("replies"), () => proxy.thaw())],
];

test.each(faults)(
  "a rotated key is let in until its grace is over and never after, its successor always, where %s stands still",
  async (_, stop) => {
    const { id, old, next } = await rotate();
    expect([await answersTo(old), await answersTo(next)]).toEqual([
      [200, 200],
      [200, 200],
    ]);
    const endsAt = await endSoon(id);
    const goOn = stop();
    // This clock and Redis's are one: Redis itself may stand still.
    await expect.poll(() => Date.now()).toBeGreaterThan(endsAt);
    const [late, successor] = [keepAsking(old), keepAsking(next)];
    await expect.poll(() => Date.now()).toBeGreaterThan(endsAt + 1000);
    await goOn();
    await expect.poll(() => answersTo(next)).toEqual([200, 200]);
    expect(await answersTo(old)).toEqual([401, 401]);
    // Where Redis does not answer in time, nobody is let in, and nobody is told that a good key is none.
    for (const status of await late.stop()) expect([401, 503]).toContain(status);
    for (const status of await successor.stop()) expect([200, 503]).toContain(status);
  },
);

test("a request that came before the end of a grace, and is judged after it, is refused", async () => {
  const { id, old, next } = await rotate();
  const endsAt = await endSoon(id);
  fleet.redis.signal("SIGSTOP");
  const asked = [old, next].map((key) => new DaemonClient(controls[1].url, key).call("GET /auth/context"));
  await expect.poll(() => Date.now()).toBeGreaterThan(endsAt);
  fleet.redis.signal("SIGCONT");
  const [late, successor] = await Promise.all(asked);
  expect([401, 503]).toContain(late?.status);
  expect([200, 503]).toContain(successor?.status);
});
