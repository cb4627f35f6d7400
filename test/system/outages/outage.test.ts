import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { processesOf } from "../../support/browser/browser-processes.js";
import { until } from "../../support/browser/chromium-until.js";
import { type Daemon, type Lease, startDaemon } from "../../support/daemon/daemon.js";
import { connectRaw } from "../../support/gateway/raw-cdp.js";
import { key } from "../../support/http/http-server.js";
import { scrape } from "../../support/http/scrape.js";
import { age } from "../../support/store/age.js";
import { openRedisProxy, type RedisProxy } from "../../support/store/redis-proxy.js";
import { startRedis, type TestRedis } from "../../support/store/redis.js";
import { signal } from "../../support/living.js";

let redis: TestRedis;
let proxy: RedisProxy;
let daemon: Daemon;
beforeAll(async () => {
  redis = await startRedis();
  proxy = await openRedisProxy(redis.url);
  daemon = await startDaemon({ redisUrl: proxy.url });
});
afterAll(async () => {
  await daemon.stop();
  await proxy.close();
  await redis.stop();
});

const acquire = async (pool: string, body: object = {}): Promise<Lease> =>
  (await daemon.call(`POST /browser_pools/${pool}/acquire`, { acquire_timeout_seconds: 30, ...body }))
    .body as Lease;
const isBack = (): Promise<unknown> =>
  until("Redis back", async () => (await daemon.call("GET /browser_pools")).status === 200);

/** A Redis of one test's own, behind a proxy. */
async function openOwn(): Promise<{ own: TestRedis; way: RedisProxy }> {
  const own = await startRedis();
  const way = await openRedisProxy(own.url);
  onTestFinished(async () => {
    await way.close();
    await own.stop();
  });
  return { own, way };
}

test("while Redis is away the API says so and clients go on; when it is back, leases and pools are as they were", async () => {
  await daemon.makePool({ name: "through", size: 2 });
  const lease = await acquire("through", { name: "held" });
  const idle = (await daemon.browsersOf("through")).find(({ state }) => state === "idle")?.session_id;
  const client = await connectRaw(lease.cdp_ws_url);
  const page = await client.attach();
  await proxy.cut();
  const refused = await daemon.call("POST /browser_pools/through/acquire", {});
  expect(refused).toMatchObject({ status: 503, body: { code: "store_unavailable" } });
  expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
  for (const operation of [
    "GET /browser_pools",
    "GET /browsers",
    "POST /browsers",
    "POST /browser_pools",
    "DELETE /browsers/held",
  ]) {
    const body = operation.startsWith("POST") ? { size: 1, headless: true } : undefined;
    expect(
      (await daemon.call(operation, operation === "POST /browsers" ? { headless: true } : body)).status,
      operation,
    ).toBe(503);
  }
  // A client has come under this lease before.
  const newcomer = await connectRaw(lease.cdp_ws_url);
  expect(await newcomer.send("Browser.getVersion")).toHaveProperty("result");
  await newcomer.close();
  for (const path of ["/healthz", "/readyz"]) expect((await fetch(daemon.url + path)).status, path).toBe(200);
  expect((await daemon.call("GET /metrics")).text).toContain("remuda_store_up 0");
  // Longer than it takes for a node to count as lost.
  expect(
    await client.evaluate("new Promise((resolve) => setTimeout(() => resolve('still here'), 4000))", page),
  ).toBe("still here");
  await proxy.restore();
  await isBack();
  expect((await daemon.call("GET /browsers/held")).body).toMatchObject({ lease_id: lease.lease_id });
  expect(await client.evaluate("6 * 7", page)).toBe(42);
  const next = await acquire("through", { acquire_timeout_seconds: 50 });
  expect(next.session_id).toBe(idle);
  await daemon.call("POST /browser_pools/through/release", { session_id: lease.session_id });
  await client.closed;
  await daemon.poolWhen("through", (pool) => pool.available_count === 1 && pool.acquired_count === 1);
  expect(daemon.log).not.toContain("node lost");
});

test("while Redis is away a scrape by another name than loopback's says so, though requests have a rate", async () => {
  const { way } = await openOwn();
  const name = "remuda.example";
  const limited = await startDaemon({
    role: "control",
    redisUrl: way.url,
    // There every name asks for a key.
    file: { server: { host: "0.0.0.0" }, limits: { requests_per_minute: 600 } },
  });
  expect((await scrape(limited.url, name, key)).text).toContain("remuda_store_up 1");
  await way.cut();
  const { status, text } = await scrape(limited.url, name, key);
  expect([status, text]).toEqual([200, expect.stringContaining("remuda_store_up 0")]);
  await way.restore();
  await limited.stop();
});

