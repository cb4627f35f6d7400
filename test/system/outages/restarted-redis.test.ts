import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { type FakeChromium, makeFakeChromium, standIn } from "../../support/browser/chromium-fake.js";
import { until } from "../../support/browser/chromium-until.js";
import { type Lease, startDaemon } from "../../support/daemon/daemon.js";
import { connectRaw } from "../../support/gateway/raw-cdp.js";
import { startRestartedRedis } from "../../support/store/restarted-redis.js";

/** The rights that docs/deployment.md shows, here those of the user that needs no password. */
const least =
  "--user default on nopass resetkeys ~remuda:* resetchannels &remuda:* -@all +@read +@write +@connection " +
  "+@pubsub +@scripting +@transaction -@dangerous +info +role +time +client|kill";

let fake: FakeChromium;
beforeAll(async () => {
  fake = await makeFakeChromium();
});
afterAll(() => fake.remove());

test.each([
  ["a Redis", []],
  ["a Redis that gives Remuda the least rights", least.split(" ")],
])("%s that is killed and started anew on its append-only file has lost nothing", async (_, more) => {
  // Redis may put a write off by default, and answer before, while the disk is slow (docs/faults.md).
  const redis = await startRestartedRedis(["--appendfsync", "always", ...more]);
  onTestFinished(() => redis.stop());
  const daemon = await startDaemon({
    redisUrl: redis.url,
    file: {
      ...standIn(fake),
      // A busy disk is no fault.
      redis: { command_timeout_ms: 20_000 },
      periods: { fill_ms: 100, reap_ms: 100 },
    },
  });
  onTestFinished(() => daemon.stop());
  await daemon.makePool({ name: "herd", size: 2 });
  const acquire = async (name: string) =>
    daemon.call("POST /browser_pools/herd/acquire", { name, acquire_timeout_seconds: 30 });
  const opened = (await acquire("opened")).body as Lease;
  const client = await connectRaw(opened.cdp_ws_url);
  const unopened = (await acquire("unopened")).body as Lease;
  const waiting = daemon.call("POST /browser_pools/herd/acquire", { acquire_timeout_seconds: 45 });
  await daemon.poolWhen("herd", (pool) => pool.waiting_count === 1);
  await redis.restart();
  await until("the epoch seen", () => daemon.log.includes("another epoch of Redis has begun"));
  expect(await daemon.poolWhen("herd", (pool) => pool.waiting_count === 1)).toMatchObject({
    acquired_count: 2,
  });
  for (const { session_id, lease_id } of [opened, unopened])
    expect((await daemon.call(`GET /browsers/${session_id}`)).body).toMatchObject({ lease_id });
  expect(await client.send("Browser.getVersion")).toBeDefined();
  await (await connectRaw(unopened.cdp_ws_url)).close();
  const released = await daemon.call("POST /browser_pools/herd/release", { session_id: opened.session_id });
  expect(released.status).toBe(204);
  expect((await client.closed).code).toBe(4410);
  expect(await waiting).toMatchObject({ status: 200, body: { session_id: opened.session_id } });
  // The queues of launches are there as well.
  await daemon.makePool({ name: "later", size: 1 });
  const faults = daemon.log.split("\n").filter((line) => /NOPERM|node lost/.test(line));
  expect(faults).toEqual([]);
});
