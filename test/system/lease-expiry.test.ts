import { afterAll, beforeAll, expect, test } from "vitest";
import { until } from "../support/browser/chromium-until.js";
import { type Daemon, type Lease, startDaemon } from "../support/daemon/daemon.js";
import { connectRaw } from "../support/gateway/raw-cdp.js";

let daemon: Daemon;
beforeAll(async () => {
  daemon = await startDaemon();
});
afterAll(() => daemon.stop());

const acquire = async (): Promise<Lease> => {
  const got = await daemon.call("POST /browser_pools/expire/acquire", { acquire_timeout_seconds: 50 });
  expect(got.status, got.text).toBe(200);
  return got.body as Lease;
};
const statusOf = async ({ session_id: id }: Lease): Promise<number> =>
  (await daemon.call(`GET /browsers/${id}`)).status;

test("a lease ends when it was inactive for its time: never early, never while a client is connected, and counted anew from the last one's end", async () => {
  await daemon.makePool({ name: "expire", size: 3, timeout_seconds: 10 });
  // Each moment is taken before what it counts from has happened.
  const from = performance.now();
  const [used, unused, left] = [await acquire(), await acquire(), await acquire()];
  const [holder, leaving] = [await connectRaw(used.cdp_ws_url), await connectRaw(left.cdp_ws_url)];
  const endOf = async (lease: Lease): Promise<number> => {
    await until("the lease over", async () => (await statusOf(lease)) === 404);
    return performance.now();
  };
  const leave = async (): Promise<number> => {
    await leaving.evaluate("new Promise((resolve) => setTimeout(resolve, 3000))", await leaving.attach());
    const at = performance.now();
    await leaving.close();
    return at;
  };
  const leftAt = leave();
  const unusedEnd = await endOf(unused);
  expect(unusedEnd - from).toBeGreaterThan(9900);
  const leftEnd = await endOf(left);
  expect(leftEnd - (await leftAt)).toBeGreaterThan(9900);
  expect(await statusOf(used)).toBe(200);
  expect((await holder.send("Browser.getVersion")).result).toBeDefined();
  expect((await daemon.call(`GET /browsers/${unused.session_id}?include_deleted=true`)).body).toMatchObject({
    reason: "expired",
  });
  await daemon.poolWhen("expire", (pool) => pool.available_count === 2 && pool.acquired_count === 1);
  await holder.close();
});
