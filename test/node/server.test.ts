import { request, type ServerResponse } from "node:http";
import { connect, type Socket } from "node:net";
import { once } from "node:events";
import { afterAll, beforeAll, expect, test } from "vitest";
import { makeHostCheck } from "../../src/base/net/host-check.js";
import { Secret } from "../../src/base/crypto/secret.js";
import { listenAsNodeServer } from "../../src/node/server.js";
import { makeLogBook } from "../support/http/http-server.js";

const key = "the_key_of_this_suite";
const upgraded: string[] = [];
type Server = Awaited<ReturnType<typeof listenAsNodeServer>>;
const usual = { requestTimeoutMs: 5000, maxConnections: 100 };
type Ask = Parameters<typeof listenAsNodeServer>[1]["gateway"]["request"];
const listen = (host: string, limits = usual, ask: Ask = () => false): Promise<Server> =>
  listenAsNodeServer(
    { host, port: 0, ...limits },
    {
      direct: { request: () => false },
      gateway: {
        request: ask,
        upgrade: (asked, socket) => void (upgraded.push(asked.headers.host ?? ""), socket.destroy()),
      },
      log: makeLogBook().log,
      unready: () => undefined,
      hasStore: () => true,
      metrics: { contentType: "text/plain", text: async () => "remuda_nodes 1\n" },
      key: new Secret(key),
      hosts: makeHostCheck({ host, urls: ["http://node.example.com"] }),
    },
  );

let local: Server;
let open: Server;
beforeAll(async () => {
  [local, open] = await Promise.all([listen("127.0.0.1"), listen("0.0.0.0")]);
});
afterAll(() => Promise.all([local.close(), open.close()]));

async function get(
  server: Server,
  path: string,
  headers: Record<string, string>,
): Promise<number | undefined> {
  const asking = request({ host: "127.0.0.1", port: server.port, path, headers, agent: false }).end();
  const [reply] = await once(asking, "response");
  reply.resume();
  expect(reply.headers).toMatchObject({
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
  });
  return reply.statusCode;
}

test("the metrics of a node can be read with the key wherever it listens, and without it on loopback alone", async () => {
  const authorization = `Bearer ${key}`;
  expect(await get(local, "/metrics", { host: "localhost:1" })).toBe(200);
  expect(await get(local, "/metrics", { host: "node.example.com" })).toBe(401);
  expect(await get(local, "/metrics", { host: "node.example.com", authorization })).toBe(200);
  expect(await get(open, "/metrics", { host: "localhost" })).toBe(401);
  expect(await get(open, "/metrics", { host: "10.0.0.1", authorization: "Bearer wrong" })).toBe(401);
  expect(await get(open, "/metrics", { host: "10.0.0.1", authorization })).toBe(200);
});

test("a node on loopback is not reached by a name that was made to resolve to it", async () => {
  for (const path of ["/metrics", "/healthz", "/readyz", "/browsers/b/cdp/json"])
    expect(await get(local, path, { host: "evil.test", authorization: `Bearer ${key}` })).toBe(421);
  expect(await get(open, "/healthz", { host: "evil.test" })).toBe(200);
  const headers = {
    host: "evil.test",
    connection: "Upgrade",
    upgrade: "websocket",
    "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
    "sec-websocket-version": "13",
  };
  expect(await get(local, "/browsers/b/cdp?token=t", headers)).toBe(421);
  expect(upgraded).toEqual([]);
});

/** Says the text, and then a letter of a header again and again. */
function drip(server: Server, text: string): Socket {
  const socket = connect(server.port, "127.0.0.1", () => socket.write(text));
  const dripping = setInterval(() => socket.write("x"), 20);
  socket.on("error", () => {}).once("close", () => clearInterval(dripping));
  return socket.resume();
}

/** However it was closed. */
const closeOf = (socket: Socket): Promise<void> =>
  new Promise((resolve) => socket.once("close", () => resolve()));

test.each([
  ["a request", "GET /healthz HTTP/1.1\r\nhost: localhost\r\nx-a: "],
  ["an upgrade", "GET /browsers/b/cdp HTTP/1.1\r\nhost: localhost\r\nupgrade: websocket\r\nconnection: "],
])("%s that never arrives, letter by letter, is cut", async (_, text) => {
  const server = await listen("127.0.0.1", { ...usual, requestTimeoutMs: 200 });
  await closeOf(drip(server, text));
  expect(upgraded).toEqual([]);
  await server.close();
});

test("there are no more connections than may be", async () => {
  const server = await listen("127.0.0.1", { ...usual, maxConnections: 2 });
  const sockets = [1, 2, 3].map(() => drip(server, "GET / HTTP/1.1\r\nhost: localhost\r\nx-a: "));
  await Promise.race(sockets.map(closeOf));
  expect(sockets.filter(({ closed }) => !closed)).toHaveLength(2);
  for (const socket of sockets) socket.destroy();
  await server.close();
});

test("who hangs up has gone for each of the requests that were sent in a row", async () => {
  const waiting: ServerResponse[] = [];
  let gone = 0;
  const server = await listen("127.0.0.1", usual, (_, response) => {
    waiting.push(response.once("close", () => (gone += 1)));
    return true;
  });
  const curl = "POST /browsers/b/curl?token=t HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\n\r\n";
  const socket = connect(server.port, "127.0.0.1", () => socket.write(curl.repeat(3)));
  await expect.poll(() => waiting.length).toBe(3);
  socket.destroy();
  await expect.poll(() => gone).toBe(3);
  await server.close();
});
