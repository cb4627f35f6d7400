import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";
import type { AddressInfo } from "node:net";
import { createServer as createTlsServer } from "node:tls";
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from "vitest";
import type { NodeAddress } from "../../../src/gateway/ports.js";
import { until } from "../../support/browser/chromium-until.js";
import { testCertificate, testKey } from "../../support/egress/egress-certificate.js";
import { type GatewayBed, getJson, openGatewayBed, rawAnswer } from "../../support/gateway/gateway-bed.js";
import { type GatewayBrowser, openGatewayBrowser } from "../../support/gateway/gateway-browser.js";
import { connectRaw } from "../../support/gateway/raw-cdp.js";

let browser: GatewayBrowser;
let front: GatewayBed;
let address: NodeAddress;

beforeAll(async () => {
  browser = await openGatewayBrowser();
});
afterAll(() => browser.close());
beforeEach(async () => {
  front = await openGatewayBed([], { findAddress: async () => address });
  onTestFinished(() => front.close());
});

const viaFront = (url: string): string => url.replace(`:${browser.bed.port}/`, `:${front.port}/`);
const version = async (): Promise<unknown> => {
  const { status, body } = await getJson(viaFront(browser.http("/json/version")));
  return { status, url: body["webSocketDebuggerUrl"] };
};

/** Stands before the node: counts the connections that come. */
interface Counted {
  readonly taken: Socket[];
}
async function count(server: Server, isSecure = false): Promise<Counted> {
  const counted: Counted = { taken: [] };
  server.on(isSecure ? "secureConnection" : "connection", (socket: Socket) => {
    counted.taken.push(socket);
    const onward = connect(browser.bed.port, "127.0.0.1");
    for (const end of [socket, onward])
      end.on("error", () => {}).once("close", () => (socket.destroy(), onward.destroy()));
    socket.pipe(onward).pipe(socket);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  address = {
    host: "127.0.0.1",
    port: (server.address() as AddressInfo).port,
    ...(isSecure && { isSecure }),
  };
  onTestFinished(async () => {
    for (const socket of counted.taken) socket.destroy();
    server.close();
    await once(server, "close");
  });
  return counted;
}

test("requests for discovery share a connection to the node, one after the other, whoever asks", async () => {
  const { taken } = await count(createServer());
  for (let times = 0; times < 10; times += 1) {
    expect(await version()).toEqual({ status: 200, url: browser.url() });
    // Each is another lease, and so another holder: nothing of the one before is answered to it.
    const former = viaFront(browser.http("/json/list"));
    browser.bed.newLease(browser.chromium.id);
    expect((await getJson(former)).status).toBe(410);
  }
  expect(taken).toHaveLength(1);
});

test("requests at the same time have a connection each, and are answered what they asked", async () => {
  const { taken } = await count(createServer());
  const ask = async (): Promise<void> => {
    const answers = await Promise.all(Array.from({ length: 8 }, version));
    expect(answers).toEqual(Array.from({ length: 8 }, () => ({ status: 200, url: browser.url() })));
  };
  await ask();
  await ask();
  expect(taken.length).toBeLessThanOrEqual(8);
});

test("over TLS connections are kept as well", async () => {
  process.env["NODE_TLS_REJECT_UNAUTHORIZED"] = "0";
  onTestFinished(() => void delete process.env["NODE_TLS_REJECT_UNAUTHORIZED"]);
  const { taken } = await count(createTlsServer({ key: testKey, cert: testCertificate }), true);
  for (let times = 0; times < 3; times += 1) expect(await version()).toMatchObject({ status: 200 });
  expect(taken).toHaveLength(1);
});

test("a connection is nobody else's where its answer was broken off", async () => {
  const { taken } = await count(createServer());
  expect(await version()).toMatchObject({ status: 200 });
  taken[0]?.unpipe();
  taken[0]?.resume();
  const asking = connect(front.port, "127.0.0.1").on("error", () => {});
  const { pathname, search } = new URL(browser.http("/json/version"));
  asking.write(`GET ${pathname}${search} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`);
  await once(taken[0] as Socket, "data");
  asking.destroy();
  await until("it closed", () => taken[0]?.destroyed);
  expect(await version()).toMatchObject({ status: 200 });
  expect(taken).toHaveLength(2);
});

test("a request that finds its kept connection closed is asked again on another", async () => {
  const { taken } = await count(createServer());
  expect(await version()).toMatchObject({ status: 200 });
  // As a node does whose time for idle connections is over at this very moment.
  taken[0]?.once("data", () => taken[0]?.resetAndDestroy());
  expect(await version()).toMatchObject({ status: 200 });
  expect(taken).toHaveLength(2);
});

test("what has a body, and each WebSocket, has a connection of its own", async () => {
  const { taken } = await count(createServer());
  expect(await version()).toMatchObject({ status: 200 });
  const { pathname, search } = new URL(browser.http("/json/version"));
  const hidden = "GET /hidden HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
  const bodies = [
    `Connection: close, content-length\r\nContent-Length: ${hidden.length}\r\n\r\n${hidden}`,
    `Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n${hidden.length.toString(16)}\r\n${hidden}\r\n0\r\n\r\n`,
  ];
  for (const [at, body] of bodies.entries()) {
    const asked = `GET ${pathname}${search} HTTP/1.1\r\nHost: 127.0.0.1\r\n${body}`;
    expect(await rawAnswer(front.port, asked)).toMatch(/^HTTP\/1\.1 200/);
    expect(taken).toHaveLength(at + 2);
  }
  const client = await connectRaw(viaFront(browser.url()));
  expect((await client.send("Browser.getVersion")).result).toBeDefined();
  expect(taken).toHaveLength(4);
  await client.close();
  expect(await version()).toMatchObject({ status: 200 });
  expect(taken).toHaveLength(4);
});

test("a daemon that stops closes the connections that it keeps", async () => {
  const { taken } = await count(createServer());
  expect(await version()).toMatchObject({ status: 200 });
  await front.gateway.close();
  await until("it closed", () => taken[0]?.destroyed);
});
