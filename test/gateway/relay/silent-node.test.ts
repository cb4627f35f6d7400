import { once } from "node:events";
import { createServer as createHttpServer, type ServerResponse } from "node:http";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { expect, onTestFinished, test } from "vitest";
import { defaultGatewayLimits } from "../../../src/gateway/limits.js";
import { forwardRequest, forwardUpgrade } from "../../../src/gateway/relay/forward.js";
import { KeptConnections } from "../../../src/gateway/relay/kept-connections.js";
import { until } from "../../support/browser/chromium-until.js";
import { DrivenClock } from "../../support/driven-clock.js";
import { openGatewayBed } from "../../support/gateway/gateway-bed.js";
import { openGatewayBrowser } from "../../support/gateway/gateway-browser.js";
import { connectRaw } from "../../support/gateway/raw-cdp.js";

const { pingMs } = defaultGatewayLimits;
const portOf = (server: { address(): unknown }): number => (server.address() as AddressInfo).port;

/** A client forwarded to a node that has answered; `front` is its socket at the forwarding daemon. */
async function forwarded(): Promise<{ clock: DrivenClock; client: Socket; node: Socket; front: Duplex }> {
  const clock = new DrivenClock();
  const nodes = createServer((socket) => socket.on("error", () => {})).listen(0, "127.0.0.1");
  await once(nodes, "listening");
  const address = { host: "127.0.0.1", port: portOf(nodes) };
  const fronts = createHttpServer();
  const kept = new KeptConnections();
  fronts.on("upgrade", (request, socket, head) => {
    const route = { address, clock, kept, limits: defaultGatewayLimits };
    forwardUpgrade({ request, socket: socket.on("error", () => {}), head }, route);
  });
  fronts.listen(0, "127.0.0.1");
  await once(fronts, "listening");
  const client = connect(portOf(fronts), "127.0.0.1").on("error", () => {});
  client.write("GET /x HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
  const [[, front], [node]] = (await Promise.all([once(fronts, "upgrade"), once(nodes, "connection")])) as [
    [unknown, Duplex],
    [Socket],
  ];
  await once(node, "data");
  node.write("HTTP/1.1 101 Switching Protocols\r\n\r\n");
  await once(client, "data");
  const frontClosed = new Promise((done) => front.once("close", done));
  onTestFinished(async () => {
    client.destroy();
    node.destroy();
    await Promise.all([new Promise((done) => nodes.close(done)), new Promise((done) => fronts.close(done))]);
    kept.close();
    await frontClosed;
    expect(clock.pending).toBe(0);
  });
  return { clock, client, node, front };
}

test("a client whose node has died without a word is told when three pings have not come", async () => {
  const { clock, client, node, front } = await forwarded();
  for (let ping = 0; ping < 5; ping += 1) {
    node.write("a ping");
    await once(client, "data");
    await clock.advance(pingMs);
  }
  await clock.advance(pingMs);
  await clock.advance(pingMs);
  expect(front.destroyed).toBe(false);
  const closed = once(client, "close");
  await clock.advance(pingMs);
  await closed;
});

test("a daemon that stood still itself reads what has come meanwhile before it ends a client", async () => {
  const { clock, client, node, front } = await forwarded();
  clock.stand(10 * pingMs);
  await clock.advance(0);
  await clock.advance(pingMs);
  expect(front.destroyed).toBe(false);
  node.write("a ping");
  await once(client, "data");
  await clock.advance(pingMs);
  await clock.advance(pingMs);
  expect(front.destroyed).toBe(false);
});

test("a client that reads nothing is the node's to judge: nothing of that is read here", async () => {
  const { clock, client, node, front } = await forwarded();
  client.pause();
  node.write(Buffer.alloc(32 * 1024 * 1024));
  await until("nothing more can be sent on", () => front.writableNeedDrain);
  for (let look = 0; look < 10; look += 1) await clock.advance(pingMs);
  expect(front.destroyed).toBe(false);
});

interface ForwardedRequest {
  readonly clock: DrivenClock;
  readonly caller: Socket;
  readonly node: Socket;
  /** The answer at the forwarding daemon. */
  readonly front: ServerResponse;
}

/** A request whose answer a node has begun, and its caller, who has read that. */
async function forwardedRequest(): Promise<ForwardedRequest> {
  const clock = new DrivenClock();
  const nodes = createServer((socket) => socket.on("error", () => {})).listen(0, "127.0.0.1");
  await once(nodes, "listening");
  const address = { host: "127.0.0.1", port: portOf(nodes) };
  const kept = new KeptConnections();
  const route = { address, clock, kept, limits: defaultGatewayLimits };
  const fronts = createHttpServer((request, response) => forwardRequest({ request, response, route }));
  const asked = once(fronts, "request") as Promise<[unknown, ServerResponse]>;
  fronts.listen(0, "127.0.0.1");
  await once(fronts, "listening");
  const caller = connect(portOf(fronts), "127.0.0.1").on("error", () => {});
  caller.write("POST /browsers/x/curl HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}");
  const [node] = (await once(nodes, "connection")) as [Socket];
  await once(node, "data");
  node.write("HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\nbegun");
  let read = "";
  while (!read.endsWith("begun")) read += String((await once(caller, "data"))[0]);
  onTestFinished(async () => {
    caller.destroy();
    node.destroy();
    await Promise.all([new Promise((done) => nodes.close(done)), new Promise((done) => fronts.close(done))]);
    kept.close();
    await until("nothing is watched any more", () => clock.pending === 0);
  });
  const [, front] = await asked;
  return { clock, caller, node, front };
}

test("an answer that a node has begun, and never ends because it has died without a word, ends after a while", async () => {
  const { clock, caller, node } = await forwardedRequest();
  for (let piece = 0; piece < 5; piece += 1) {
    node.write("a piece");
    await once(caller, "data");
    await clock.advance(pingMs);
  }
  await clock.advance(2 * pingMs);
  expect(caller.destroyed).toBe(false);
  const closed = once(caller, "close");
  await clock.advance(pingMs);
  await closed;
});

test("one that its caller does not read is the node's to judge", async () => {
  const { clock, caller, node, front } = await forwardedRequest();
  caller.pause();
  node.write(Buffer.alloc(32 * 1024 * 1024));
  await until("nothing more can be sent on", () => front.writableNeedDrain);
  for (let look = 0; look < 10; look += 1) await clock.advance(pingMs);
  expect(caller.destroyed).toBe(false);
});

test("a client that says nothing is not ended as long as its node pings it", async () => {
  const limits = { pingMs: 50 };
  const browser = await openGatewayBrowser({}, { limits });
  const address = { host: "127.0.0.1", port: browser.bed.port };
  const front = await openGatewayBed([], { limits: { pingMs: 100 }, findAddress: async () => address });
  const client = await connectRaw(browser.url().replace(`:${browser.bed.port}/`, `:${front.port}/`));
  for (let ping = 0; ping < 20; ping += 1) await once(client.socket, "ping");
  expect((await client.send("Browser.getVersion")).result).toBeDefined();
  await client.close();
  await front.close();
  await browser.close();
});
