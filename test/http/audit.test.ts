import Fastify from "fastify";
import { createServer } from "node:http";
import { connect } from "node:net";
import { Readable } from "node:stream";
import { beforeEach, expect, test } from "vitest";
import type { NewEntry } from "../../src/audit/entry.js";
import { makeKeyText, maskOf, newKeySalt } from "../../src/base/crypto/key-text.js";
import { Secret } from "../../src/base/crypto/secret.js";
import { done, RemudaError, refusal } from "../../src/base/errors.js";
import { AuditTrail } from "../../src/http/audit.js";
import type { App } from "../../src/http/bare-app.js";
import { refusalOfError, sendRefusal } from "../../src/http/errors.js";
import { makeClientAddress } from "../../src/base/net/client-address.js";
import { systemClock } from "../../src/base/clock.js";
import { refuseOnSocket } from "../../src/http/raw-reply.js";
import { until } from "../support/browser/chromium-until.js";
import { key, send, sharedServer } from "../support/http/http-server.js";

const entries: NewEntry[] = [];
beforeEach(() => void (entries.length = 0));
const audit = {
  record: (entry: NewEntry) => void entries.push(entry),
  recordNow: async (entry: NewEntry) => void entries.push(entry),
  async begin() {},
};
const interceptor = {
  request: () => false,
  upgrade: (_request: unknown, socket: Parameters<typeof refuseOnSocket>[0]) => {
    refuseOnSocket(socket, refusal("browser_gone"));
    return true;
  },
};
const server = sharedServer({ publicUrl: "http://remuda.example" }, { audit, interceptor });
const recorded = (count: number): Promise<readonly NewEntry[]> =>
  until("entries", () => (entries.length >= count ? entries : undefined));

test("a request leaves one entry, without its query and with its route's template", async () => {
  await send(`${server().url}/browsers/abc?include_deleted=true&token=secret`, {
    headers: { "user-agent": "tester/1" },
  });
  const [entry, ...more] = await recorded(1);
  expect(more).toEqual([]);
  expect(entry).toMatchObject({
    authStrategy: "api_key",
    userId: "root",
    email: "root@remuda.invalid",
    status: 200,
    method: "GET",
    path: "/browsers/abc",
    route: "/browsers/{id_or_name}",
    domain: "127.0.0.1",
    clientIp: "127.0.0.1",
    userAgent: "tester/1",
  });
  expect(JSON.stringify(entries)).not.toContain("secret");
});

test("refusals leave theirs, also of unknown callers, unknown routes and unknown hosts", async () => {
  const ask = async (path: string, headers: Record<string, string> = {}, method = "GET") => {
    await send(server().url + path, { method, headers });
    const [entry] = await recorded(1);
    entries.length = 0;
    return [entry?.status, entry?.authStrategy, entry?.userId, entry?.route];
  };
  expect(await ask("/browsers", { authorization: "Bearer nobody" })).toEqual([401, "none", "", "/browsers"]);
  expect(await ask("/nowhere")).toEqual([404, "none", "", ""]);
  expect(await ask("/browsers?limit=x")).toEqual([400, "api_key", "root", "/browsers"]);
  expect(await ask("/browsers/%ff")).toEqual([400, "none", "", ""]);
  expect(await ask("/browser_pools/x", {}, "DELETE")).toEqual([
    204,
    "api_key",
    "root",
    "/browser_pools/{id_or_name}",
  ]);
  server().operations.answer("pools.get", new Error("broken"));
  expect(await ask("/browser_pools/x")).toEqual([500, "api_key", "root", "/browser_pools/{id_or_name}"]);
  await rawly("GET /browsers HTTP/1.1\r\nHost: elsewhere.example\r\n\r\n");
  expect((await recorded(1))[0]).toMatchObject({
    status: 421,
    domain: "elsewhere.example",
    path: "/browsers",
  });
});

