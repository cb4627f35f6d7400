import { beforeEach, expect, onTestFinished } from "vitest";
import { until } from "../../support/browser/chromium-until.js";
import type { Lease } from "../../support/daemon/daemon.js";
import type { DaemonProcess } from "../../support/daemon/daemon-process.js";
import { refusedUpgrade } from "../../support/gateway/gateway-bed.js";
import { connectRaw, type RawCdp } from "../../support/gateway/raw-cdp.js";
import { type RedisFailover, startRedisFailover } from "../../support/store/redis-failover.js";
import { useFaultBed } from "../../support/faults/bed.js";
import { fault, startWatch } from "../../support/faults/fault.js";

const bed = useFaultBed();
let redis: RedisFailover;
let control: DaemonProcess;
beforeEach(async () => {
  redis = await startRedisFailover();
  onTestFinished(() => redis.stop());
  control = await bed.start("control", {}, { redisUrl: redis.url });
  await bed.start("node", {}, { redisUrl: redis.url });
});

const acquire = async (): Promise<Lease> => {
  const { status, body, text } = await control.call("POST /browser_pools/herd/acquire", {
    acquire_timeout_seconds: 20,
  });
  if (status !== 200) throw new Error(`acquire: ${status} ${text}`);
  return body as Lease;
};
/** How long Redis was away for callers. */
async function failOver(): Promise<number> {
  const watch = startWatch();
  await redis.failOver();
  await until("Redis back", async () => (await control.call("GET /browser_pools")).status === 200);
  return watch.since();
}
const answerOf = async (client: RawCdp): Promise<unknown> =>
  await client.evaluate("6 * 7", await client.attach());

fault("Redis fails over and forgets a lease that is in use: it goes on", async (tell) => {
  await control.makePool({ name: "herd" });
  await redis.detach();
  const held = await acquire();
  const client = await connectRaw(held.cdp_ws_url);
  const page = await client.attach();
  const recoveryMs = await failOver();
  const another = await control.call("POST /browser_pools/herd/acquire", { acquire_timeout_seconds: 2 });
  expect(another.status).toBe(204);
  expect(await client.evaluate("6 * 7", page)).toBe(42);
  const second = await connectRaw(held.cdp_ws_url);
  expect(await answerOf(second)).toBe(42);
  await second.close();
  const { session_id } = held;
  expect((await control.call("POST /browser_pools/herd/release", { session_id })).status).toBe(204);
  expect(await client.closed).toMatchObject({ code: 4410 });
  tell({ saw: "204 for who asked for its browser; its client and its URL go on", recoveryMs });
});

fault("Redis fails over, and nobody had opened a lease yet: it is void", async (tell) => {
  await control.makePool({ name: "herd" });
  const unopened = await acquire();
  await redis.detach();
  await failOver();
  const watch = startWatch();
  const lease = await acquire();
  const recoveryMs = watch.since();
  expect(lease.session_id).not.toBe(unopened.session_id);
  expect(await refusedUpgrade(unopened.cdp_ws_url)).toMatchObject({
    status: 410,
    body: { message: expect.stringContaining("unconfirmed") },
  });
  const client = await connectRaw(lease.cdp_ws_url);
  expect(await answerOf(client)).toBe(42);
  await client.close();
  tell({ saw: "410 with the reason `unconfirmed`; another browser", recoveryMs });
});

fault("Redis fails over and has browsers idle again that have ended since", async (tell) => {
  await control.makePool({ name: "herd", size: 2 });
  await redis.detach();
  const ended = [await acquire(), await acquire()];
  for (const { session_id } of ended)
    await control.call("POST /browser_pools/herd/release", { session_id, reuse: false });
  const areReplaced = async (): Promise<boolean> => {
    const browsers = await control.browsersOf("herd");
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
  const watch = startWatch();
  await until("records and browsers in step", areReplaced);
  const recoveryMs = watch.since();
  for (const { cdp_ws_url } of [await acquire(), await acquire()]) {
    const client = await connectRaw(cdp_ws_url);
    expect(await answerOf(client)).toBe(42);
    await client.close();
  }
  tell({ saw: "none of them once records and browsers are in step; a full pool", recoveryMs });
});
