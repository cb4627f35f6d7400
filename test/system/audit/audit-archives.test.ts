import type { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Answer, type S3Server, startS3Server } from "../../support/archive/s3-server.js";
import { DaemonPlace } from "../../support/daemon/daemon-settings.js";
import { type DaemonProcess, spawnDaemon } from "../../support/daemon/daemon-process.js";
import { startRedis, type TestRedis } from "../../support/store/redis.js";

type Mode = "well" | "silent" | "full" | "gone";
let mode: Mode = "well";
/** Requests that the store has not answered, and how many there were since the mode was changed. */
let [open, asked] = [0, 0];
let mostOpen = 0;
const moody: Answer = async (exchange, next) => {
  [open, asked] = [open + 1, asked + 1];
  mostOpen = Math.max(mostOpen, open);
  exchange.res.once("close", () => (open -= 1));
  if (mode === "well") return await next();
  if (mode === "gone") exchange.req.socket.destroy();
  if (mode === "full") return void (exchange.status = 507);
  await new Promise((ended) => exchange.res.once("close", ended));
};
const turn = (to: Mode): void => {
  [mode, asked] = [to, 0];
};

let redis: TestRedis;
let client: Redis;
let s3: S3Server;
let place: DaemonPlace;
beforeAll(async () => {
  [redis, s3] = await Promise.all([startRedis(), startS3Server([moody])]);
  client = redis.client();
  place = new DaemonPlace({
    role: "control",
    redisUrl: redis.url,
    environment: { REMUDA_S3_ACCESS_KEY_ID: "S3RVER", REMUDA_S3_SECRET_ACCESS_KEY: "S3RVER" },
    file: {
      archives: {
        s3_bucket: s3.settings.bucket,
        s3_endpoint: s3.settings.endpoint,
        s3_path_style: true,
        s3_limit_seconds: 1,
      },
      audit: { hot_bytes: 4096, segment_entries: 20, seal_period_seconds: 1 },
    },
  });
});
afterAll(async () => {
  client.disconnect();
  await s3.close();
  await redis.stop();
  place.remove();
});

const patience = { timeout: 60_000 };
const range = () => ({
  start: new Date(Date.now() - 3_600_000).toISOString(),
  end: new Date(Date.now() + 3_600_000).toISOString(),
});
const paths: string[] = [];
async function ask(daemon: DaemonProcess): Promise<void> {
  const own = Array.from({ length: 40 }, (_, at) => `/browser_pools/${mode}-${at}`);
  for (const path of own) expect((await daemon.call(`GET ${path}`)).status).toBe(404);
  paths.push(...own);
}
async function listed(daemon: DaemonProcess): Promise<string[]> {
  const found: string[] = [];
  for await (const { path } of daemon.kernel().auditLogs.list({ ...range(), search: "/browser_pools/" }))
    found.push(path);
  return found;
}
const segments = (): Promise<number> => client.zcard("remuda:{audit}:auditSegments");

test("archives that are silent, full or gone lose no entry, are asked for one at a time, and end a read in time", async () => {
  const daemon = await spawnDaemon(place);
  await ask(daemon);
  await expect.poll(segments, patience).toBeGreaterThan(0);
  for (const bad of ["silent", "full", "gone"] as const) {
    turn(bad);
    mostOpen = 0;
    await ask(daemon);
    // Several periods of sealing, each of whose attempts the client repeats.
    await expect.poll(() => asked, patience).toBeGreaterThan(3);
    const query = new URLSearchParams({ ...range(), search: "/browser_pools/well-" });
    const got = await daemon.call(`GET /audit-logs?${query.toString()}`);
    expect([got.status, got.body.code], bad).toEqual([503, "store_unavailable"]);
    // A seal and a read, and of each one that was given up and whose end the store has yet to hear of.
    expect(mostOpen, bad).toBeLessThanOrEqual(4);
  }
  const before = await segments();
  turn("well");
  await expect.poll(segments, patience).toBeGreaterThan(before + 3);
  const found = await listed(daemon);
  expect(found.toSorted()).toEqual(paths.toSorted());
  await daemon.end("SIGTERM");
}, 300_000);
