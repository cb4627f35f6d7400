import { createServer } from "node:http";
import { connect, type Socket } from "node:net";
import { afterEach, expect, test } from "vitest";
import type { RequestInterceptor } from "../../src/http/request-interceptor.js";
import { key, send, startServer, type TestServer } from "../support/http/http-server.js";

const servers: TestServer[] = [];
const sockets: Socket[] = [];
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await Promise.all(servers.splice(0).map((server) => server.close()));
});
async function start(...args: Parameters<typeof startServer>): Promise<TestServer> {
  const server = await startServer(...args);
  servers.push(server);
  return server;
}

interface RawConnection {
  readonly socket: Socket;
  text(): string;
  isClosed(): boolean;
}
/** A connection on which `text` was written as it is. */
function openRaw(server: TestServer, text: string): RawConnection {
  const socket = connect(server.port, "127.0.0.1");
  sockets.push(socket);
  let got = "";
  let closed = false;
  socket.on("data", (chunk) => {
    got += chunk.toString();
  });
  socket.on("error", () => {});
  socket.on("close", () => {
    closed = true;
  });
  socket.write(text);
  return { socket, text: () => got, isClosed: () => closed };
}
const bodyOf = (text: string): unknown => JSON.parse(text.slice(text.indexOf("\r\n\r\n")));
const upgradeText = (path: string): string =>
  `GET ${path} HTTP/1.1\r\nhost: localhost\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\r\n`;
const acquireText = `POST /browser_pools/herd/acquire HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${key}\r\ncontent-length: 0\r\n\r\n`;

/** Acquires wait until told otherwise. */
function holdAcquires(server: TestServer): { release: () => void; waiting: () => number } {
  const waiting: (() => void)[] = [];
  server.operations.answer(
    "pools.acquire",
    () => new Promise((resolve) => waiting.push(() => resolve({ kind: "timed-out" }))),
  );
  return { release: () => waiting.forEach((done) => done()), waiting: () => waiting.length };
}

test.each([
  ["not HTTP", "hello\r\n\r\n", "The request is not well-formed HTTP"],
  [
    "headers too large",
    `GET / HTTP/1.1\r\nhost: localhost\r\na: ${"x".repeat(20_000)}\r\n\r\n`,
    "The request's headers are larger than is accepted",
  ],
  [
    "two lengths",
    "POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
    "The request is not well-formed HTTP",
  ],
  [
    "an unknown expectation",
    "POST /browsers HTTP/1.1\r\nhost: localhost\r\nexpect: miracles\r\n\r\n",
    "The Expect header asks for what is not known",
  ],
  ["no host", "GET /healthz HTTP/1.1\r\n\r\n", "The Host header is missing"],
])("%s is answered 400 with the flat body, and the connection closed", async (_what, text, message) => {
  const server = await start();
  const got = openRaw(server, text);
  await expect.poll(got.isClosed).toBe(true);
  expect(got.text()).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n[\s\S]*x-request-id: [0-9a-z]{24}\r\n/);
  expect(bodyOf(got.text())).toEqual({ code: "bad_request", message });
});

test("a request that does not arrive in time is refused", async () => {
  const server = await start({ headersTimeoutMs: 300, requestTimeoutMs: 300 });
  const got = openRaw(server, "GET /healthz HTTP/1.1\r\nhost: localhost\r\n");
  await expect.poll(got.isClosed).toBe(true);
  expect(bodyOf(got.text())).toEqual({ code: "bad_request", message: "The request did not arrive in time" });
});

test("an answer may take longer than a request may take to arrive", async () => {
  const server = await start({ headersTimeoutMs: 1000, requestTimeoutMs: 1000 });
  const slow = openRaw(server, "GET /healthz HTTP/1.1\r\nhost: localhost\r\n");
  const held = holdAcquires(server);
  const got = openRaw(server, acquireText);
  await expect.poll(held.waiting).toBe(1);
  await expect.poll(slow.isClosed).toBe(true);
  held.release();
  await expect.poll(got.text).toMatch(/^HTTP\/1\.1 204 No Content\r\n[\s\S]*retry-after: 0\r\n/);
});

test("a connection on which nothing moves is cut", async () => {
  const server = await start({ silenceTimeoutMs: 1000 });
  const held = holdAcquires(server);
  const got = openRaw(server, acquireText);
  await expect.poll(held.waiting).toBe(1);
  await expect.poll(got.isClosed).toBe(true);
  held.release();
});

