import { connect } from "node:net";
import { expect, test } from "vitest";
import { makeKeyText, newKeySalt } from "../../../src/base/crypto/key-text.js";
import { Secret } from "../../../src/base/crypto/secret.js";
import type { Caller } from "../../../src/spec/caller.js";
import { key, send, sharedServer, startServer } from "../../support/http/http-server.js";

const server = sharedServer();
const withoutProjects = sharedServer({}, { projects: undefined });
const callerOf = async (headers: Record<string, string>, body: object = {}): Promise<Caller> => {
  await send(`${server().url}/browser_pools/herd/acquire`, { method: "POST", body, headers });
  return server().operations.calls.at(-1)?.args[2] as Caller;
};

const operations: readonly [string, string][] = [
  ["POST", "/browser_pools"],
  ["GET", "/browser_pools"],
  ["GET", "/browser_pools/x"],
  ["PATCH", "/browser_pools/x"],
  ["DELETE", "/browser_pools/x"],
  ["POST", "/browser_pools/x/acquire"],
  ["POST", "/browser_pools/x/release"],
  ["POST", "/browser_pools/x/flush"],
  ["GET", "/browser_pools/x/browsers"],
  ["POST", "/browsers"],
  ["GET", "/browsers"],
  ["GET", "/browsers/x"],
  ["PATCH", "/browsers/x"],
  ["DELETE", "/browsers/x"],
  ["GET", "/auth/context"],
  ["GET", "/projects"],
  ["POST", "/org/projects"],
  ["PATCH", "/org/projects/x"],
];
const wrongKeys = [
  "",
  "Bearer",
  "Bearer ",
  `Basic ${key}`,
  `Bearer ${key}x`,
  `Bearer ${key.slice(1)}`,
  `Bearer ${key} ${key}`,
  key,
];

test.each(operations)("%s %s needs the key", async (method, path) => {
  for (const authorization of wrongKeys) {
    const got = await send(`${server().url}${path}`, { method, headers: { authorization } });
    expect(got).toMatchObject({ status: 401, body: { code: "unauthorized" } });
    expect(got.headers.get("www-authenticate")).toBe(
      // RFC 6750, 3.1: who has shown no token is not told that it is bad.
      /^bearer +\S+$/i.test(authorization) ? 'Bearer error="invalid_token"' : "Bearer",
    );
    expect(got.text).not.toContain(key);
  }
  expect(server().operations.calls).toEqual([]);
});

test.each(["/healthz", "/readyz", "/metrics", "/openapi.json", "/docs"])(
  "%s needs no key on a loopback address",
  async (path) => {
    expect((await send(`${server().url}${path}`, { headers: { authorization: "" } })).status).toBe(200);
  },
);

test("/metrics needs the key where others can connect", async () => {
  const open = await startServer({ host: "0.0.0.0" });
  try {
    expect((await send(`${open.url}/metrics`, { headers: { authorization: "" } })).status).toBe(401);
    expect(await send(`${open.url}/metrics`)).toMatchObject({ status: 200, text: "remuda_nodes 1\n" });
  } finally {
    await open.close();
  }
});

test("the one project is default; any other is not found", async () => {
  expect(
    (await send(`${server().url}/browsers`, { headers: { "x-kernel-project-id": "default" } })).status,
  ).toBe(200);
  expect(
    await send(`${server().url}/browsers`, { headers: { "x-kernel-project-id": "proj_1" } }),
  ).toMatchObject({ status: 404, body: { code: "project_not_found" } });
});

test.each(["/projects", "/org/projects", "/projects/x", "/org/projects/x/limits"])(
  "%s says that projects are disabled, whatever is sent",
  async (path) => {
    for (const method of ["GET", "POST", "PATCH", "PUT", "DELETE"]) {
      const sent =
        method === "GET" ? {} : { text: "{nonsense", headers: { "content-type": "application/json" } };
      expect(await send(`${withoutProjects().url}${path}`, { method, ...sent })).toMatchObject({
        status: 404,
        body: { code: "projects_disabled" },
      });
    }
  },
);

test("the context of the root key has all four parts, nulls explicit", async () => {
  expect((await send(`${server().url}/auth/context`)).body).toEqual({
    authentication: { method: "api_key", source: "api_key", credential_id: "root" },
    principal: { type: "api_key", id: "root" },
    organization: { id: "default" },
    authorization: { credential_scope: { project_id: null }, effective_scope: { project_id: null } },
  });
});

test("a sane request id is answered back and any other replaced; the operation's is always ours", async () => {
  const ours = /^[0-9a-z]{24}$/;
  for (const [given, answered] of [
    ["trace-1/2", /^trace-1\/2$/],
    ["a b", ours],
    ["x".repeat(129), ours],
    [`id=${makeKeyText(new Secret("s"), newKeySalt()).reveal()}`, ours],
  ] as const) {
    const got = await send(`${server().url}/browser_pools/herd/acquire`, {
      method: "POST",
      headers: { "x-request-id": given },
    });
    expect(got.headers.get("x-request-id")).toMatch(answered);
    expect(server().operations.calls.at(-1)?.args[2]).toMatchObject({ request: expect.stringMatching(ours) });
  }
});

test("the operation learns the idempotency key, the attempt and the lease", async () => {
  const lease = "a".repeat(24);
  expect(
    await callerOf({
      "idempotency-key": "order-1",
      "x-stainless-retry-count": "2",
      "x-remuda-lease-id": lease,
    }),
  ).toMatchObject({ idempotencyKey: "order-1", retryCount: 2, lease });
  const plain = await callerOf({});
  expect(plain).toMatchObject({ retryCount: 0 });
  expect("idempotencyKey" in plain || "lease" in plain).toBe(false);
  expect(await callerOf({ "x-stainless-retry-count": "-1" })).toMatchObject({ retryCount: 0 });
});

test("a release may name its lease in the body", async () => {
  const lease_id = "b".repeat(24);
  await send(`${server().url}/browser_pools/herd/release`, {
    method: "POST",
    body: { session_id: "x", lease_id },
  });
  expect(server().operations.calls.at(-1)?.args[2]).toMatchObject({ lease: lease_id });
});

test("gone aborts when the connection closes before the reply, and not when the reply has ended", async () => {
  const signals: AbortSignal[] = [];
  server().operations.answer("pools.acquire", ((_ref: string, _body: object, caller: Caller) => {
    signals.push(caller.gone);
    return signals.length === 1 ? aborted(caller.gone) : { kind: "timed-out" };
  }) as never);
  const socket = connect(server().port, "127.0.0.1");
  socket.write(
    `POST /browser_pools/herd/acquire HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${key}\r\ncontent-length: 0\r\n\r\n`,
  );
  await expect.poll(() => signals.length).toBe(1);
  expect(signals[0]?.aborted).toBe(false);
  socket.destroy();
  await expect.poll(() => signals[0]?.aborted).toBe(true);
  await send(`${server().url}/browser_pools/herd/acquire`, { method: "POST" });
  await send(`${server().url}/healthz`);
  expect(signals[1]?.aborted).toBe(false);
});

const aborted = (signal: AbortSignal): Promise<{ kind: "timed-out" }> =>
  new Promise((resolve) =>
    signal.addEventListener("abort", () => resolve({ kind: "timed-out" }), { once: true }),
  );
