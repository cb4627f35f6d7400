import { afterAll, beforeAll, expect, test } from "vitest";
import { type FakeChromium, makeFakeChromium, standIn } from "../support/browser/chromium-fake.js";
import { until } from "../support/browser/chromium-until.js";
import { type Daemon, type Lease, type PoolState, startDaemon } from "../support/daemon/daemon.js";
import { refusedUpgrade } from "../support/gateway/gateway-bed.js";
import { send } from "../support/http/http-server.js";

let fake: FakeChromium;
let daemon: Daemon;
beforeAll(async () => {
  fake = await makeFakeChromium();
  daemon = await startDaemon({ file: { ...standIn(fake), node: { max_browsers: 30 } } });
});
afterAll(async () => {
  await daemon.stop();
  await fake.remove();
});

const acquire = async (pool: string, body: object = {}): Promise<Lease> =>
  (await daemon.call(`POST /browser_pools/${pool}/acquire`, { acquire_timeout_seconds: 50, ...body }))
    .body as Lease;
const release = (pool: string, { session_id }: Lease, body: object = {}): Promise<{ status: number }> =>
  daemon.call(`POST /browser_pools/${pool}/release`, { session_id, ...body });
const patch = (pool: string, body: object): Promise<{ status: number; body: PoolState }> =>
  daemon.call(`PATCH /browser_pools/${pool}`, body);
const remove = (pool: string): Promise<unknown> =>
  daemon.call(`DELETE /browser_pools/${pool}`, { force: true });
const idle = async (pool: string): Promise<string[]> =>
  (await daemon.browsersOf(pool)).filter(({ state }) => state === "idle").map(({ session_id }) => session_id);
const full = (pool: string, count: number): Promise<PoolState> =>
  daemon.poolWhen(
    pool,
    (state) => state.available_count === count && state.launching_count + state.resetting_count === 0,
  );

test("a pool below its size says why: its rate, a rate of zero, no room", async () => {
  await daemon.call("POST /browser_pools", {
    name: "slow",
    size: 3,
    fill_rate_per_minute: 1,
    headless: true,
  });
  await daemon.poolWhen(
    "slow",
    ({ fill, available_count }) => fill?.reason === "rate" && available_count === 1,
  );
  await daemon.call("POST /browser_pools", {
    name: "still",
    size: 1,
    fill_rate_per_minute: 0,
    headless: true,
  });
  await daemon.poolWhen("still", ({ fill }) => fill?.reason === "rate_zero");
  await daemon.call("POST /browser_pools", { name: "wide", size: 40, headless: true });
  await daemon.poolWhen("wide", ({ fill }) => fill?.reason === "capacity");
  expect(await daemon.call("POST /browsers", { headless: true })).toMatchObject({
    status: 529,
    body: { code: "capacity_exhausted" },
  });
  await remove("wide");
  for (const pool of ["slow", "still"]) await remove(pool);
});

test("a pool that is shrunk gives up idle browsers, never a leased one; grown, it fills again", async () => {
  await daemon.makePool({ name: "size", size: 3 });
  const held = [await acquire("size"), await acquire("size")];
  await patch("size", { size: 1 });
  await daemon.poolWhen("size", (pool) => pool.available_count === 0 && pool.acquired_count === 2);
  await release("size", held[0] as Lease);
  await daemon.poolWhen("size", (pool) => pool.available_count === 0 && pool.acquired_count === 1);
  await patch("size", { size: 3 });
  await daemon.poolWhen("size", (pool) => pool.available_count === 2 && pool.acquired_count === 1);
  await release("size", held[1] as Lease);
  await full("size", 3);
  await remove("size");
});

test("a change of configuration leaves idle browsers stale but in service, freshest lent first, until they are discarded", async () => {
  await daemon.makePool({ name: "change", size: 2 });
  const before = await idle("change");
  expect((await patch("change", { viewport: { width: 640, height: 480 } })).body).toMatchObject({
    stale_count: 2,
    available_count: 2,
  });
  expect((await patch("change", { timeout_seconds: 77, size: 3 })).body).toMatchObject({ stale_count: 2 });
  await full("change", 3);
  const fresh = await acquire("change");
  expect(before).not.toContain(fresh.session_id);
  const stale = await acquire("change");
  expect(before).toContain(stale.session_id);
  expect(stale).toMatchObject({ viewport: { width: 1920, height: 1080 }, timeout_seconds: 77 });
  await patch("change", { discard_all_idle: true });
  await daemon.poolWhen(
    "change",
    (pool) => pool.available_count === 1 && pool.acquired_count === 2 && pool.stale_count === 1,
  );
  expect(before).not.toContain((await idle("change"))[0]);
  await release("change", stale);
  await release("change", fresh);
  expect(await full("change", 3)).toMatchObject({ stale_count: 1 });
  await daemon.call("POST /browser_pools/change/flush");
  expect(await full("change", 3)).toMatchObject({ stale_count: 0 });
  await remove("change");
});