test("a browser's own URLs and every upgrade go to the interceptor first; what it leaves is refused", async () => {
  const seen: string[] = [];
  const interceptor: RequestInterceptor = {
    request(request, response) {
      seen.push(`request ${request.url}`);
      if (request.url?.includes("/webdriver")) return false;
      response.end("from the interceptor");
      return true;
    },
    upgrade(request, socket) {
      seen.push(`upgrade ${request.url}`);
      if (request.url !== "/browsers/x/cdp?token=t") return false;
      socket.end("HTTP/1.1 101 Switching Protocols\r\n\r\n");
      return true;
    },
  };
  const server = await start({}, { interceptor });
  for (const path of ["/browsers/x/cdp", "/browsers/x/cdp/json/version/", "/browsers/x/cdp?token=t"]) {
    expect((await send(`${server.url}${path}`)).text).toBe("from the interceptor");
  }
  expect(await send(`${server.url}/browsers/x/webdriver`)).toMatchObject({
    status: 404,
    body: { code: "route_not_found" },
  });
  for (const path of ["/browsers/x/cdpx", "/browsers/x", "/browser_pools/x/cdp"])
    await send(`${server.url}${path}`);
  expect(seen).toEqual(
    [
      "/browsers/x/cdp",
      "/browsers/x/cdp/json/version/",
      "/browsers/x/cdp?token=t",
      "/browsers/x/webdriver",
    ].map((path) => `request ${path}`),
  );
  const taken = openRaw(server, upgradeText("/browsers/x/cdp?token=t"));
  await expect.poll(taken.text).toMatch(/^HTTP\/1\.1 101/);
  const left = openRaw(server, upgradeText("/nowhere"));
  await expect.poll(left.isClosed).toBe(true);
  expect(bodyOf(left.text())).toMatchObject({ code: "route_not_found" });
  expect(seen.slice(-2)).toEqual(["upgrade /browsers/x/cdp?token=t", "upgrade /nowhere"]);
});

test("an interceptor that throws is answered 500 and does not end the process", async () => {
  const fail = (): never => {
    throw new Error("interceptor broke");
  };
  const server = await start({}, { interceptor: { request: fail, upgrade: fail } });
  const request = openRaw(server, "GET /browsers/x/cdp HTTP/1.1\r\nhost: localhost\r\n\r\n");
  const upgrade = openRaw(server, upgradeText("/browsers/x/cdp"));
  for (const got of [request, upgrade]) {
    await expect.poll(got.isClosed).toBe(true);
    expect(bodyOf(got.text())).toMatchObject({ code: "internal" });
  }
  expect(server.lines.filter((line) => line.level === "error")).toHaveLength(2);
  expect((await send(`${server.url}/healthz`)).status).toBe(200);
});

test("close lets replies in flight end, closes idle connections at once, and takes no more", async () => {
  const server = await start({ closeLimitMs: 30_000 });
  const held = holdAcquires(server);
  const idle = openRaw(server, "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n");
  await expect.poll(idle.text).toContain("200 OK");
  const waiting = openRaw(server, acquireText);
  await expect.poll(held.waiting).toBe(1);
  const closed = server.close();
  await expect.poll(idle.isClosed).toBe(true);
  expect(waiting.isClosed()).toBe(false);
  waiting.socket.write("GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n");
  held.release();
  await closed;
  // The server has handed its reply to the kernel; the client is still to read it.
  await expect.poll(waiting.isClosed).toBe(true);
  expect(waiting.text()).toMatch(/^HTTP\/1\.1 204/);
  await expect(send(`${server.url}/healthz`)).rejects.toThrow();
});

test("a request that arrives as the server closes is answered, and its connection closed", async () => {
  const server = await start({ closeLimitMs: 30_000 });
  const late = openRaw(server, acquireText.slice(0, 20));
  const seen = openRaw(server, "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n");
  await expect.poll(seen.text).toContain("200 OK");
  const closed = server.close();
  await expect.poll(seen.isClosed).toBe(true);
  server.operations.answer("pools.acquire", () => Promise.resolve({ kind: "timed-out" }));
  late.socket.write(acquireText.slice(20));
  await expect.poll(late.isClosed).toBe(true);
  expect(late.text()).toMatch(/^HTTP\/1\.1 204[^]*\r\nconnection: close\r\n/i);
  await closed;
});

