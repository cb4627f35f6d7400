import { expect, test } from "vitest";
import { refusal } from "../../../src/base/errors.js";
import { send, type Sent, sharedServer } from "../../support/http/http-server.js";
import { poolSpec, session, tombstone } from "../../support/http/recorded-operations.js";
import { deletedBody, sessionBody } from "../../support/http/expected-bodies.js";

const server = sharedServer();
const ask = (path: string, sent: Sent = {}) => send(`${server().url}${path}`, sent);
const called = () => server().operations.calls.map(({ operation, args }) => [operation, ...args.slice(0, 2)]);

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
      ...poolSpec,
      start_url: "https://pool.example/",
      proxy_id: "p1",
      network: { allowed_hosts: ["*.example"], private_hosts: [] },
    },
    telemetry: { enabled: true },
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
