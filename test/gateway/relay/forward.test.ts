import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";
import type { AddressInfo } from "node:net";
import { createServer as createTlsServer } from "node:tls";
import { chromium as playwright } from "playwright-core";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { nodeAddressOf } from "../../../src/daemon/gateway.js";
import type { NodeAddress } from "../../../src/gateway/ports.js";
import { until } from "../../support/browser/chromium-until.js";
import {
  type GatewayBed,
  getJson,
  openGatewayBed,
  refusedUpgrade,
} from "../../support/gateway/gateway-bed.js";
import { type GatewayBrowser, openGatewayBrowser } from "../../support/gateway/gateway-browser.js";
import { connectRaw } from "../../support/gateway/raw-cdp.js";
import { testCertificate, testKey } from "../../support/egress/egress-certificate.js";

let browser: GatewayBrowser;
let front: GatewayBed;
let address: NodeAddress | undefined;
let asked = 0;

beforeAll(async () => {
  // The node would send it on as well, if it did not see that it was sent on already.
  browser = await openGatewayBrowser({}, { findAddress: async () => ((asked += 1), address) });
  front = await openGatewayBed([], { findAddress: async () => ((asked += 1), address) });
});
afterAll(async () => {
  await front.close();
  await browser.close();
});

const there = (): NodeAddress => ({ host: "127.0.0.1", port: browser.bed.port });
const via = ({ port }: GatewayBed, url: string): string => url.replace(`:${browser.bed.port}/`, `:${port}/`);
const viaFront = (url: string): string => via(front, url);

test("a daemon without the browser forwards clients and discovery to its node", async () => {
  address = there();
  const client = await connectRaw(viaFront(browser.url()));
  expect((await client.send("Browser.getVersion")).result).toBeDefined();
  expect((await getJson(viaFront(browser.http("/json/version")))).body.webSocketDebuggerUrl).toBe(
    browser.url(),
  );
  await client.close();
  await until("the node has let it go", () => browser.bed.counts.closed === browser.bed.counts.opened);
});

test("Playwright works through a forwarding daemon", async () => {
  address = there();
  const connected = await playwright.connectOverCDP(viaFront(browser.url()));
  const page = await (await connected.newContext()).newPage();
  await page.setContent("<title>forwarded</title>");
  expect(await page.title()).toBe("forwarded");
  await connected.close();
});

test("large messages pass a forwarding daemon", async () => {
  address = there();
  const client = await connectRaw(viaFront(browser.url()));
  const session = await client.attach();
  expect(await client.evaluate(`"y".repeat(${20 * 1024 * 1024})`, session)).toHaveLength(20 * 1024 * 1024);
  await client.close();
});

test("a node's refusal reaches the caller as it is", async () => {
  address = there();
  const old = viaFront(browser.url());
  const oldHttp = viaFront(browser.http("/json/list"));
  browser.bed.newLease(browser.chromium.id);
  expect((await refusedUpgrade(old)).body).toEqual({
    code: "browser_gone",
    message: "The browser is gone: released",
  });
  expect((await getJson(oldHttp)).status).toBe(410);
});

test("a forged token is refused before any node is asked", async () => {
  address = there();
  const before = asked;
  expect((await refusedUpgrade(`${viaFront(browser.url())}x`)).status).toBe(401);
  expect(asked).toBe(before);
});

test("what was forwarded once is never forwarded again", async () => {
  // The front is told that the browser is on the front itself.
  address = { host: "127.0.0.1", port: front.port };
  const before = asked;
  expect((await refusedUpgrade(viaFront(browser.url()))).body.code).toBe("browser_gone");
  expect((await getJson(viaFront(browser.http("/json/list")))).body.code).toBe("browser_gone");
  expect(asked - before).toBe(2);
});

test("a node that cannot be reached is 502", async () => {
  const closed = await listening(createServer());
  address = portOf(closed);
  await stopped(closed);
  expect((await refusedUpgrade(viaFront(browser.url()))).body.code).toBe("node_unreachable");
  expect((await getJson(viaFront(browser.http("/json/list")))).status).toBe(502);
});

test("a node that takes the connection and says nothing is 503", async () => {
  const impatient = await openGatewayBed([], { limits: { answerMs: 300 }, findAddress: async () => address });
  const mute = await listening(createServer((socket) => socket.resume().on("error", () => {})));
  address = portOf(mute);
  expect((await getJson(via(impatient, browser.http("/json/list")))).body.code).toBe("node_silent");
  expect((await refusedUpgrade(via(impatient, browser.url()))).body.code).toBe("node_silent");
  await impatient.close();
  await stopped(mute);
});

