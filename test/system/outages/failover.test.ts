import { afterEach, beforeEach, expect, test } from "vitest";
import { until } from "../../support/browser/chromium-until.js";
import { type Daemon, type Lease, startDaemon } from "../../support/daemon/daemon.js";
import { refusedUpgrade } from "../../support/gateway/gateway-bed.js";
import { connectRaw } from "../../support/gateway/raw-cdp.js";
import { type RedisFailover, startRedisFailover } from "../../support/store/redis-failover.js";

let redis: RedisFailover;
let daemon: Daemon;
beforeEach(async () => {
  redis = await startRedisFailover();
  daemon = await startDaemon({ redisUrl: redis.url });
});
afterEach(async () => {
  await daemon.stop();
  await redis.stop();
});

const acquire = async (pool: string, body: object = {}): Promise<Lease> => {
  const { status, text } = await daemon.call(`POST /browser_pools/${pool}/acquire`, {
    acquire_timeout_seconds: 20,
    ...body,
  });
  if (status !== 200) throw new Error(`acquire: ${status} ${text}`);
  return JSON.parse(text) as Lease;
};
async function failOver(): Promise<void> {
  await redis.failOver();
  await until("Redis back", async () => (await daemon.call("GET /browser_pools")).status === 200);
}
const isDriven = async (lease: Lease): Promise<unknown> => {
  const client = await connectRaw(lease.cdp_ws_url);
  const answer = await client.evaluate("6 * 7", await client.attach());
  await client.close();
  return answer;
};

test("a lease that Redis forgot in a failover is cut before the next holder's first command", async () => {
  await daemon.makePool({ name: "cut" });
  await redis.detach();
  const forgotten = await acquire("cut");
  const earlier = await connectRaw(forgotten.cdp_ws_url);
  await earlier.attach();
  await failOver();
  const lease = await acquire("cut");
  expect(lease.session_id).toBe(forgotten.session_id);
  expect(lease.lease_id).not.toBe(forgotten.lease_id);
  const client = await connectRaw(lease.cdp_ws_url);
  expect(await client.evaluate("6 * 7", await client.attach())).toBe(42);
  expect(await earlier.closed).toMatchObject({ code: 4410 });
  expect(await refusedUpgrade(forgotten.cdp_ws_url)).toMatchObject({ status: 410 });
  expect(await client.evaluate("6 * 7", await client.attach())).toBe(42);
  await client.close();
});

test("between strangers, a browser that a forgotten lease has used goes to nobody", async () => {
  await daemon.makePool({ name: "strangers", reset_on_release: "relaunch" });
  await redis.detach();
  const forgotten = await acquire("strangers");
  const earlier = await connectRaw(forgotten.cdp_ws_url);
  await earlier.attach();
  await failOver();
  const lease = await until("another browser", async () => {
    const got = await acquire("strangers");
    if (got.session_id !== forgotten.session_id) return got;
    expect(await refusedUpgrade(got.cdp_ws_url)).toMatchObject({
      status: 410,
      body: { message: expect.stringContaining("not_clean") },
    });
    return undefined;
  });
  expect(await isDriven(lease)).toBe(42);
  await earlier.closed;
});

test("browsers that ended after the last write that was kept are granted no more, and the pool is whole again", async () => {
  await daemon.makePool({ name: "whole", size: 2 });
  await redis.detach();
  const ended = [await acquire("whole"), await acquire("whole")];
  for (const { session_id } of ended)
    await daemon.call("POST /browser_pools/whole/release", { session_id, reuse: false });
  const areReplaced = async (): Promise<boolean> => {
    const browsers = await daemon.browsersOf("whole");
    return (
      browsers.length === 2 &&
      browsers.every(
        ({ state, session_id }) =>
          state === "idle" && ended.every((lease) => lease.session_id !== session_id),
      )
    );
  };
  await until("their replacements", areReplaced);
  await failOver();
  await until("records and browsers in step", areReplaced);
  for (const lease of [await acquire("whole"), await acquire("whole")])
    expect(await isDriven(lease)).toBe(42);
});
