import { afterAll, beforeAll, expect, test } from "vitest";
import { type Daemon, type Lease, startDaemon } from "../support/daemon/daemon.js";
import { startRedis, type TestRedis } from "../support/store/redis.js";

let redis: TestRedis;
let daemon: Daemon;
beforeAll(async () => {
  redis = await startRedis({ cluster: true });
  daemon = await startDaemon({ redisUrl: redis.clusterUrl, file: { redis: { cluster: true } } });
});
afterAll(async () => {
  await daemon.stop();
  await redis.stop();
});

test("a daemon on a Redis Cluster fills, lends, takes back, replaces, updates and deletes: no command crosses slots", async () => {
  await daemon.makePool({ name: "slots", size: 2 });
  const { status, body } = await daemon.call("POST /browser_pools/slots/acquire", {
    name: "mine",
    acquire_timeout_seconds: 30,
  });
  expect(status).toBe(200);
  const { session_id, lease_id } = body as Lease;
  expect((await daemon.call("GET /browsers/mine")).status).toBe(200);
  expect(
    (await daemon.call("POST /browser_pools/slots/release", { session_id, lease_id, reuse: false })).status,
  ).toBe(204);
  await daemon.poolWhen("slots", (pool) => pool.available_count === 2);
  expect((await daemon.call("PATCH /browser_pools/slots", { size: 1, name: "other" })).status).toBe(200);
  expect((await daemon.call("GET /browsers?status=deleted")).body).toMatchObject([
    { session_id, reason: "released" },
  ]);
  expect((await daemon.call("POST /browser_pools/other/flush")).status).toBe(204);
  await daemon.poolWhen("other", (pool) => pool.available_count === 1);
  expect((await daemon.call("DELETE /browser_pools/other")).status).toBe(204);
  expect(daemon.log).not.toMatch(/CROSSSLOT|MOVED/);
});
