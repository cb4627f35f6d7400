import { once } from "node:events";
import { Agent } from "node:http";
import { connect as connectTls } from "node:tls";
import type { Socket } from "node:net";
import { afterEach, expect, test } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import {
  type BedOptions,
  type EgressBed,
  openEgress,
  resolveBy,
  rulesFor,
} from "../support/egress/egress-bed.js";
import { testCertificate } from "../support/egress/egress-certificate.js";
import {
  bodyOf,
  closeOf,
  openSocket,
  openTunnel,
  readText,
  sendRaw,
} from "../support/egress/egress-client.js";
import { openOrigin, openRawOrigin, openSecureOrigin } from "../support/egress/egress-origin.js";
import { freePort } from "../support/free-port.js";
import { until } from "../support/browser/chromium-until.js";

const closing: (() => Promise<unknown> | unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});
const kept = <Thing extends { close(): unknown }>(thing: Thing): Thing => {
  closing.push(() => thing.close());
  return thing;
};
const bedFor = async (rules: Parameters<typeof openEgress>[0], options?: BedOptions): Promise<EgressBed> => {
  const bed = await openEgress(rules, options);
  kept(bed.egress);
  return bed;
};
const echo = async () => kept(await openRawOrigin((socket) => socket.pipe(socket)));
const mebibyte = 2 ** 20;

test("a tunnel carries bytes both ways, those sent together with the CONNECT too", async () => {
  const origin = await echo();
  const bed = await bedFor(rulesFor([`127.0.0.1:${origin.port}`]));
  const socket = await openSocket(bed.port);
  socket.write(`CONNECT 127.0.0.1:${origin.port} HTTP/1.1\r\n\r\nearly`);
  const answer = await readText(socket, (text) => text.endsWith("early"));
  expect(answer).toMatch(/^HTTP\/1\.1 200 [^\r]*\r\n\r\nearly$/);
  socket.end(" late");
  expect(await readText(socket)).toBe(" late");
  await until("the tunnel is over", async () => bed.egress.usage().connections === 0);
  expect(bed.egress.usage()).toEqual({
    requests: 1,
    denied: {},
    bytesSent: 10,
    bytesReceived: 10,
    connections: 0,
  });
  expect(bed.carried).toEqual({ sent: 10, received: 10 });
  expect(bed.outcomes).toEqual(["direct"]);
});

test("a client that has ended its side is still answered, and an origin's last bytes arrive before its end", async () => {
  const origin = kept(
    await openRawOrigin(
      (socket) => void socket.on("data", () => {}).once("end", () => socket.end("answer after the end")),
    ),
  );
  const bed = await bedFor(rulesFor([`127.0.0.1:${origin.port}`]));
  const { socket } = await openTunnel(bed.port, `127.0.0.1:${origin.port}`);
  socket.end("all");
  expect(await readText(socket)).toBe("answer after the end");
});

test.each(["origin", "browser"])("a reset by the %s ends the other side", async (who) => {
  const origin = kept(await openRawOrigin((socket) => void socket.resume()));
  const bed = await bedFor(rulesFor([`127.0.0.1:${origin.port}`]));
  const { socket } = await openTunnel(bed.port, `127.0.0.1:${origin.port}`);
  const [inner] = origin.accepted as [Socket];
  socket.resume();
  const [first, other] = who === "origin" ? [inner, socket] : [socket, inner];
  const closed = closeOf(other);
  first.resetAndDestroy();
  await closed;
  await until("the tunnel is over", async () => bed.egress.usage().connections === 0);
});

test("64 MiB reach a slow reader whole, and wait at the origin meanwhile", async () => {
  const piece = Buffer.alloc(mebibyte, 7);
  const origin = kept(
    await openRawOrigin((socket) => {
      let left = 64;
      const more = (): void => {
        while (left > 0 && socket.write(piece)) left -= 1;
        if (left <= 0) socket.end();
        else left -= 1;
      };
      socket.on("drain", more).once("data", more);
    }),
  );
  const bed = await bedFor(rulesFor([`127.0.0.1:${origin.port}`]));
  const { socket } = await openTunnel(bed.port, `127.0.0.1:${origin.port}`);
  socket.write("go on");
  socket.pause();
  let last = -1;
  // Nobody reads: what has passed stops growing once the kernel's buffers are full.
  await until("nothing moves", async () => last === (last = bed.egress.usage().bytesReceived) && last > 0);
  expect(last).toBeLessThan(24 * mebibyte);
  let bytes = 0;
  for await (const data of socket as AsyncIterable<Buffer>) bytes += data.length;
  expect(bytes).toBe(64 * mebibyte);
});

test("64 MiB sent to an origin that does not read wait at the browser", async () => {
  const origin = kept(await openRawOrigin((socket) => void socket.pause()));
  const bed = await bedFor(rulesFor([`127.0.0.1:${origin.port}`]));
  const { socket } = await openTunnel(bed.port, `127.0.0.1:${origin.port}`);
  socket.end(Buffer.alloc(64 * mebibyte));
  let last = -1;
  await until("nothing moves", async () => last === (last = bed.egress.usage().bytesSent) && last > 0);
  expect(last).toBeLessThan(24 * mebibyte);
  const [inner] = origin.accepted as [Socket];
  let bytes = 0;
  for await (const data of inner as AsyncIterable<Buffer>) bytes += data.length;
  expect(bytes).toBe(64 * mebibyte);
});