test.each(["drain", "close"] as const)(
  "%s lets a reply that waits for its reader leave whole",
  async (way) => {
    const whole = "x".repeat(32 * 2 ** 20);
    let hasEnded = false;
    const request: RequestInterceptor["request"] = (_, response) => {
      response.end(whole);
      hasEnded = true;
      return true;
    };
    const server = await start({ closeLimitMs: 30_000 }, { interceptor: { request, upgrade: () => false } });
    const slow = openRaw(server, "GET /browsers/x/cdp HTTP/1.1\r\nhost: localhost\r\n\r\n");
    slow.socket.pause();
    await expect.poll(() => hasEnded).toBe(true);
    const stopped = server[way]();
    slow.socket.resume();
    await expect.poll(() => slow.text().length).toBeGreaterThan(whole.length);
    await stopped;
  },
);

test("close cuts what does not end within the limit, upgraded connections included", async () => {
  const server = await start(
    { closeLimitMs: 100 },
    { interceptor: { request: () => false, upgrade: () => true } },
  );
  const held = holdAcquires(server);
  const waiting = openRaw(server, acquireText);
  const upgraded = openRaw(server, upgradeText("/browsers/x/cdp"));
  await expect.poll(held.waiting).toBe(1);
  await server.close();
  await expect.poll(() => waiting.isClosed() && upgraded.isClosed()).toBe(true);
  expect(server.lines).toContainEqual(
    expect.objectContaining({ level: "warn", message: "replies in flight were cut" }),
  );
});

test("while draining requests are answered and their connections closed", async () => {
  const server = await start();
  server.drain();
  const got = await send(`${server.url}/browsers`);
  expect(got.status).toBe(200);
  expect(got.headers.get("connection")).toBe("close");
});

test("who came before the drain and is answered in it is told to ask elsewhere too", async () => {
  const server = await start();
  const held = holdAcquires(server);
  const waiting = openRaw(server, acquireText);
  await expect.poll(held.waiting).toBe(1);
  server.drain();
  held.release();
  await expect.poll(waiting.isClosed).toBe(true);
  expect(waiting.text()).toMatch(/^HTTP\/1\.1 204[^]*\r\nconnection: close\r\n/i);
});

test("a port that is taken is an error, and nothing is left behind", async () => {
  const other = createServer();
  await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
  const { port } = other.address() as { port: number };
  await expect(startServer({ port })).rejects.toThrow(`port ${port} of 127.0.0.1 is taken`);
  await new Promise((resolve) => other.close(resolve));
});

test("readiness and health: one says whether to send requests here, the other that the process answers", async () => {
  const state: { reason?: string; hasStore: boolean } = { hasStore: true };
  const server = await start(
    {},
    {
      readiness: { unready: () => state.reason, hasStore: () => state.hasStore, vaultSafety: () => "lossy" },
    },
  );
  expect(await send(`${server.url}/readyz`)).toMatchObject({
    status: 200,
    body: { status: "ready", store: "connected", vaults: "lossy" },
  });
  state.hasStore = false;
  expect(await send(`${server.url}/readyz`)).toMatchObject({
    status: 200,
    body: { status: "ready", store: "lost" },
  });
  state.reason = "The store has not been reached yet";
  const got = await send(`${server.url}/readyz`);
  expect(got).toMatchObject({ status: 503, body: { code: "unavailable", message: state.reason } });
  expect(got.headers.get("retry-after")).toBe("1");
  expect(await send(`${server.url}/healthz`)).toMatchObject({ status: 200, body: { status: "ok" } });
  expect((await fetch(`${server.url}/healthz`, { method: "HEAD" })).status).toBe(200);
});

test("a request is logged without its query, and only where it is asked for", async () => {
  const [loud, quiet] = [await start({ logsRequests: true }), await start({ logsRequests: false })];
  for (const server of [loud, quiet]) await send(`${server.url}/browsers?query=private`);
  await expect.poll(() => loud.lines).toHaveLength(1);
  expect(loud.lines[0]).toMatchObject({
    level: "debug",
    message: "request answered",
    fields: { method: "GET", path: "/browsers", status: 200, tookMs: expect.any(Number) },
  });
  expect(quiet.lines).toEqual([]);
});
