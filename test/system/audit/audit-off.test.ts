import { afterAll, beforeAll, expect, test } from "vitest";
import { spawnDaemon } from "../../support/daemon/daemon-process.js";
import { DaemonPlace } from "../../support/daemon/daemon-settings.js";
import { startRedis, type TestRedis } from "../../support/store/redis.js";

let redis: TestRedis;
const places: DaemonPlace[] = [];
const placeOf = (file: object): DaemonPlace => {
  const place = new DaemonPlace({ role: "control", redisUrl: redis.url, file: { ...file } });
  places.push(place);
  return place;
};
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(async () => {
  await redis.stop();
  for (const place of places) place.remove();
});

const range = (): string =>
  new URLSearchParams({
    start: new Date(Date.now() - 3_600_000).toISOString(),
    end: new Date(Date.now() + 3_600_000).toISOString(),
  }).toString();

test("a daemon without audit log records nothing, changes keys all the same, and reads what others record", async () => {
  const [silent, telling] = [
    await spawnDaemon(placeOf({ audit: { enabled: false } })),
    await spawnDaemon(placeOf({})),
  ];
  const { status, body } = await silent.call("POST /org/api_keys", { name: "made" });
  expect(status).toBe(201);
  expect((await silent.call("GET /browser_pools/of-nobody")).status).toBe(404);
  expect((await silent.call(`DELETE /org/api_keys/${String(body.id)}`)).status).toBe(204);
  expect((await telling.call("GET /browser_pools/of-somebody")).status).toBe(404);
  const entries = async () => {
    const listed = await silent.call(`GET /audit-logs?${range()}`);
    return (listed.body as unknown as { path: string }[]).map(({ path }) => path);
  };
  await expect.poll(entries).toEqual(["/browser_pools/of-somebody"]);
  const { text } = await silent.call("GET /metrics");
  expect(text).toMatch(/remuda_audit_entries_total 0/);
  await silent.end("SIGTERM");
  await telling.end("SIGTERM");
  // What was recorded while nobody looked is there by now.
  const client = redis.client();
  expect(await client.hlen("remuda:{audit}:auditIntents")).toBe(0);
  await client.quit();
});