test("no entry has a key or a password that a caller has put into the path, the origin or its own name", async () => {
  const text = makeKeyText(new Secret("s"), newKeySalt()).reveal();
  const host = `Host: 127.0.0.1\r\nUser-Agent: curl ${text}\r\nConnection: close\r\n\r\n`;
  await rawly(`GET /org/api_keys/${text} HTTP/1.1\r\n${host}`);
  await rawly(`GET http://me:hunter2@127.0.0.1/browsers?x HTTP/1.1\r\n${host}`);
  await rawly(`GET /nowhere#token=${text} HTTP/1.1\r\n${host}`);
  const encoded = text
    .replaceAll("_", "%5F")
    .replaceAll(/[a-m]/g, (one) => `%${one.charCodeAt(0).toString(16)}`);
  await rawly(`GET /org/api_keys/${encoded} HTTP/1.1\r\n${host.replace(text, encoded)}`);
  const masked = maskOf(text);
  expect((await recorded(4)).map(({ path, userAgent }) => [path, userAgent])).toEqual([
    [`/org/api_keys/${masked}`, `curl ${masked}`],
    ["/browsers", `curl ${masked}`],
    ["/nowhere", `curl ${masked}`],
    [`/org/api_keys/${masked}`, `curl ${masked}`],
  ]);
  const told = JSON.stringify([entries, server().lines]);
  for (const secret of [text, encoded, "hunter2"]) expect(told).not.toContain(secret);
});

test("no entry and no line of the log has a key that a caller has put into Host or X-Request-Id", async () => {
  const text = makeKeyText(new Secret("s"), newKeySalt()).reveal();
  const masked = maskOf(text);
  const named = `Host: ${text}.example:80\r\nX-Request-Id: ${text}\r\nConnection: close\r\n`;
  expect(await rawly(`GET /browsers HTTP/1.1\r\n${named}\r\n`)).toMatch(/^HTTP\/1.1 421 /);
  server().operations.answer("pools.get", new Error("broken"));
  const failing = `Host: 127.0.0.1\r\nX-Request-Id: a/${text}\r\nAuthorization: Bearer ${key}\r\n`;
  expect(await rawly(`GET /browser_pools/x HTTP/1.1\r\n${failing}Connection: close\r\n\r\n`)).toMatch(
    /^HTTP\/1.1 500 [\s\S]*x-request-id: [0-9a-z]{24}\r\n/,
  );
  expect((await recorded(2)).map(({ status, domain }) => [status, domain])).toEqual([
    [421, `${masked}.example`],
    [500, "127.0.0.1"],
  ]);
  const { lines } = server();
  expect(lines.map(({ message }) => message)).toEqual(
    expect.arrayContaining(["request failed", "request answered"]),
  );
  expect(JSON.stringify([entries, lines])).not.toContain(text);
});

test("what is refused before it is a request of the API leaves one", async () => {
  const host = "Host: 127.0.0.1\r\n";
  expect(await rawly(`GET /browsers HTTP/1.1\r\n${host}Expect: wonders\r\n\r\n`)).toMatch(/^HTTP\/1.1 400 /);
  expect(await rawly(`CONNECT a.example:443 HTTP/1.1\r\n${host}\r\n`)).toMatch(/"method_not_allowed"/);
  expect((await recorded(2)).map(({ method, status, path }) => [method, status, path])).toEqual([
    ["GET", 400, "/browsers"],
    ["CONNECT", 404, "a.example:443"],
  ]);
});

test("probes, metrics and documents leave none", async () => {
  for (const path of ["/healthz", "/readyz", "/metrics", "/openapi.json", "/docs/static/index.html"])
    await send(server().url + path);
  await send(`${server().url}/browsers`);
  expect((await recorded(1)).map(({ path }) => path)).toEqual(["/browsers"]);
});

test("a caller that has hung up leaves one as well", async () => {
  let answer: (later: unknown) => void = () => {};
  const asked = new Promise<void>((resolve) =>
    server().operations.answer("pools.get", () => {
      resolve();
      return new Promise((later) => (answer = later));
    }),
  );
  const leaving = new AbortController();
  const gone = fetch(`${server().url}/browser_pools/x`, {
    signal: leaving.signal,
    headers: { authorization: `Bearer ${key}` },
  }).catch(() => {});
  await asked;
  leaving.abort();
  await gone;
  expect((await recorded(1))[0]).toMatchObject({ status: 499, path: "/browser_pools/x" });
  answer(refusal("pool_not_found"));
});

test("a stream is recorded when its response starts, once", async () => {
  const body = new Readable({ read() {} });
  body.push("begin ");
  server().operations.answer("profiles.download", done({ bytes: body }));
  const reply = await fetch(`${server().url}/profiles/x/download`, {
    headers: { authorization: `Bearer ${key}` },
  });
  expect((await recorded(1))[0]).toMatchObject({ status: 200, route: "/profiles/{id_or_name}/download" });
  body.push("end");
  body.push(null);
  expect(await reply.text()).toBe("begin end");
  await send(`${server().url}/browsers`);
  expect((await recorded(2)).map(({ path }) => path)).toEqual(["/profiles/x/download", "/browsers"]);
});

