import { afterEach, beforeEach, expect, test } from "vitest";
import { type Clock, systemClock } from "../../src/base/clock.js";
import { yieldTurn } from "../../src/base/yield-turn.js";
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

test("a chain of ticks that was lost is looked for once an hour at least, and one look at a time", async () => {
  const limitMs = 20_000;
  const connection = connectForQueues(
    { url: server.url, isCluster: false, connectTimeoutMs: limitMs, commandTimeoutMs: limitMs },
    silentLog,
  );
  const looks: { readonly periodMs: number; readonly begin: () => void }[] = [];
  const every: Clock["every"] = (periodMs, begin) => {
    looks.push({ periodMs, begin });
    return () => {};
  };
  const told: ((ageMs: number) => void)[] = [];
  const ageMs = (): Promise<number> => new Promise((resolve) => void told.push(resolve));
  const ticks = await startTicks(
    { connection, prefix: queuePrefix, log: silentLog, clock: systemClock, limitMs },
    [60 * 24 * 3_600_000, 1000].map((periodMs) => ({ name: `${periodMs}`, periodMs, run: async () => {} })),
    { clock: { ...systemClock, every }, record: { ran: async () => {}, ageMs } },
  );
  expect(looks.map(({ periodMs }) => periodMs)).toEqual([3_600_000, 3000]);
  for (let round = 0; round < 3; round += 1) looks[0]?.begin();
  expect(told).toHaveLength(1);
  told[0]?.(0);
  await yieldTurn();
  looks[0]?.begin();
  expect(told).toHaveLength(2);
  told[1]?.(0);
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
