import { expect, test } from "vitest";
import { refusal } from "../../src/base/errors.js";
import type { Pool } from "../../src/pool/pool.js";
import { send, type Sent, sharedServer } from "../support/http/http-server.js";
import { pool, poolConfig, session, tombstone } from "../support/http/recorded-operations.js";

const server = sharedServer();
const ask = (path: string, sent: Sent = {}) => send(`${server().url}${path}`, sent);
const called = () => server().operations.calls.map(({ operation, args }) => [operation, ...args.slice(0, 2)]);

const poolBody = {
  id: pool.id,
  name: "herd",
  region: "us-east",
  created_at: "2023-11-14T22:13:20.000Z",
  acquired_count: 3,
  available_count: 2,
  launching_count: 1,
  resetting_count: 4,
  stale_count: 5,
  waiting_count: 6,
  extension_ids: [],
  browser_pool_config: poolConfig,
};
const urls = (id: string, lease: string) => ({
  cdp_ws_url: `ws://here/browsers/${id}/cdp?token=${lease}`,
  webdriver_ws_url: `ws://here/browsers/${id}/webdriver?token=${lease}`,
});
const sessionBody = {
  session_id: session.browser.id,
  created_at: "2023-11-14T22:13:20.500Z",
  ...urls(session.browser.id, "leaseleaseleaselease0001"),
  region: "us-east",
  stealth: false,
  headless: true,
  memory: "1GiB",
  timeout_seconds: 600,
  kiosk_mode: false,
  engine: "chromium",
  lease_id: "leaseleaseleaselease0001",
  name: "mine",
  tags: { team: "a" },
  viewport: poolConfig.viewport,
  pool: { id: pool.id, name: "herd" },
  usage: { uptime_ms: 2000, requests: 3, denied: 1, bytes_sent: 40, bytes_received: 500 },
  isolation: { uid: 20001, network: "proxy", attested: "2023-11-14T22:13:20.900Z" },
  network: { isolation: "proxy", attested: "2023-11-14T22:13:20.900Z", generation: 1 },
};
const deletedBody = {
  session_id: tombstone.id,
  created_at: "2023-11-14T22:13:20.000Z",
  ...urls(tombstone.id, tombstone.lease),
  region: "us-east",
  stealth: false,
  headless: true,
  memory: "1GiB",
  timeout_seconds: 60,
  kiosk_mode: false,
  lease_id: tombstone.lease,
  tags: { team: "b" },
  usage: { uptime_ms: 9000, requests: 0, denied: 0, bytes_sent: 0, bytes_received: 0 },
  deleted_at: "2023-11-14T22:13:29.000Z",
  usage_status: "ready",
  reason: "expired",
};

test("a pool is created with 201 and what the body said, as it was said", async () => {
  const body = {
    size: 2,
    chrome_policy: { HomepageLocation: "x" },
    telemetry: null,
    network: { private_hosts: [] },
    profile: { id: "", save_changes: true },
  };
  expect(await ask("/browser_pools", { method: "POST", body })).toMatchObject({
    status: 201,
    body: poolBody,
  });
  expect(called()[0]?.slice(0, 2)).toEqual(["pools.create", body]);
});

test("a pool shows exactly its fields", async () => {
  expect((await ask("/browser_pools/herd")).body).toEqual(poolBody);
  expect(called()).toEqual([["pools.get", "herd"]]);
});

test("a pool below its size tells why; an export's destination is a text; a name may be missing", async () => {
  const { name: _name, ...nameless } = pool;
  const telemetry = { enabled: true, export: { otlp: { enabled: true, destination: { id: "d1" } } } };
  const fill = { reason: "launch_failing", last_error: "no display" } as const;
  const shown: Pool = {
    ...nameless,
    fill,
    spec: { ...poolConfig, telemetry, browser_policy: { A: 1 }, network: { allowed_hosts: ["a.example"] } },
  };
  server().operations.answer("pools.get", { kind: "done", value: shown });
  const { body } = await ask(`/browser_pools/${pool.id}`);
  expect(body.fill).toEqual(fill);
  expect(body).not.toHaveProperty("name");
  expect(body.browser_pool_config).toEqual({
    ...poolConfig,
    telemetry: { enabled: true, export: { otlp: { enabled: true, destination: "d1" } } },
    browser_policy: { A: 1 },
    network: { allowed_hosts: ["a.example"] },
  });
});

test("lists are pages, and their headers tell where the next begins", async () => {
  server().operations.answer("pools.list", { items: [pool], hasMore: true, nextOffset: 6 });
  const got = await ask("/browser_pools?limit=1&offset=5&name=Herd&query=he&region=us-east");
  expect(got.body).toEqual([poolBody]);
  const names = ["x-has-more", "x-next-offset", "x-limit", "x-offset"];
  expect(names.map((name) => got.headers.get(name))).toEqual(["true", "6", "1", "5"]);
  expect(called()).toEqual([
    ["pools.list", { limit: 1, offset: 5, name: "Herd", query: "he", region: "us-east" }],
  ]);
});