test("TLS passes unread", async () => {
  const origin = kept(await openSecureOrigin((_, reply) => reply.end("secret")));
  const bed = await bedFor(rulesFor([`127.0.0.1:${origin.port}`]));
  const { socket } = await openTunnel(bed.port, `127.0.0.1:${origin.port}`);
  const secure = connectTls({ socket, ca: testCertificate, host: "127.0.0.1" });
  secure.write("GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  expect(bodyOf(await readText(secure))).toContain("secret");
});

test("a WebSocket passes through a tunnel, as Chromium asks for it", async () => {
  const origin = kept(await openOrigin((_, reply) => reply.end()));
  const sockets = new WebSocketServer({ server: origin.server });
  sockets.on("connection", (client) =>
    client.on("message", (data) => client.send(`heard ${data.toString()}`)),
  );
  const bed = await bedFor(rulesFor([`127.0.0.1:${origin.port}`]));
  const { socket } = await openTunnel(bed.port, `127.0.0.1:${origin.port}`);
  const agent = new Agent();
  agent.createConnection = () => socket;
  const client = new WebSocket(`ws://127.0.0.1:${origin.port}/`, { agent });
  await once(client, "open");
  client.send("hello");
  expect(String((await once(client, "message"))[0])).toBe("heard hello");
  client.terminate();
});

test("a denied target gets 403 with the rule, and the log names neither path nor secret", async () => {
  const bed = await bedFor(rulesFor([], ["allowed.test"]));
  const { status, answer } = await openTunnel(bed.port, "denied.test:443");
  expect(status).toBe(403);
  expect(answer).toMatch(/\r\nX-Remuda-Egress: denied\r\n/);
  expect(JSON.parse(bodyOf(answer))).toMatchObject({ code: "egress_denied", rule: "allowed_hosts" });
  expect(bed.lines).toEqual([
    {
      level: "info",
      message: "egress denied",
      fields: {
        browser: expect.any(String),
        count: 1,
        by: { allowed_hosts: 1 },
        host: "denied.test",
        port: 443,
      },
    },
  ]);
  expect(bed.egress.usage()).toMatchObject({ requests: 1, denied: { allowed_hosts: 1 }, bytesSent: 0 });
  expect(bed.outcomes).toEqual(["allowed_hosts"]);
});

test("a target that cannot be reached gets 502", async () => {
  const port = await freePort();
  const bed = await bedFor(rulesFor([`127.0.0.1:${port}`]));
  const { status, answer } = await openTunnel(bed.port, `127.0.0.1:${port}`);
  expect(status).toBe(502);
  expect(answer).toContain("X-Remuda-Egress: failed");
});

test("the next address is tried where one does not answer, and no name is resolved twice", async () => {
  const origin = await echo();
  const asked: string[] = [];
  const resolve = resolveBy({ "site.test": ["127.0.0.9", "127.0.0.1"] });
  const bed = await bedFor(rulesFor(["127.0.0.0/8"]), {
    parts: { resolve: (host) => (asked.push(host), resolve(host)) },
  });
  const { status, socket } = await openTunnel(bed.port, `site.test:${origin.port}`);
  expect(status).toBe(200);
  socket.destroy();
  expect(asked).toEqual(["site.test"]);
});

test.each([
  ["no port", "CONNECT site.test HTTP/1.1\r\nHost: site.test\r\n\r\n"],
  ["an empty port", "CONNECT site.test: HTTP/1.1\r\n\r\n"],
  ["port 0", "CONNECT site.test:0 HTTP/1.1\r\n\r\n"],
  ["a port that is too large", "CONNECT site.test:65536 HTTP/1.1\r\n\r\n"],
  ["a path", "CONNECT site.test:443/path HTTP/1.1\r\n\r\n"],
  ["user information", "CONNECT user@site.test:443 HTTP/1.1\r\n\r\n"],
  ["a URL", "CONNECT http://site.test:443 HTTP/1.1\r\n\r\n"],
  ["no host", "CONNECT :443 HTTP/1.1\r\n\r\n"],
  ["IPv6 without brackets", "CONNECT ::1:443 HTTP/1.1\r\n\r\n"],
  ["a zone", "CONNECT [fe80::1%25lo]:443 HTTP/1.1\r\n\r\n"],
  ["a wildcard", "CONNECT *.test:443 HTTP/1.1\r\n\r\n"],
])("CONNECT with %s is refused as malformed", async (_, text) => {
  const bed = await bedFor(rulesFor([]));
  expect(await sendRaw(bed.port, text)).toMatch(/^HTTP\/1\.1 400 /);
  expect(bed.egress.usage().requests).toBe(0);
});

test.each([
  "[::1]:443",
  "localhost:443",
  "LOCALHOST.:443",
  "2130706433:443",
  "0x7f.1:443",
  "127.0.0.2:443",
  "[::ffff:127.0.0.1]:443",
  "0:443",
  "169.254.169.254:80",
])("CONNECT %s is denied, however loopback is written", async (target) => {
  const bed = await bedFor(rulesFor([]));
  expect(await openTunnel(bed.port, target)).toMatchObject({ status: 403 });
});

test("a tunnel on which nothing moves is cut", async () => {
  const origin = kept(await openRawOrigin((socket) => void socket.resume()));
  const bed = await bedFor(rulesFor([`127.0.0.1:${origin.port}`]), { settings: { idleMs: 100 } });
  const { socket } = await openTunnel(bed.port, `127.0.0.1:${origin.port}`);
  socket.resume();
  await closeOf(socket);
  await expect.poll(() => bed.egress.usage().connections).toBe(0);
});
