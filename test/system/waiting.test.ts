import { afterAll, beforeAll, expect, test } from "vitest";
import { type FakeChromium, makeFakeChromium, standIn } from "../support/browser/chromium-fake.js";
import { until } from "../support/browser/chromium-until.js";
import { type Daemon, type DaemonClient, type Lease, startDaemon } from "../support/daemon/daemon.js";
import { key, type Got } from "../support/http/http-server.js";
import { startRedis, type TestRedis } from "../support/store/redis.js";

// Two daemons on one Redis: two controls, and a node each.
let fake: FakeChromium;
let redis: TestRedis;
let one: Daemon;
let other: Daemon;
const acquire = { control_beat_period_ms: 200, control_lost_after_ms: 2000, max_wait_seconds: 600 };
const file = (over: object = {}): Record<string, unknown> => ({
  ...standIn(fake),
  acquire: { ...acquire, keyed_grace_seconds: 60, ...over },
});
beforeAll(async () => {
  [fake, redis] = await Promise.all([makeFakeChromium(), startRedis()]);
  [one, other] = [
    await startDaemon({ redisUrl: redis.url, file: file() }),
    await startDaemon({ redisUrl: redis.url, file: file() }),
  ];
});
afterAll(async () => {
  await other.stop();
  await one.stop();
  await Promise.all([redis.stop(), fake.remove()]);
});

/** The time of a wait that ends with something else. */
const patience = { acquire_timeout_seconds: 600 };

interface Asking {
  readonly got: Promise<Got | "gone">;
  leave(): void;
}

/** An acquire whose caller can go. */
function ask(
  daemon: DaemonClient,
  pool: string,
  options: { body?: object; headers?: Record<string, string> } = {},
): Asking {
  const going = new AbortController();
  const body = JSON.stringify({ acquire_timeout_seconds: 20, ...options.body });
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json", ...options.headers };
  const got = fetch(`${daemon.url}/browser_pools/${pool}/acquire`, {
    method: "POST",
    body,
    headers,
    signal: going.signal,
  }).then(
    async (reply) => {
      const text = await reply.text();
      return {
        status: reply.status,
        headers: reply.headers,
        text,
        body: text === "" ? undefined : JSON.parse(text),
      };
    },
    () => "gone" as const,
  );
  return { got, leave: () => going.abort() };
}
const waiting = (pool: string, count: number): Promise<unknown> =>
  one.poolWhen(pool, ({ waiting_count }) => waiting_count === count);
const leaseOf = async ({ got }: Asking): Promise<Lease> => {
  const reply = await got;
  if (reply === "gone" || reply.status !== 200)
    throw new Error(`not granted: ${reply === "gone" ? reply : reply.text}`);
  return reply.body as Lease;
};
const release = (pool: string, { session_id }: Lease): Promise<Got> =>
  one.call(`POST /browser_pools/${pool}/release`, { session_id });

/** The places in line, as Redis holds them. */
async function placesOf(pool: string): Promise<string[]> {
  const { id } = (await one.call(`GET /browser_pools/${pool}`)).body as { id: string };
  const client = redis.client();
  const places = await client.hvals(`remuda:default:{${id.slice(0, 12)}}:waiterRecords`);
  client.disconnect();
  return places;
}

async function busyPool(name: string): Promise<Lease> {
  await one.makePool({ name });
  return await leaseOf(ask(one, name));
}

test("waiters are served first come, first served, whichever daemon they wait at", async () => {
  let held = await busyPool("queue");
  const asked: Asking[] = [];
  for (const daemon of [one, other, other, one]) {
    asked.push(ask(daemon, "queue"));
    await waiting("queue", asked.length);
  }
  for (const next of asked) {
    expect((await release("queue", held)).status).toBe(204);
    held = await leaseOf(next);
  }
  await release("queue", held);
});

test("a waiter that goes is passed over: the browser is the next one's", async () => {
  const held = await busyPool("left");
  const going = ask(other, "left");
  await waiting("left", 1);
  const next = ask(one, "left");
  await waiting("left", 2);
  going.leave();
  await waiting("left", 1);
  await release("left", held);
  expect((await leaseOf(next)).session_id).toBe(held.session_id);
});

test("a caller that goes at the very moment of its grant keeps nothing", async () => {
  let held = await busyPool("moment");
  for (let turn = 0; turn < 10; turn += 1) {
    const going = ask(other, "moment");
    await waiting("moment", 1);
    const released = release("moment", held);
    going.leave();
    await released;
    expect(await going.got).toBe("gone");
    held = await leaseOf(ask(one, "moment"));
  }
  await release("moment", held);
  await one.poolWhen(
    "moment",
    ({ available_count, acquired_count }) => available_count === 1 && acquired_count === 0,
  );
});

test("a wait ends with 204 and leave to ask again: at once, after its time, after the pool's fill time, after the longest wait", async () => {
  await busyPool("times");
  const ended: string[] = [];
  const wait = async (after: string, leastMs: number, body: object): Promise<void> => {
    const from = performance.now();
    const { status, headers } = await one.call("POST /browser_pools/times/acquire", body);
    ended.push(after);
    expect([status, headers.get("retry-after")]).toEqual([204, "0"]);
    expect(performance.now() - from).toBeGreaterThan(leastMs);
  };
  await Promise.all([
    wait("its own time", 1900, { acquire_timeout_seconds: 2 }),
    wait("the pool's fill time", 900, {}),
    wait("no time", 0, { acquire_timeout_seconds: 0 }),
  ]);
  expect(ended).toEqual(["no time", "the pool's fill time", "its own time"]);
  await waiting("times", 0);
});

