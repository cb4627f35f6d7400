import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { systemClock } from "../../src/base/clock.js";
import { startTicks } from "../../src/schedule/ticks.js";
import { connectForQueues } from "../../src/store/redis/connect.js";
import { queuePrefix } from "../../src/store/redis/keys.js";
import { silentLog } from "../support/browser/chromium-host.js";
import { until } from "../support/browser/chromium-until.js";
import { compiled } from "../support/compiled.js";
import { startRedis } from "../support/store/redis.js";

const controls = 6;
/** What a killed daemon leaves is gone by then. */
const limitMs = 60_000;

test("of the ticks that killed controls were about nothing is left where another control lives, and the schedule goes on", async () => {
  const server = await startRedis();
  onTestFinished(async () => {
    await server.stop();
  });
  const redis = server.client();
  const left = new Set<string>();
  for (let killed = 0; killed < controls; killed += 1) {
    const child = spawn(
      process.execPath,
      [join(import.meta.dirname, "../support/store/control-of-ticks.mjs"), compiled, server.url],
      { stdio: ["ignore", "pipe", "inherit"] },
    );
    await once(child.stdout, "data");
    child.kill("SIGKILL");
    await once(child, "exit");
    for (const id of await redis.lrange(`${queuePrefix}:schedule:active`, 0, -1)) left.add(id);
  }
  // A later one may have taken up what an earlier one was about.
  expect(left.size).toBeGreaterThan(1);
  const connection = connectForQueues(
    { url: server.url, isCluster: false, connectTimeoutMs: 2000, commandTimeoutMs: 2000 },
    silentLog,
  );
  let ran = 0;
  const record = { ran: async () => void (ran += 1), ageMs: async () => 0 };
  const ticks = await startTicks(
    { connection, prefix: queuePrefix, log: silentLog, clock: systemClock, limitMs: 2000 },
    [{ name: "fill", periodMs: 200, run: async () => {} }],
    { clock: systemClock, record },
  );
  const keysOf = (id: string): string => `${queuePrefix}:schedule:${id}`;
  await until(
    "nothing left",
    async () => (await redis.exists(...[...left].flatMap((id) => [keysOf(id), `${keysOf(id)}:lock`]))) === 0,
    limitMs,
  );
  const before = ran;
  await until("further ticks", () => ran > before + 2);
  // The next one, and one that may be under way.
  expect(
    (await redis.keys(`${queuePrefix}:schedule:repeat:fill:*`)).filter((key) => !key.endsWith(":lock"))
      .length,
  ).toBeLessThanOrEqual(2);
  await ticks.close();
  connection.disconnect();
  redis.disconnect();
}, 120_000);