test("a node that takes the connection and ends it without an answer is 502", async () => {
  const ending = await listening(createServer((socket) => socket.once("data", () => socket.end())));
  address = portOf(ending);
  expect((await refusedUpgrade(viaFront(browser.url()))).body.code).toBe("node_unreachable");
  await stopped(ending);
});

const upgradeHeaders =
  "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n";

test.each([
  ["a request", "destroy"],
  ["an upgrade", "destroy"],
  ["an upgrade", "end"],
] as const)("%s whose client goes early (%s) says nothing of the node", async (what, go) => {
  const suspected: NodeAddress[] = [];
  const patient = await openGatewayBed([], {
    findAddress: async () => address,
    unreachable: (node) => suspected.push(node),
  });
  const mute = await listening(createServer((socket) => socket.resume().on("error", () => {})));
  const dead = await listening(createServer());
  const [living, gone] = [portOf(mute), portOf(dead)];
  await stopped(dead);
  address = living;
  const taken = once(mute, "connection") as Promise<[Socket]>;
  const { pathname, search } = new URL(what === "a request" ? browser.http("/json/list") : browser.url());
  const client = connect(patient.port, "127.0.0.1").on("error", () => {});
  client.write(
    `GET ${pathname}${search} HTTP/1.1\r\nHost: 127.0.0.1\r\n${what === "a request" ? "" : upgradeHeaders}\r\n`,
  );
  const [socket] = await taken;
  await once(socket, "data");
  client[go]();
  await once(socket, "close");
  await stopped(mute);
  // Named after whatever the former was named for.
  address = gone;
  expect((await getJson(via(patient, browser.http("/json/list")))).status).toBe(502);
  expect(suspected).toEqual([gone]);
  client.destroy();
  await patient.close();
});

test("stopping the forwarding daemon ends what it forwards", async () => {
  address = there();
  const other = await openGatewayBed([], { findAddress: async () => address });
  const client = await connectRaw(via(other, browser.url()));
  await other.close();
  expect((await client.closed).code).toBe(1006);
});

const listening = (server: Server): Promise<Server> =>
  new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(server)));
const portOf = (server: Server): NodeAddress => ({
  host: "127.0.0.1",
  port: (server.address() as AddressInfo).port,
});
const stopped = (server: Server): Promise<unknown> => new Promise((resolve) => server.close(resolve));

/** Speaks TLS, and passes on what it carries to the node. */
async function openTls(): Promise<{ address: NodeAddress; close(): Promise<void> }> {
  const server = createTlsServer({ key: testKey, cert: testCertificate }, (socket) => {
    const onward = connect(browser.bed.port, "127.0.0.1");
    for (const end of [socket, onward])
      end.on("error", () => {}).once("close", () => (socket.destroy(), onward.destroy()));
    socket.pipe(onward).pipe(socket);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    address: { host: "127.0.0.1", port: (server.address() as AddressInfo).port, isSecure: true },
    close: async () => {
      server.close();
      await once(server, "close");
    },
  };
}

test("a node of an https address is reached by TLS, and by none that nobody vouches for", async () => {
  const tls = await openTls();
  address = tls.address;
  expect(await refusedUpgrade(viaFront(browser.url()))).toMatchObject({
    status: 502,
    body: { code: "node_unreachable" },
  });
  expect((await getJson(viaFront(browser.http("/json/version")))).status).toBe(502);
  // What NODE_EXTRA_CA_CERTS says at the start cannot be said now.
  process.env["NODE_TLS_REJECT_UNAUTHORIZED"] = "0";
  onTestFinished(() => void delete process.env["NODE_TLS_REJECT_UNAUTHORIZED"]);
  const client = await connectRaw(viaFront(browser.url()));
  expect((await client.send("Browser.getVersion")).result).toBeDefined();
  await client.close();
  expect((await getJson(viaFront(browser.http("/json/version")))).status).toBe(200);
  await tls.close();
});

test.each<[string | null, NodeAddress]>([
  ["https://node.example", { host: "node.example", port: 443, isSecure: true }],
  ["https://node.example:8443", { host: "node.example", port: 8443, isSecure: true }],
  ["http://node.example", { host: "node.example", port: 80 }],
  ["http://[fd00::1]:4701", { host: "fd00::1", port: 4701 }],
  [null, { host: "10.0.0.7", port: 4700 }],
])("a node whose address is %s is reached at %j", (node, expected) => {
  expect(nodeAddressOf({ node: { address: node }, server: { host: "10.0.0.7" } } as never, 4700)).toEqual(
    expected,
  );
});
