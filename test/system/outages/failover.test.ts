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
    acquire_timeout_seconds: 50,
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

/** Whether an acquire is served at once. */
const isServed = async (pool: string): Promise<number> =>
  (await daemon.call(`POST /browser_pools/${pool}/acquire`, { acquire_timeout_seconds: 1 })).status;

test("a lease in use that Redis forgot in a failover goes on, and nobody else gets its browser", async () => {
  await daemon.makePool({ name: "kept", reset_on_release: "relaunch" });
  await redis.detach();
  const held = await acquire("kept", { name: "mine" });
  const client = await connectRaw(held.cdp_ws_url);
  const page = await client.attach();
  await failOver();
  expect(await isServed("kept")).toBe(204);
  expect(await client.evaluate("6 * 7", page)).toBe(42);
  expect(await isDriven(held)).toBe(42);
  expect((await daemon.call(`GET /browsers/${held.session_id}`)).body).toMatchObject({
    lease_id: held.lease_id,
  });
  const { session_id } = held;
  expect((await daemon.call("POST /browser_pools/kept/release", { session_id })).status).toBe(204);
  expect(await client.closed).toMatchObject({ code: 4410 });
  expect(await isDriven(await acquire("kept"))).toBe(42);
});

test("a lease that nobody had opened when Redis failed over is void, and the next browser another", async () => {
  await daemon.makePool({ name: "void" });
  const unopened = await acquire("void");
  await redis.detach();
  await failOver();
  const lease = await acquire("void");
  expect(lease.session_id).not.toBe(unopened.session_id);
  expect(await refusedUpgrade(unopened.cdp_ws_url)).toMatchObject({
    status: 410,
    body: { message: expect.stringContaining("unconfirmed") },
  });
  expect(await isDriven(lease)).toBe(42);
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