test("after a change of the allowlist no browser from before is ever lent", async () => {
  await daemon.makePool({ name: "network", size: 2 });
  const held = await acquire("network");
  const before = [...(await idle("network")), held.session_id];
  const network = { allowed_hosts: [" Example.COM ", "example.com"] };
  const changed = await patch("network", { network, expected_network: {} });
  expect(changed).toMatchObject({
    status: 200,
    body: { browser_pool_config: { network: { allowed_hosts: ["example.com"] } } },
  });
  const fresh = await acquire("network");
  expect(before).not.toContain(fresh.session_id);
  expect(fresh).toMatchObject({ network: { allowed_hosts: ["example.com"], generation: 2 } });
  await release("network", fresh);
  expect(await patch("network", { network: {}, expected_network: {} })).toMatchObject({
    status: 409,
    body: { code: "stale_network" },
  });
  expect(
    (await patch("network", { network: {}, expected_network: { allowed_hosts: ["example.com"] } })).status,
  ).toBe(200);
  await release("network", held);
  await full("network", 2);
  const lent = [await acquire("network"), await acquire("network")].map(({ session_id }) => session_id);
  expect(lent.filter((id) => [...before, fresh.session_id].includes(id))).toEqual([]);
  await remove("network");
});

test("a flush replaces what is idle and touches no lease", async () => {
  await daemon.makePool({ name: "flush", size: 2 });
  const held = await acquire("flush");
  const before = await idle("flush");
  expect((await daemon.call("POST /browser_pools/flush/flush")).status).toBe(204);
  await daemon.poolWhen("flush", (pool) => pool.available_count === 1 && pool.acquired_count === 1);
  expect(await idle("flush")).not.toEqual(before);
  expect((await daemon.call(`GET /browsers/${held.session_id}`)).status).toBe(200);
  await remove("flush");
});

test("a pool deleted by force ends its leases and says so, and its name is free at the reply", async () => {
  await daemon.makePool({ name: "phoenix", size: 2 });
  const held = await acquire("phoenix", { name: "ash" });
  expect((await daemon.call("DELETE /browser_pools/phoenix", { force: true })).status).toBe(204);
  expect(
    (
      await daemon.call("POST /browser_pools", {
        name: "phoenix",
        size: 1,
        fill_rate_per_minute: 0,
        headless: true,
      })
    ).status,
  ).toBe(201);
  expect((await daemon.call("GET /browsers/ash")).status).toBe(404);
  expect(await refusedUpgrade(held.cdp_ws_url)).toMatchObject({
    status: 410,
    body: {
      code: expect.stringMatching(/pool_deleted|browser_gone/),
      message: expect.stringContaining("pool"),
    },
  });
  await until(
    "its name free",
    async () =>
      (await daemon.call("POST /browser_pools/phoenix/acquire", { name: "ash", acquire_timeout_seconds: 0 }))
        .status === 204,
  );
  await remove("phoenix");
});

test("where a name is another pool's id, the id wins", async () => {
  const owner = await daemon.makePool({ name: "owner" });
  await daemon.call("POST /browser_pools", {
    name: owner.id,
    size: 1,
    fill_rate_per_minute: 0,
    headless: true,
  });
  expect((await daemon.call(`GET /browser_pools/${owner.id}`)).body.name).toBe("owner");
  expect((await acquire(owner.id)).session_id).toBeTruthy();
  const { body } = await daemon.call(`GET /browser_pools?name=${owner.id}`);
  expect(body).toHaveLength(1);
  for (const { id } of [owner, body[0]]) await remove(id);
});