test("a browser that dies while Redis is away is replaced when it is back", async () => {
  await daemon.makePool({ name: "dead" });
  const session = (await daemon.browsersOf("dead"))[0]?.session_id ?? "";
  const { main } = await processesOf(daemon.place.scratchDirectory, session);
  await proxy.cut();
  signal(main, "SIGKILL");
  await until("the crash noticed", () =>
    daemon.log.split("\n").some((line) => line.includes(session) && line.includes("browser crashed")),
  );
  await proxy.restore();
  await isBack();
  await until("a replacement", async () => {
    const browsers = await daemon.browsersOf("dead");
    return browsers.length === 1 && browsers[0]?.session_id !== session && browsers[0]?.state === "idle";
  });
});

test("an acquire that waits through an outage is answered", async () => {
  await daemon.makePool({ name: "wait" });
  const held = await acquire("wait");
  const waiting = daemon.call("POST /browser_pools/wait/acquire", { acquire_timeout_seconds: 50 });
  await daemon.poolWhen("wait", (pool) => pool.waiting_count === 1);
  await proxy.cut();
  await proxy.restore();
  await isBack();
  expect(
    (await daemon.call("POST /browser_pools/wait/release", { session_id: held.session_id })).status,
  ).toBe(204);
  expect(await waiting).toMatchObject({ status: 200, body: { session_id: held.session_id } });
});

test("an outage longer than a node or a control may be silent ends no lease and costs no waiter its place", async () => {
  const { way } = await openOwn();
  // Ticks come back before beats do.
  const patient = await startDaemon({
    redisUrl: way.url,
    file: {
      node: { id: "patient", beat_period_ms: 2000, lost_after_ms: 4500 },
      acquire: { control_beat_period_ms: 2000, control_lost_after_ms: 4500 },
      periods: { fill_ms: 100, reap_ms: 100 },
    },
  });
  await patient.makePool({ name: "long", size: 1 });
  const { body: lease } = await patient.call("POST /browser_pools/long/acquire", {
    acquire_timeout_seconds: 30,
  });
  const client = await connectRaw(lease.cdp_ws_url);
  const page = await client.attach();
  const waiting = patient.call("POST /browser_pools/long/acquire", { acquire_timeout_seconds: 50 });
  await patient.poolWhen("long", (pool) => pool.waiting_count === 1);
  await way.cut();
  expect(
    await client.evaluate("new Promise((resolve) => setTimeout(() => resolve('still here'), 5500))", page),
  ).toBe("still here");
  await way.restore();
  await until("Redis back", async () => (await patient.call("GET /browser_pools")).status === 200);
  await until("a beat of the node", async () =>
    (await patient.call("GET /metrics")).text.includes('remuda_nodes{state="ready"} 1'),
  );
  expect((await patient.call(`GET /browsers/${lease.session_id}`)).body).toMatchObject({
    lease_id: lease.lease_id,
  });
  expect((await client.send("Browser.getVersion")).result).toBeDefined();
  expect(
    (await patient.call("POST /browser_pools/long/release", { session_id: lease.session_id })).status,
  ).toBe(204);
  expect(await waiting).toMatchObject({ status: 200, body: { session_id: lease.session_id } });
  expect(patient.log).not.toContain("node lost");
  await patient.stop();
});

test("a control that comes back with Redis gives nodes the time to be heard before it takes them for lost", async () => {
  const { own, way } = await openOwn();
  const file = { node: { id: "far", beat_period_ms: 500, lost_after_ms: 20_000 } };
  const node = await startDaemon({
    role: "node",
    redisUrl: way.url,
    file: { ...file, drain: { limit_seconds: 0 } },
  });
  const first = await startDaemon({ role: "control", redisUrl: own.url, file });
  await first.makePool({ name: "far" });
  const { body: lease } = await first.call("POST /browser_pools/far/acquire", {
    name: "held",
    acquire_timeout_seconds: 30,
  });
  const client = await connectRaw(lease.cdp_ws_url.replace(new URL(first.url).host, new URL(node.url).host));
  await way.cut();
  await first.stop();
  const redisClient = own.client();
  // As if the node had been silent, and nobody had listened, for longer than that.
  await age(redisClient, "remuda:{nodes}:*", 30_000);
  const before = Number(await redisClient.hget("remuda:{nodes}:ticks", "sweep"));
  const second = await startDaemon({ role: "control", redisUrl: own.url, file });
  await until(
    "its ticks",
    async () => Number(await redisClient.hget("remuda:{nodes}:ticks", "sweep")) > before,
  );
  redisClient.disconnect();
  await way.restore();
  await second.poolWhen("far", (pool) => pool.acquired_count === 1);
  await until("the node heard", async () =>
    (await second.call("GET /metrics")).text.includes('remuda_nodes{state="ready"} 1'),
  );
  expect((await second.call("GET /browsers/held")).body).toMatchObject({ lease_id: lease.lease_id });
  expect((await client.send("Browser.getVersion")).result).toBeDefined();
  await node.stop();
  await second.stop();
});