test("a pool's browsers are listed with state, node, generation, age, leases and last error", async () => {
  expect((await ask("/browser_pools/herd/browsers")).body).toEqual([
    {
      session_id: session.browser.id,
      state: "idle",
      node: "node-1",
      generation: 3,
      stale: false,
      age_ms: 12,
      leases_served: 2,
      last_error: "slow",
    },
  ]);
});

test("a pool is changed by PATCH, and deleted by DELETE with and without force and body", async () => {
  const patch = {
    name: "",
    start_url: "",
    extensions: [],
    browser_policy: {},
    proxy_id: "",
    expected_network: {},
    network: {},
    discard_all_idle: true,
  };
  expect(await ask("/browser_pools/herd", { method: "PATCH", body: patch })).toMatchObject({
    status: 200,
    body: poolBody,
  });
  expect((await ask("/browser_pools/herd", { method: "PATCH" })).status).toBe(200);
  for (const sent of [
    {},
    { body: {} },
    { body: { force: true } },
    { text: "", headers: { "content-type": "application/json" } },
  ]) {
    expect((await ask("/browser_pools/herd", { method: "DELETE", ...sent })).status).toBe(204);
  }
  expect(called()).toEqual([
    ["pools.update", "herd", patch],
    ["pools.update", "herd", {}],
    ["pools.remove", "herd", { force: false }],
    ["pools.remove", "herd", { force: false }],
    ["pools.remove", "herd", { force: true }],
    ["pools.remove", "herd", { force: false }],
  ]);
});

test("an acquire answers the session with its lease, or 204 with the word to come again at once", async () => {
  const body = {
    acquire_timeout_seconds: 0,
    name: "mine",
    tags: { team: "a" },
    start_url: "https://a.example/",
  };
  const got = await ask("/browser_pools/herd/acquire", { method: "POST", body });
  expect(got).toMatchObject({ status: 200, body: sessionBody });
  expect(Object.keys(got.body).sort()).toEqual(Object.keys(sessionBody).sort());
  expect(called()[0]?.slice(0, 3)).toEqual(["pools.acquire", "herd", body]);
  server().operations.answer("pools.acquire", { kind: "timed-out" });
  const empty = await ask("/browser_pools/herd/acquire", { method: "POST" });
  expect([
    empty.status,
    empty.text,
    empty.headers.get("retry-after"),
    empty.headers.get("content-type"),
  ]).toEqual([204, "", "0", null]);
});

test.each([
  ["release", { body: { session_id: "x", reuse: false } }],
  ["flush", {}],
  ["flush", { body: {} }],
  ["flush", { text: "", headers: { "content-type": "application/json" } }],
])("%s answers 204 without body and content type", async (verb, sent) => {
  const got = await ask(`/browser_pools/herd/${verb}`, { method: "POST", ...sent });
  expect([got.status, got.text, got.headers.get("content-type"), got.headers.get("content-length")]).toEqual([
    204,
    "",
    null,
    null,
  ]);
  expect(called()[0]?.[0]).toBe(`pools.${verb}`);
});

test("a session is created with 200, read, changed and ended", async () => {
  expect(await ask("/browsers", { method: "POST", body: { headless: true } })).toMatchObject({
    status: 200,
    body: sessionBody,
  });
  expect(await ask("/browsers/mine")).toMatchObject({ status: 200, body: sessionBody });
  expect(
    await ask("/browsers/mine", {
      method: "PATCH",
      body: { name: "", tags: {}, network: { allowed_hosts: null } },
    }),
  ).toMatchObject({ status: 200, body: sessionBody });
  for (const sent of [{}, { body: {} }])
    expect((await ask("/browsers/mine", { method: "DELETE", ...sent })).status).toBe(204);
  expect(server().operations.calls.map(({ operation }) => operation)).toEqual([
    "sessions.create",
    "sessions.get",
    "sessions.update",
    "sessions.remove",
    "sessions.remove",
  ]);
});