test("one request waits at most as long as the daemon lets it, whatever it asks for", async () => {
  const brief = await startDaemon({ file: file({ max_wait_seconds: 1 }) });
  await brief.call("POST /browser_pools", {
    name: "empty",
    size: 1,
    fill_rate_per_minute: 0,
    headless: true,
  });
  expect(
    (await brief.call("POST /browser_pools/empty/acquire", { acquire_timeout_seconds: 3600 })).status,
  ).toBe(204);
  await brief.stop();
});

test("under an idempotency key a retry takes over the place of its first attempt, then gets the same lease, then hears that it is over", async () => {
  const held = await busyPool("again");
  const headers = { "idempotency-key": "k1" };
  const first = ask(one, "again", { headers });
  await waiting("again", 1);
  const second = ask(other, "again", { headers });
  expect(await first.got).toMatchObject({ status: 204 });
  await waiting("again", 1);
  expect(await ask(one, "again", { headers, body: { tags: { other: "body" } } }).got).toMatchObject({
    status: 400,
    body: { code: "idempotency_mismatch" },
  });
  await release("again", held);
  const lease = await leaseOf(second);
  // Each daemon hands out its own address; the token is the same.
  expect(await leaseOf(ask(one, "again", { headers }))).toMatchObject({
    session_id: lease.session_id,
    lease_id: lease.lease_id,
  });
  expect((await leaseOf(ask(other, "again", { headers }))).cdp_ws_url).toBe(lease.cdp_ws_url);
  expect((await one.call("GET /browser_pools/again")).body).toMatchObject({ acquired_count: 1 });
  await release("again", lease);
  const over = await ask(one, "again", { headers }).got;
  expect(over).toMatchObject({ status: 409, body: { code: "lease_ended" } });
  expect(over !== "gone" && over.headers.get("x-should-retry")).toBe("false");
});

test("a waiter with a key that has lost its connection keeps its rank for a while, and holds up nobody meanwhile", async () => {
  const held = await busyPool("rank");
  const headers = { "idempotency-key": "k2" };
  const lost = ask(one, "rank", { headers, body: patience });
  await waiting("rank", 1);
  const next = ask(other, "rank", { body: patience });
  await waiting("rank", 2);
  const last = ask(one, "rank", { body: patience });
  await waiting("rank", 3);
  lost.leave();
  await until("its connection missed", async () =>
    (await placesOf("rank")).some((place) => place.includes("detachedAt")),
  );
  await release("rank", held);
  const passed = await leaseOf(next);
  const back = ask(other, "rank", { headers, body: patience });
  await until(
    "it back in its place",
    async () => !(await placesOf("rank")).some((place) => place.includes("detachedAt")),
  );
  await release("rank", passed);
  await release("rank", await leaseOf(back));
  await release("rank", await leaseOf(last));
  await one.poolWhen(
    "rank",
    ({ available_count, waiting_count }) => available_count === 1 && waiting_count === 0,
  );
});

test("a waiter with a key that never comes back leaves the queue", async () => {
  const brief = await startDaemon({ file: file({ keyed_grace_seconds: 1 }) });
  await brief.call("POST /browser_pools", {
    name: "forgotten",
    size: 1,
    fill_rate_per_minute: 0,
    headless: true,
  });
  const lost = ask(brief, "forgotten", { headers: { "idempotency-key": "k3" }, body: patience });
  await brief.poolWhen("forgotten", ({ waiting_count }) => waiting_count === 1);
  lost.leave();
  await brief.poolWhen("forgotten", ({ waiting_count }) => waiting_count === 0);
  await brief.stop();
});

test("a lease's name is taken from the moment its acquire waits, and free again when the wait is over", async () => {
  await busyPool("named");
  const body = { name: "rider", ...patience };
  const first = ask(one, "named", { body });
  await waiting("named", 1);
  expect(await ask(other, "named", { body }).got).toMatchObject({
    status: 409,
    body: { code: "name_taken" },
  });
  first.leave();
  const short = { body: { ...body, acquire_timeout_seconds: 1 } };
  await until("it free after who has left", async () => {
    const got = await ask(other, "named", short).got;
    return got !== "gone" && got.status === 204;
  });
  // That wait has ended with its time.
  expect(await ask(one, "named", short).got).toMatchObject({ status: 204 });
});

test("waiters of a pool that is deleted are told at once", async () => {
  await busyPool("doomed");
  const asked = [ask(one, "doomed"), ask(other, "doomed")];
  await waiting("doomed", 2);
  expect((await other.call("DELETE /browser_pools/doomed", { force: true })).status).toBe(204);
  for (const { got } of asked)
    expect(await got).toMatchObject({ status: 404, body: { code: "pool_not_found" } });
});

test("a daemon that stops answers its waiters at once", async () => {
  const stopping = await startDaemon({ redisUrl: redis.url, file: file() });
  await busyPool("stopping");
  const asked = ask(stopping, "stopping", { body: patience });
  await waiting("stopping", 1);
  const stopped = stopping.stop();
  expect(await asked.got).toMatchObject({ status: 204 });
  await stopped;
  await waiting("stopping", 0);
});
