import { afterAll, beforeAll, expect, test } from "vitest";
import { DaemonPlace } from "../../support/daemon/daemon-settings.js";
import { spawnDaemon } from "../../support/daemon/daemon-process.js";
import { startRedis, type TestRedis } from "../../support/store/redis.js";

const streamKey = "remuda:{audit}:auditStream";
const intentsKey = "remuda:{audit}:auditIntents";
const elevenMinutesMs = 660_000;

let redis: TestRedis;
let place: DaemonPlace;
beforeAll(async () => {
  redis = await startRedis();
  place = new DaemonPlace({
    role: "control",
    redisUrl: redis.url,
    file: { audit: { seal_period_seconds: 1 } },
  });
});
afterAll(async () => {
  await redis.stop();
  place.remove();
});

test("a change whose control is killed before its entry is there is on record all the same", async () => {
  const client = redis.client();
  const killed = await spawnDaemon(place);
  // No entry can be put there meanwhile.
  await client.set(streamKey, "in the way");
  const reply = await killed.call("POST /org/api_keys", { name: "unheard" }).catch(() => undefined);
  expect(reply?.status).toBe(503);
  await killed.end("SIGKILL");
  await client.del(streamKey);

  const intents = Object.entries(await client.hgetall(intentsKey));
  expect(intents).toHaveLength(1);
  const next = await spawnDaemon(place);
  const { body } = await next.call("GET /org/api_keys");
  expect(body).toMatchObject([{ name: "unheard" }]);
  // As if that had been long ago.
  for (const [id, text] of intents) {
    const [noted = "", ...rest] = text.split(" ");
    await client.hset(intentsKey, id, [Number(noted) - elevenMinutesMs, ...rest].join(" "));
  }
  await expect.poll(() => client.hlen(intentsKey)).toBe(0);
  const range = {
    start: new Date(Date.now() - 3_600_000).toISOString(),
    end: new Date(Date.now() + 3_600_000).toISOString(),
  };
  const found = await next.kernel().auditLogs.list({ ...range, method: "POST" });
  expect(found.getPaginatedItems()).toMatchObject([
    { path: "/org/api_keys", status: 0, user_id: "root", auth_strategy: "api_key" },
  ]);
  await next.end("SIGTERM");
  client.disconnect();
});