test("a request through a browser is passed on as it was sent, its answer as it came, and a denial is the caller's fault", async () => {
  const body = {
    url: "https://a.example/",
    method: "post",
    headers: { "x-own": "1" },
    body: "text",
    timeout_ms: 1000,
    response_encoding: "base64",
  };
  const got = await ask("/browsers/mine/curl", { method: "POST", body });
  expect(got).toMatchObject({
    status: 200,
    body: { status: 200, headers: { "set-cookie": ["a=1", "b=2"] }, body: "hello", duration_ms: 12 },
  });
  expect(called()[0]?.slice(0, 3)).toEqual(["sessions.curl", "mine", body]);
  server().operations.answer(
    "sessions.curl",
    refusal("egress_denied", { message: "The host is private (private)" }),
  );
  expect(await ask("/browsers/mine/curl", { method: "POST", body })).toMatchObject({
    status: 400,
    body: { code: "egress_denied", message: "The host is private (private)" },
  });
  for (const wrong of [
    { timeout_ms: 999 },
    { timeout_ms: 60_001 },
    { headers: { "a b": "c" } },
    { headers: { a: "b\nc" } },
    { method: "GET /" },
    { url: "" },
  ]) {
    expect([
      wrong,
      (await ask("/browsers/mine/curl", { method: "POST", body: { ...body, ...wrong } })).status,
    ]).toEqual([wrong, 400]);
  }
});

test("what a lease or a PATCH has set goes before what the browser was launched with", async () => {
  const lease = {
    ...session.browser.lease,
    startUrl: "https://lease.example/",
    viewport: '{"width":800,"height":600,"refresh_rate":60}',
    network: { revision: 1, allowedHosts: '["a.example"]', proxy: '{"id":"p2"}' },
  };
  const shown = {
    ...session,
    proxyName: "out",
    browser: { ...session.browser, lease },
    launch: {
      ...poolConfig,
      start_url: "https://pool.example/",
      proxy_id: "p1",
      network: { allowed_hosts: ["*.example"], private_hosts: [] },
      telemetry: { enabled: true },
    },
  };
  server().operations.answer("sessions.get", { kind: "done", value: { kind: "session", session: shown } });
  expect((await ask("/browsers/mine")).body).toEqual({
    ...sessionBody,
    start_url: "https://lease.example/",
    viewport: { width: 800, height: 600, refresh_rate: 60 },
    proxy_id: "p2",
    proxy: { id: "p2", name: "out" },
    telemetry: { enabled: true },
    network: { ...sessionBody.network, allowed_hosts: ["a.example"], private_hosts: [] },
  });
});

test("deleted sessions say when, why, and that their usage is settled", async () => {
  server().operations.answer("sessions.get", { kind: "done", value: { kind: "deleted", tombstone } });
  expect((await ask(`/browsers/${tombstone.id}?include_deleted=true`)).body).toEqual(deletedBody);
  expect(called()).toEqual([["sessions.get", tombstone.id, { includeDeleted: true }]]);
  expect((await ask("/browsers?status=all")).body).toEqual([sessionBody, deletedBody]);
});

test.each([
  ["", { status: "active" }],
  ["status=deleted", { status: "deleted" }],
  ["include_deleted=true", { status: "all" }],
  ["include_deleted=true&status=active", { status: "active" }],
  ["include_deleted=false", { status: "active" }],
  [
    "tags%5Bteam%5D=a%20b&tags%5Bx.y%5D=1&query=q&region=us-east",
    { status: "active", tags: { team: "a b", "x.y": "1" }, query: "q", region: "us-east" },
  ],
  ["tags[a]=b+c&&limit=100", { status: "active", tags: { a: "b c" }, limit: 100 }],
])("GET /browsers?%s is understood", async (query, asked) => {
  expect((await ask(`/browsers?${query}`)).status).toBe(200);
  expect(server().operations.calls[0]?.args[0]).toEqual({ limit: 20, offset: 0, ...asked });
});

test("every refusal of every operation is passed on", async () => {
  const asked: readonly [string, string, Sent][] = [
    ["pools.create", "/browser_pools", { method: "POST", body: { size: 1 } }],
    ["pools.get", "/browser_pools/x", {}],
    ["pools.update", "/browser_pools/x", { method: "PATCH" }],
    ["pools.remove", "/browser_pools/x", { method: "DELETE" }],
    ["pools.acquire", "/browser_pools/x/acquire", { method: "POST" }],
    ["pools.release", "/browser_pools/x/release", { method: "POST", body: { session_id: "y" } }],
    ["pools.flush", "/browser_pools/x/flush", { method: "POST" }],
    ["pools.browsers", "/browser_pools/x/browsers", {}],
    ["sessions.create", "/browsers", { method: "POST" }],
    ["sessions.get", "/browsers/x", {}],
    ["sessions.update", "/browsers/x", { method: "PATCH" }],
    ["sessions.remove", "/browsers/x", { method: "DELETE" }],
  ];
  for (const [operation, path, sent] of asked) {
    server().operations.answer(operation, refusal("conflict", { message: operation }));
    expect(await ask(path, sent), operation).toMatchObject({
      status: 409,
      body: { code: "conflict", message: operation },
    });
  }
  expect(server().operations.settled).toEqual([]);
});