test("what was asked for under an idempotency key is made once", async () => {
  const headers = { "idempotency-key": "make" };
  const make = (size: number): Promise<{ status: number; body: PoolState & { code?: string } }> =>
    daemon.call(
      "POST /browser_pools",
      { name: "once", size, fill_rate_per_minute: 0, headless: true },
      headers,
    );
  const first = await make(1);
  expect([first.status, (await make(1)).body.id]).toEqual([201, first.body.id]);
  expect(await make(2)).toMatchObject({ status: 400, body: { code: "idempotency_mismatch" } });
  await remove("once");
});

test("a browser that has served its number of leases is replaced, its replacement first", async () => {
  const wearing = await startDaemon({ file: { ...standIn(fake), recycle: { max_leases: 2 } } });
  await wearing.makePool({ name: "worn" });
  const lend = async (): Promise<string> => {
    const { body } = await wearing.call("POST /browser_pools/worn/acquire", { acquire_timeout_seconds: 50 });
    await wearing.call("POST /browser_pools/worn/release", { session_id: body.session_id });
    return body.session_id as string;
  };
  const first = await lend();
  expect(await lend()).toBe(first);
  await until("it replaced", async () => {
    const browsers = await wearing.browsersOf("worn");
    expect(browsers.some(({ state }) => state === "idle")).toBe(true);
    return browsers.every(({ session_id }) => session_id !== first);
  });
  await wearing.stop();
});

test("more sessions or pools than the operator allows are refused", async () => {
  const limited = await startDaemon({
    file: {
      ...standIn(fake),
      limits: { max_pools: 2, pooled_sessions: 3, max_pool_size: 2, max_sessions: 1 },
      // A session that a starved machine ends would make room.
      node: { lost_after_ms: 60_000 },
      acquire: { provisional_seconds: 60 },
    },
  });
  const make = (name: string, size: number) =>
    limited.call("POST /browser_pools", { name, size, headless: true, fill_rate_per_minute: 0 });
  expect((await make("a", 3)).status).toBe(400);
  expect((await make("a", 2)).status).toBe(201);
  expect(await make("b", 2)).toMatchObject({ status: 403, body: { code: "limit_exceeded" } });
  expect((await make("b", 1)).status).toBe(201);
  expect(await make("c", 1)).toMatchObject({ status: 403, body: { code: "limit_exceeded" } });
  expect(await limited.call("PATCH /browser_pools/b", { size: 2 })).toMatchObject({
    status: 403,
    body: { code: "limit_exceeded" },
  });
  await limited.call("DELETE /browser_pools/a");
  expect((await limited.call("PATCH /browser_pools/b", { size: 2 })).status).toBe(200);
  const { status, body, text } = await limited.call("POST /browsers", { headless: true });
  expect(status, text).toBe(200);
  const refused = await limited.call("POST /browsers", { headless: true });
  expect([refused.status, refused.headers.get("x-ratelimit-limit")]).toEqual([429, "1"]);
  await limited.call(`DELETE /browsers/${body.session_id}`);
  expect((await limited.call("POST /browsers", { headless: true })).status).toBe(200);
  await limited.stop();
});

test("metrics count pools by state, waits, launches, ends of leases and clients; health and readiness need no key", async () => {
  await daemon.makePool({ name: "metered", size: 2 });
  const held = await acquire("metered");
  await release("metered", await acquire("metered"), { reuse: false });
  const metrics = (): Promise<string> =>
    send(`${daemon.url}/metrics`, { headers: { authorization: "" } }).then(({ text }) => text);
  await until("the metrics", async () => {
    const text = await metrics();
    return [
      'remuda_pool_browsers{pool="metered",state="leased"} 1',
      'remuda_pool_browsers{pool="metered",state="idle"} 1',
      'remuda_leases_ended_total{pool="metered",reason="released"} 1',
      'remuda_acquire_wait_seconds_count{pool="metered",outcome="granted"} 2',
      'remuda_launches_total{pool="metered"} 3',
      "remuda_gateway_connections 0",
      'remuda_nodes{state="ready"} 1',
    ].every((line) => text.includes(line));
  });
  expect(await metrics()).not.toContain(held.session_id);
  for (const path of ["/healthz", "/readyz", "/openapi.json"])
    expect((await send(daemon.url + path, { headers: { authorization: "" } })).status).toBe(200);
  expect(await daemon.call("GET /auth/context")).toMatchObject({ status: 200 });
  await remove("metered");
});
