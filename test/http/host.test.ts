import { once } from "node:events";
import { connect } from "node:net";
import { expect, test } from "vitest";
import { key, sharedServer, startServer } from "../support/http/http-server.js";

const upgrades: string[] = [];
const server = sharedServer(
  { publicUrl: "https://remuda.example.com" },
  {
    interceptor: {
      request: (_, response) => (response.writeHead(200).end("a browser's page"), true),
      upgrade: (request, socket) => (
        upgrades.push(request.headers.host ?? ""),
        socket.end("HTTP/1.1 101 Switching Protocols\r\n\r\n"),
        true
      ),
    },
  },
);

/** What is answered to exactly these lines. */
async function answerTo(port: number, ...lines: string[]): Promise<{ status: number; text: string }> {
  const socket = connect(port, "127.0.0.1");
  socket.on("error", () => {});
  socket.write([...lines, "connection: close", "", ""].join("\r\n"));
  let text = "";
  socket.setEncoding("utf8").on("data", (piece: string) => (text += piece));
  await once(socket, "close");
  return { status: Number(text.split(" ")[1]), text };
}
const get = (path: string, host: string, ...more: string[]) =>
  answerTo(server().port, `GET ${path} HTTP/1.1`, `host: ${host}`, ...more);
const upgradeLines = [
  "upgrade: websocket",
  "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==",
  "sec-websocket-version: 13",
];
const upgrade = (host: string, ...more: string[]) =>
  answerTo(
    server().port,
    "GET /browsers/b/cdp?token=t HTTP/1.1",
    `host: ${host}`,
    ...upgradeLines,
    ...more,
    "connection: Upgrade",
  );

const authorization = `authorization: Bearer ${key}`;
const paths = [
  "/metrics",
  "/docs",
  "/docs/json",
  "/openapi.json",
  "/healthz",
  "/readyz",
  "/browsers",
  "/nowhere",
  "/browsers/b/cdp/json/version",
  "/browsers/b/cdp/json",
];

test.each(paths)(
  "a page whose name was made to resolve to loopback is told nothing by %s, the key included",
  async (path) => {
    for (const host of ["rebound.evil.test:4700", "localhost.evil.test", "10.0.0.1"]) {
      const { status, text } = await get(path, host, authorization);
      expect(status).toBe(421);
      expect(JSON.parse(text.slice(text.indexOf("\r\n\r\n")))).toMatchObject({ code: "misdirected" });
    }
    expect(server().operations.calls).toEqual([]);
    for (const host of ["localhost:4700", "127.0.0.1", "[::1]:4700", "remuda.example.com"])
      expect((await get(path, host, authorization)).status).not.toBe(421);
  },
);

test("an upgrade is held to the host; a page of any origin may open one, since it has to know the token", async () => {
  expect((await upgrade("rebound.evil.test", "origin: http://rebound.evil.test")).status).toBe(421);
  expect(upgrades).toEqual([]);
  expect((await upgrade("127.0.0.1:4700", "origin: https://console.example.com")).status).toBe(101);
  expect(upgrades).toEqual(["127.0.0.1:4700"]);
});

test("/metrics needs the key unless both the address and the name are loopback's", async () => {
  expect((await get("/metrics", "localhost")).status).toBe(200);
  expect((await get("/metrics", "remuda.example.com")).status).toBe(401);
  expect((await get("/metrics", "remuda.example.com", authorization)).status).toBe(200);
  expect((await answerTo(server().port, "GET /metrics HTTP/1.0")).status).toBe(401);
  const open = await startServer({ host: "0.0.0.0" });
  expect((await answerTo(open.port, "GET /metrics HTTP/1.1", "host: localhost")).status).toBe(401);
  expect((await answerTo(open.port, "GET /metrics HTTP/1.1", "host: any.test", authorization)).status).toBe(
    200,
  );
  await open.close();
});

test("every answer says that it is no page, of no page's, and what it is", async () => {
  const answers = [
    ...(await Promise.all(
      [
        "/healthz",
        "/browsers",
        "/nowhere",
        "/docs",
        "/docs/static/swagger-ui.css",
        "/openapi.json",
        "/metrics",
        "/%zz",
      ].map((path) => get(path, "localhost")),
    )),
    await get("/healthz", "evil.test"),
    await answerTo(server().port, "nonsense"),
    await answerTo(server().port, "PUT / HTTP/1.1", "host: localhost", "expect: much"),
  ];
  for (const { text } of answers) {
    const head = text.slice(0, text.indexOf("\r\n\r\n")).toLowerCase();
    expect(head).toMatch(/content-security-policy: default-src 'none';.* frame-ancestors 'none'/);
    for (const line of [
      "x-content-type-options: nosniff",
      "referrer-policy: no-referrer",
      "cross-origin-resource-policy: same-origin",
    ])
      expect(head).toContain(line);
  }
});

test("a request with two Host headers is refused, since others may read the second", async () => {
  expect((await get("/healthz", "localhost", "Host: other.test")).status).toBe(400);
  expect((await upgrade("localhost", "Host: other.test")).status).toBe(400);
  expect(upgrades).not.toContain("localhost");
});
