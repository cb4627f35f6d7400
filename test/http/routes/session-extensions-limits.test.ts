import { connect, type Socket } from "node:net";
import { afterEach, expect, test } from "vitest";
import type { HttpOptions } from "../../../src/http/deps.js";
import { key, startServer, type TestServer } from "../../support/http/http-server.js";
import { multipartBody, multipartType } from "../../support/http/multipart-body.js";
import { stagingBed } from "../../support/archive/staging-bed.js";

const { staging, files } = await stagingBed();
const servers: TestServer[] = [];
const sockets: Socket[] = [];
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await Promise.all(servers.splice(0).map((server) => server.close()));
  await expect.poll(files).toEqual([]);
});

async function start(options: Partial<HttpOptions>): Promise<TestServer> {
  const server = await startServer(options, { staging });
  servers.push(server);
  return server;
}

interface RawConnection {
  readonly socket: Socket;
  text(): string;
}
function open({ port }: TestServer, ...sent: readonly (string | Buffer)[]): RawConnection {
  const socket = connect(port, "127.0.0.1");
  sockets.push(socket);
  let got = "";
  socket.on("data", (chunk: Buffer) => (got += chunk.toString())).on("error", () => {});
  for (const one of sent) socket.write(one);
  return { socket, text: () => got };
}

const body = multipartBody([
  { name: "extensions.name", content: "one" },
  {
    name: "extensions.zip_file",
    content: Buffer.alloc(100_000),
    filename: "a.zip",
    type: "application/octet-stream",
  },
]);
const head = (path: string, type: string, length: number): string =>
  `POST ${path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${key}\r\ncontent-type: ${type}\r\ncontent-length: ${length}\r\n\r\n`;
const uploadHead = head("/browsers/mine/extensions", multipartType, body.length);
const slowJson = `${head("/browsers", "application/json", 100)}{`;

test("an upload may take longer than other requests and pause longer; the next request of its connection may not", async () => {
  const server = await start({ headersTimeoutMs: 600, requestTimeoutMs: 600, silenceTimeoutMs: 1500 });
  const upload = open(server, uploadHead, body.subarray(0, 50_000));
  await expect.poll(files).toHaveLength(1);
  // Each is cut after more time than an ordinary request has.
  for (let at = 0; at < 3; at += 1) {
    const other = open(server, slowJson);
    await expect.poll(() => other.socket.closed).toBe(true);
    expect(upload.socket.closed).toBe(false);
  }
  upload.socket.write(body.subarray(50_000));
  await expect.poll(upload.text).toMatch(/^HTTP\/1\.1 201 /);
  upload.socket.write(slowJson);
  const tick = setInterval(() => upload.socket.write(" "), 20);
  await expect.poll(() => upload.socket.closed).toBe(true);
  clearInterval(tick);
  expect(upload.text()).toContain("The request did not arrive in time");
  expect(server.operations.received).toHaveLength(1);
});

test("other requests keep the limit for the whole of them, however they trickle", async () => {
  const server = await start({ headersTimeoutMs: 200, requestTimeoutMs: 200 });
  const { socket, text } = open(server, slowJson);
  const tick = setInterval(() => socket.write(" "), 20);
  await expect.poll(() => socket.closed).toBe(true);
  clearInterval(tick);
  expect(text()).toContain("The request did not arrive in time");
});

test("an upload that sends nothing for its limit is refused and its connection closed", async () => {
  const server = await start({ uploads: { maxFileBytes: 1e6, stallMs: 300, limitMs: 60_000 } });
  const { socket, text } = open(server, uploadHead, body.subarray(0, 50_000));
  await expect.poll(() => socket.closed).toBe(true);
  expect(text()).toMatch(/^HTTP\/1\.1 400 [\s\S]*Nothing of the body arrived for 0.3 seconds/);
});

test("an upload that trickles is refused when its time is over", async () => {
  const server = await start({ uploads: { maxFileBytes: 1e6, stallMs: 60_000, limitMs: 500 } });
  const { socket, text } = open(server, uploadHead, body.subarray(0, 50_000));
  const tick = setInterval(() => socket.write("x"), 20);
  await expect.poll(() => socket.closed).toBe(true);
  clearInterval(tick);
  expect(text()).toMatch(/^HTTP\/1\.1 400 [\s\S]*The body did not arrive within 0.5 seconds/);
});
