import { afterEach, beforeEach, expect, test } from "vitest";
import { systemClock } from "../../src/base/clock.js";
import { startTicks } from "../../src/schedule/ticks.js";
import { connectForQueues } from "../../src/store/redis/connect.js";
import { queuePrefix } from "../../src/store/redis/keys.js";
import { silentLog } from "../support/browser/chromium-host.js";
import { startRedis, type TestRedis } from "../support/store/redis.js";

let server: TestRedis;
beforeEach(async () => {
  server = await startRedis();
});
afterEach(() => server.stop());

test("a tick that hangs, as where a disk does not answer, is begun once and keeps no other from running", async () => {
  const limitMs = 20_000;
  const connection = connectForQueues(
    { url: server.url, isCluster: false, connectTimeoutMs: limitMs, commandTimeoutMs: limitMs },
    silentLog,
  );
  let [hanging, runs] = [0, 0];
  let goOn = (): void => {};
  const hangs = new Promise<void>((resolve) => (goOn = resolve));
  const ticks = await startTicks(
    { connection, prefix: queuePrefix, log: silentLog, clock: systemClock, limitMs },
    [
      { name: "hangs", periodMs: 20, run: () => ((hanging += 1), hangs) },
      { name: "runs", periodMs: 20, run: async () => void (runs += 1) },
    ],
    { clock: systemClock, record: { ran: async () => {}, ageMs: async () => 0 } },
  );
  await expect.poll(() => [hanging, runs > 5]).toEqual([1, true]);
  goOn();
  await expect.poll(() => hanging).toBeGreaterThan(1);
  await ticks.close();
  connection.disconnect();
});

test("a full Redis takes no schedule: what frees memory there runs all the same, one at a time, and by its schedule again later", async () => {
  const limitMs = 20_000;
  const connection = connectForQueues(
    { url: server.url, isCluster: false, connectTimeoutMs: limitMs, commandTimeoutMs: limitMs },
    silentLog,
  );
  const redis = server.client();
  let [runs, looks, ranAt] = [0, 0, 0];
  let hangs = Promise.resolve();
  const record = {
    async ran() {
      await redis.set("ran", "now");
      ranAt = performance.now();
    },
    async ageMs() {
      looks += 1;
      return performance.now() - ranAt;
    },
  };
  const ticks = await startTicks(
    { connection, prefix: queuePrefix, log: silentLog, clock: systemClock, limitMs },
    [{ name: "frees", periodMs: 20, freesMemory: true, run: () => ((runs += 1), hangs) }],
    { clock: systemClock, record },
  );
  const more = async (count: () => number): Promise<void> => {
    const before = count();
    await expect.poll(() => count() - before, { timeout: limitMs }).toBeGreaterThan(3);
  };
  await more(() => runs);
  await redis.config("SET", "maxmemory-policy", "noeviction");
  await redis.config("SET", "maxmemory", "1");
  await more(() => runs);
  let goOn = (): void => {};
  hangs = new Promise((resolve) => (goOn = resolve));
  await more(() => looks);
  const begun = runs;
  await more(() => looks);
  expect(runs).toBe(begun);
  goOn();
  await more(() => runs);
  await redis.config("SET", "maxmemory", "0");
  const fullUntil = performance.now();
  await expect.poll(() => ranAt, { timeout: limitMs }).toBeGreaterThan(fullUntil);
  await more(() => runs);
  await ticks.close();
  connection.disconnect();
  redis.disconnect();
});
