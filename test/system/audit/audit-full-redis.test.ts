import { expect, test } from "vitest";
import { spawnDaemon } from "../../support/daemon/daemon-process.js";
import { DaemonPlace } from "../../support/daemon/daemon-settings.js";
import { startRedis } from "../../support/store/redis.js";

const streamKey = "remuda:{audit}:auditStream";
const daysMs = 86_400_000;

test("a Redis without memory has the old part of its log sealed by a daemon all the same", async () => {
  const redis = await startRedis();
  const client = redis.client();
  const place = new DaemonPlace({
    role: "control",
    redisUrl: redis.url,
    file: { audit: { seal_period_seconds: 1 } },
  });
  const daemon = await spawnDaemon(place);
  const at = Date.now() - 3 * daysMs;
  const row = JSON.stringify(["api_key", "root", "", 200, "GET", "/old", "/old", "", 1, "", ""]);
  await client.config("SET", "maxmemory-policy", "noeviction");
  await client
    .multi()
    .xadd(streamKey, `${at}-1`, "at", String(at), "entry", row)
    .config("SET", "maxmemory", "1")
    .exec();
  await expect.poll(() => client.xlen(streamKey), { timeout: 60_000 }).toBe(0);
  await expect(client.set("remuda:more", "")).rejects.toThrow(/OOM/);
  await client.config("SET", "maxmemory", "0");
  const range = { start: new Date(at - daysMs).toISOString(), end: new Date(at + daysMs).toISOString() };
  const found = await daemon.kernel().auditLogs.list(range);
  expect(found.getPaginatedItems()).toMatchObject([{ path: "/old" }]);
  await daemon.end("SIGTERM");
  client.disconnect();
  await redis.stop();
  place.remove();
}, 120_000);
