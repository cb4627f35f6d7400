import type { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test } from "vitest";
import { until } from "../../support/browser/chromium-until.js";
import { type Daemon, startDaemon } from "../../support/daemon/daemon.js";
import { pictureOf } from "../../support/store/picture.js";
import { startRedis, type TestRedis } from "../../support/store/redis.js";
import { answering, OtlpReceiver, type ReceivedRecord } from "../../support/telemetry/otlp-receiver.js";

const secret = "Bearer key-of-the-collector-of-this-suite";
const path = "/telemetry/destinations";
let redis: TestRedis;
let client: Redis;
let daemon: Daemon;
let receiver: OtlpReceiver;
let destination: string;
beforeAll(async () => {
  [redis, receiver] = await Promise.all([startRedis(), new OtlpReceiver().start()]);
  client = redis.client();
  daemon = await startDaemon({
    redisUrl: redis.url,
    file: { telemetry: { export: { private_hosts: ["127.0.0.1"], delay_ms: 20 } } },
  });
  const headers = { authorization: secret };
  const made = await daemon.call(`POST ${path}`, { name: "collector", endpoint: receiver.url, headers });
  destination = made.body.id;
});
afterAll(async () => {
  await daemon.stop();
  client.disconnect();
  await Promise.all([redis.stop(), receiver.close()]);
});

/** Calls that manage a browser are told to its holder. */
const platform = { platform: { enabled: true } };
const exporting = (otlp: object) => ({ browser: platform, export: { otlp } });
const rename = (session: string, name: string) => daemon.call(`PATCH /browsers/${session}`, { name });
const ofSession = (session: string): ReceivedRecord[] =>
  receiver.records.filter(({ resource }) => resource["session.id"] === session);
const arrive = (session: string, count: number): Promise<ReceivedRecord[]> =>
  until(`${count} records of ${session}`, () =>
    ofSession(session).length >= count ? ofSession(session) : undefined,
  );

test("what happens in a pool's browsers goes where the pool, a lease or a PATCH says, and no further", async () => {
  await daemon.makePool({ name: "herd", telemetry: exporting({ destination: { name: "collector" } }) });
  const config = (await daemon.call("GET /browser_pools/herd")).body.browser_pool_config;
  expect(config.telemetry.export).toEqual({ otlp: { destination } });
  const { body: lease } = await daemon.call("POST /browser_pools/herd/acquire", {
    acquire_timeout_seconds: 30,
  });
  const { session_id: session } = lease;
  expect(lease.telemetry.export).toEqual({ otlp: { destination } });
  await rename(session, "one");
  const [record] = await arrive(session, 1);
  const pool = (await daemon.call("GET /browser_pools/herd")).body.id;
  expect(record).toMatchObject({
    type: "platform_api_call",
    body: { operation_id: "updateBrowser", status: 200 },
    attributes: { "remuda.event.seq": 1 },
    resource: {
      "session.id": session,
      "remuda.lease.id": lease.lease_id,
      "remuda.pool.id": pool,
      "remuda.pool.name": "herd",
      "remuda.project.id": "default",
    },
  });
  expect(receiver.requests[0]?.headers.authorization).toBe(secret);
  const off = { export: { otlp: { enabled: false } } };
  const patched = await daemon.call(`PATCH /browsers/${session}`, { telemetry: off });
  expect(patched.body.telemetry.export).toEqual(off.export);
  await rename(session, "two");
  // What another lease sends there comes after whatever this one would have sent.
  await daemon.call("POST /browser_pools/herd/release", { session_id: session });
  await daemon.poolWhen("herd", ({ available_count: idle }) => idle === 1);
  const other = (await daemon.call("POST /browser_pools/herd/acquire", { acquire_timeout_seconds: 30 })).body;
  await rename(other.session_id, "three");
  await until("the other lease's", () => ofLease(other.lease_id).length > 0);
  // The change by which the export was switched off is the last that is told there.
  expect(ofLease(lease.lease_id).map(({ body }) => body)).toMatchObject([
    { operation_id: "updateBrowser" },
    { operation_id: "updateBrowser" },
  ]);
  await daemon.call("POST /browser_pools/herd/release", { session_id: other.session_id });
});
const ofLease = (lease: string): ReceivedRecord[] =>
  receiver.records.filter(({ resource }) => resource["remuda.lease.id"] === lease);

test("a destination in use is not deleted: neither while a pool names it nor while a session exports there", async () => {
  const { body: pool } = await daemon.call("GET /browser_pools/herd");
  const remove = () => daemon.call(`DELETE ${path}/collector`);
  const inUse = (...users: string[]) => ({
    status: 409,
    body: {
      code: "otlp_destination_in_use",
      details: users.map((message) => ({ code: "resource_in_use", message })),
    },
  });
  await daemon.poolWhen("herd", ({ available_count: idle }) => idle === 1);
  expect(await remove()).toMatchObject(inUse(`pool herd (${pool.id})`));
  const acquired = await daemon.call("POST /browser_pools/herd/acquire", {
    telemetry: exporting({ enabled: true, destination: { id: destination } }),
  });
  const session = `session ${acquired.body.session_id}`;
  await daemon.call("PATCH /browser_pools/herd", { telemetry: { enabled: false } });
  expect(await remove()).toMatchObject(inUse(session));
  await daemon.call("POST /browser_pools/herd/release", { session_id: acquired.body.session_id });
  expect(await daemon.call(`GET ${path}/collector`)).toMatchObject({ status: 200 });
});

test("an unknown destination is refused wherever it is named, and nothing is changed", async () => {
  const telemetry = exporting({ destination: { name: "nobody" } });
  const refused = {
    status: 400,
    body: {
      code: "bad_request",
      details: [
        { message: 'telemetry.export.otlp.destination: there is no OTLP destination named "nobody"' },
      ],
    },
  };
  expect(await daemon.call("POST /browser_pools", { size: 1, telemetry })).toMatchObject(refused);
  expect(await daemon.call("PATCH /browser_pools/herd", { telemetry })).toMatchObject(refused);
  expect(await daemon.call("POST /browsers", { telemetry })).toMatchObject(refused);
  expect(await daemon.call("POST /browser_pools/herd/acquire", { telemetry })).toMatchObject(refused);
});

test("a collector that refuses is told of at its destination; no value of a header is anywhere", async () => {
  receiver.answer = answering(403);
  const { body: lease } = await daemon.call("POST /browser_pools/herd/acquire", {
    acquire_timeout_seconds: 50,
    telemetry: exporting({ destination: { name: "collector" } }),
  });
  await rename(lease.session_id, "four");
  const read = async () => (await daemon.call(`GET ${path}/collector`)).body;
  const shown = await until("a failure", async () =>
    (await read()).consecutive_failures > 0 ? await read() : undefined,
  );
  expect(shown).toMatchObject({
    last_error: "The collector refused what was sent: 403",
    last_error_at: expect.any(String),
    last_export_at: expect.any(String),
  });
  const metrics = (await daemon.call("GET /metrics")).text;
  expect(metrics).toMatch(/remuda_telemetry_exported_total [1-9]/);
  expect(metrics).toMatch(/remuda_telemetry_export_lost_total\{reason="failed"\} [1-9]/);
  const keys = await client.keys("*");
  const everything = (await Promise.all(keys.map((key) => pictureOf(client, key)))).join("\n");
  for (const text of [everything, daemon.log, metrics, JSON.stringify(shown)]) {
    expect(text).not.toContain(secret);
    expect(text).not.toContain(Buffer.from(secret).toString("base64"));
  }
  await daemon.call("POST /browser_pools/herd/release", { session_id: lease.session_id });
});
