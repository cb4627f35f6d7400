import { expect, test } from "vitest";
import type { Pool } from "../../../src/pool/pool.js";
import { send, type Sent, sharedServer } from "../../support/http/http-server.js";
import { pool, poolSpec, session } from "../../support/http/recorded-operations.js";
import { poolBody, sessionBody } from "../../support/http/expected-bodies.js";

const server = sharedServer();
const ask = (path: string, sent: Sent = {}) => send(`${server().url}${path}`, sent);
const called = () => server().operations.calls.map(({ operation, args }) => [operation, ...args.slice(0, 2)]);

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
    spec: { ...poolSpec, telemetry, browser_policy: { A: 1 }, network: { allowed_hosts: ["a.example"] } },
  };
  server().operations.answer("pools.get", { kind: "done", value: shown });
  const { body } = await ask(`/browser_pools/${pool.id}`);
  expect(body.fill).toEqual(fill);
  expect(body).not.toHaveProperty("name");
  expect(body.browser_pool_config).toEqual({
    ...poolSpec,
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