test("a socket is recorded when it is answered, without its token", async () => {
  await rawly(
    "GET /browsers/abc/cdp?token=secret HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
  );
  const [entry] = await recorded(1);
  expect(entry).toMatchObject({
    authStrategy: "lease",
    userId: "",
    status: 410,
    method: "GET",
    path: "/browsers/abc/cdp",
    route: "/browsers/{id}/cdp",
  });
  expect(JSON.stringify(entries)).not.toContain("secret");
});

test("no entry has the token of a browser's URL whose query a client has percent-encoded", async () => {
  const token = `${"a1".repeat(12)}.${"b-".repeat(21)}c`;
  await rawly(
    `GET /browsers/abc/cdp%3Ftoken=${token} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n`,
  );
  expect((await recorded(1))[0]).toMatchObject({ status: 404, path: "/browsers/abc/cdp%3Ftoken=...-b-c" });
  expect(JSON.stringify([entries, server().lines])).not.toContain(token);
});

/** What the server answers to bytes that are sent as they are, until it closes. */
function rawly(text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let got = "";
    const socket = connect(server().port, "127.0.0.1", () => socket.write(text));
    socket.setEncoding("utf8").on("data", (more: string) => (got += more));
    socket.on("close", () => resolve(got)).on("error", reject);
  });
}

interface Recording {
  room: boolean;
  now: boolean;
  body?: string;
}

/** A route that is answered once its entry is recorded, where it can be. */
async function firstRecorded({ room, now, body = "{}" }: Recording) {
  const seen: string[] = [];
  let begun: string | undefined;
  const fail = (isAble: boolean): void => {
    if (!isAble) throw new RemudaError("audit_unavailable");
  };
  const trail = new AuditTrail(
    {
      record: ({ intent }) => void seen.push(intent === begun ? "recorded later" : `recorded of ${intent}`),
      async recordNow({ intent }) {
        fail(now);
        seen.push(intent === begun ? "recorded" : `recorded of ${intent}`);
      },
      async begin(intent) {
        begun = intent;
        fail(room);
      },
    },
    systemClock,
    makeClientAddress([]),
  );
  const app = Fastify({
    serverFactory: (handler) =>
      createServer((request, response) => {
        trail.received(request, response);
        handler(request, response);
      }),
  });
  trail.watch(app as unknown as App);
  app.setErrorHandler((error, _request, reply) => sendRefusal(reply, refusalOfError(error)));
  app.post("/keys", { config: { audit: "first" } }, async () => {
    seen.push("changed");
    return "made";
  });
  await app.listen({ port: 0, host: "127.0.0.1" });
  const { port } = app.server.address() as { port: number };
  const headers = { "content-type": "application/json" };
  const reply = await fetch(`http://127.0.0.1:${port}/keys`, { method: "POST", headers, body });
  seen.push(String(reply.status));
  if (reply.status === 503) {
    const { code, message } = (await reply.json()) as { code: string; message: string };
    const mayRepeat = reply.headers.get("x-should-retry") ?? `after ${reply.headers.get("retry-after")}`;
    seen.push(message, code, mayRepeat);
  }
  await app.close();
  return seen;
}

test("a change that has to be on record is recorded before it is answered, and not made where it cannot be", async () => {
  expect(await firstRecorded({ room: true, now: true })).toEqual(["changed", "recorded", "200"]);
  // Who is told that it could not be done would do it again, the official client by itself.
  const told = [expect.stringContaining("This was done"), "audit_unconfirmed", "false"];
  expect(await firstRecorded({ room: true, now: false })).toEqual(["changed", "503", ...told]);
});

test("what is refused before it changes anything is answered as ever, though nothing can be recorded", async () => {
  const told = [expect.stringContaining("may not be done unrecorded"), "audit_unavailable", "after 1"];
  for (const now of [true, false])
    expect(await firstRecorded({ room: false, now })).toEqual(["recorded later", "503", ...told]);
  expect(await firstRecorded({ room: true, now: false, body: "{" })).toEqual(["recorded later", "400"]);
});
