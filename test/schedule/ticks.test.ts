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
