import { once } from "node:events";
import { createServer as createHttpServer } from "node:http";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { expect, onTestFinished, test } from "vitest";
import { defaultGatewayLimits } from "../../src/gateway/limits.js";
import { forwardUpgrade } from "../../src/gateway/relay/forward.js";
import { KeptConnections } from "../../src/gateway/relay/kept-connections.js";
import { until } from "../support/browser/chromium-until.js";
import { DrivenClock } from "../support/driven-clock.js";
import { openGatewayBed } from "../support/gateway/gateway-bed.js";
import { openGatewayBrowser } from "../support/gateway/gateway-browser.js";
import { connectRaw } from "../support/gateway/raw-cdp.js";

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
