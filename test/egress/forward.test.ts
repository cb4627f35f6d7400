import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import type { Socket } from "node:net";
import { expect, test } from "vitest";
import { until } from "../support/browser/chromium-until.js";
import { ask, bodyOf, openSocket, readText, sendRaw } from "../support/egress/egress-client.js";
import { rawSite, site } from "../support/egress/forwarding.js";

test("path, query and headers go on as they were sent, without those of the connection, and the URL's host counts", async () => {
  let head = "";
  const { bed, url, origin } = await rawSite((socket, text) => {
    head = text;
    socket.end(
      "HTTP/1.1 200 Fine\r\nSet-Cookie: a=1\r\nset-cookie: b=2\r\nX-Name: kept\r\nx-remuda-EGRESS: denied\r\nConnection: X-Hop, close\r\nX-Hop: 1\r\nProxy-Authenticate: Basic\r\nContent-Length: 2\r\n\r\nok",
    );
  });
  const sent = [
    `GET ${url}/a/../b%20c?d=e%26 HTTP/1.1`,
    "Host: elsewhere.test",
    "X-Case: Kept",
    "Cookie: c=1",
    "Proxy-Connection: keep-alive",
    "Proxy-Authorization: Basic eDp5",
    "Connection: close, X-Drop",
    "X-Drop: 1",
    "Keep-Alive: 5",
    "TE: trailers",
    "Accept: */*",
  ];
  const answer = await sendRaw(bed.port, [...sent, "", ""].join("\r\n"));
  expect(head.split("\r\n")).toEqual([
    "GET /a/../b%20c?d=e%26 HTTP/1.1",
    `Host: 127.0.0.1:${origin.port}`,
    "X-Case: Kept",
    "Cookie: c=1",
    "Accept: */*",
    "Connection: keep-alive",
    "",
    "",
  ]);
  expect(answer.split("\r\n")).toEqual([
    "HTTP/1.1 200 Fine",
    "Set-Cookie: a=1",
    "set-cookie: b=2",
    "X-Name: kept",
    "Content-Length: 2",
    "Connection: close",
    "",
    "ok",
  ]);
});

test("bodies of unknown length pass both ways as they come, with their trailers", async () => {
  const { bed, url } = await site((asked, reply) => {
    reply.writeHead(200, { trailer: "x-sum" });
    asked.on("data", (data: Buffer) => reply.write(`[${data.toString()}]`));
    asked.once("end", () => {
      reply.addTrailers({ "x-sum": `after ${asked.trailers["x-asked"]}` });
      reply.end();
    });
  });
  const asking = request({
    host: "127.0.0.1",
    port: bed.port,
    method: "POST",
    path: `${url}/`,
    agent: false,
    headers: { "transfer-encoding": "chunked", trailer: "x-asked" },
  });
  asking.write("one");
  const [answer] = (await once(asking, "response")) as [IncomingMessage];
  expect(String((await once(answer, "data"))[0])).toBe("[one]");
  asking.addTrailers({ "x-asked": "all" });
  asking.end("two");
  let text = "";
  for await (const data of answer as AsyncIterable<Buffer>) text += data.toString();
  expect(text).toBe("[two]");
  expect(answer.trailers).toEqual({ "x-sum": "after all" });
});

test.each(["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "GET"])(
  "a %s with a body and one without go on as they are",
  async (method) => {
    const { bed, url } = await site(async (asked, reply) => {
      let body = "";
      for await (const piece of asked as AsyncIterable<Buffer>) body += piece.toString();
      reply.end(
        `${asked.method} ${asked.headers["content-length"]} ${asked.headers["transfer-encoding"]} ${body}`,
      );
    });
    expect(
      await ask(bed.port, url, { method, body: "text", headers: { "content-length": "4" } }),
    ).toMatchObject({ status: 200, text: `${method} 4 undefined text` });
    const none = await sendRaw(bed.port, `${method} ${url} HTTP/1.1\r\nConnection: close\r\n\r\n`);
    expect(bodyOf(none)).toContain(
      `${method} ${["POST", "PUT", "PATCH"].includes(method) ? "0" : "undefined"} undefined `,
    );
  },
);

test("HEAD, 204 and 304 have no body and keep the connection in step", async () => {
  const { bed, url } = await site((asked, reply) => {
    if (asked.method === "HEAD") return reply.writeHead(200, { "content-length": 5 }).end();
    if (asked.url === "/204") return reply.writeHead(204).end();
    if (asked.url === "/304") return reply.writeHead(304, { etag: "x" }).end();
    return reply.end("body");
  });
  const asked = [`HEAD ${url}/`, `GET ${url}/204`, `GET ${url}/304`, `GET ${url}/last`].map(
    (line) => `${line} HTTP/1.1\r\n`,
  );
  const answer = await sendRaw(bed.port, `${asked.join("\r\n")}Connection: close\r\n\r\n`);
  expect(answer.match(/HTTP\/1\.1 \d+/g)).toEqual([
    "HTTP/1.1 200",
    "HTTP/1.1 204",
    "HTTP/1.1 304",
    "HTTP/1.1 200",
  ]);
  expect(answer).toMatch(/Content-Length: 5\r\n/i);
  expect(answer.endsWith("body")).toBe(true);
});

test("an answer that ends with its connection is whole; one that breaks off does not look whole", async () => {
  const whole = await rawSite((socket) => socket.end("HTTP/1.1 200 OK\r\n\r\nall of it"));
  expect(await ask(whole.bed.port, whole.url)).toMatchObject({ status: 200, text: "all of it" });
  const broken = await rawSite((socket) => socket.end("HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\npart"));
  await expect(ask(broken.bed.port, broken.url)).rejects.toThrow(/aborted|ECONNRESET/);
});

test("100-continue comes from the origin, and its refusal too", async () => {
  const { bed, url, origin } = await site(
    (asked, reply) => void asked.resume().once("end", () => reply.end("taken")),
  );
  origin.server.on("checkContinue", (asked: IncomingMessage, reply) => {
    if (asked.url === "/no") return reply.writeHead(417).end();
    reply.writeContinue();
    return asked.resume().once("end", () => reply.end("taken"));
  });
  const headers = { expect: "100-continue", "content-length": "4" };
  const asking = request({
    host: "127.0.0.1",
    port: bed.port,
    method: "POST",
    path: `${url}/yes`,
    agent: false,
    headers,
  });
  asking.flushHeaders();
  await once(asking, "continue");
  asking.end("body");
  expect(((await once(asking, "response")) as [IncomingMessage])[0].statusCode).toBe(200);
  const refused = request({
    host: "127.0.0.1",
    port: bed.port,
    method: "POST",
    path: `${url}/no`,
    agent: false,
    headers,
  });
  refused.flushHeaders();
  expect(((await once(refused, "response")) as [IncomingMessage])[0].statusCode).toBe(417);
  refused.on("error", () => {}).destroy();
});

test("a plain request for another protocol becomes a tunnel", async () => {
  const { bed, url, origin } = await site((_, reply) => reply.end());
  let head: IncomingMessage | undefined;
  origin.server.on("upgrade", (asked: IncomingMessage, socket: Socket, early: Buffer) => {
    head = asked;
    socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n");
    socket.write(early);
    socket.pipe(socket);
  });
  const socket = await openSocket(bed.port);
  socket.write(
    `GET ${url}/up HTTP/1.1\r\nHost: elsewhere.test\r\nConnection: keep-alive, Upgrade\r\nUpgrade: echo\r\nProxy-Authorization: Basic x\r\n\r\nhello`,
  );
  expect(await readText(socket, (text) => text.endsWith("hello"))).toMatch(/^HTTP\/1\.1 101 /);
  expect(head?.url).toBe("/up");
  expect(head?.headers).toEqual({ host: `127.0.0.1:${origin.port}`, connection: "Upgrade", upgrade: "echo" });
  socket.destroy();
});

test("connections to an origin are kept for requests without a body, and one it has closed is no failure", async () => {
  const { bed, url, origin } = await site(
    (asked, reply) => void asked.resume().once("end", () => reply.end("ok")),
  );
  expect(await ask(bed.port, url)).toMatchObject({ status: 200 });
  expect(await ask(bed.port, url)).toMatchObject({ status: 200 });
  expect(origin.accepted).toHaveLength(1);
  expect(await ask(bed.port, url, { method: "POST", body: "x" })).toMatchObject({ status: 200 });
  expect(origin.accepted).toHaveLength(2);
  // Closed without the proxy having had a turn to see it.
  const [first] = origin.accepted;
  const again = ask(bed.port, url);
  first?.resetAndDestroy();
  expect(await again).toMatchObject({ status: 200, text: "ok" });
  expect(bed.egress.usage().denied).toEqual({});
});

test("a browser that goes away takes its request with it", async () => {
  const { bed, url, origin } = await site(() => {});
  const asking = request({ host: "127.0.0.1", port: bed.port, path: url, agent: false })
    .on("error", () => {})
    .end();
  await until("the origin has the request", () => origin.accepted.length === 1);
  asking.destroy();
  await until("the origin has lost it", () => origin.accepted[0]?.destroyed);
  await expect.poll(() => bed.egress.usage().connections).toBe(0);
});

test("64 MiB reach a slow reader whole, and wait at the origin meanwhile", async () => {
  const total = 64 * 2 ** 20;
  const { bed, url } = await site(
    (_, reply) => void reply.writeHead(200, { "content-length": total }).end(Buffer.alloc(total)),
  );
  const asking = request({ host: "127.0.0.1", port: bed.port, path: url, agent: false }).end();
  const [answer] = (await once(asking, "response")) as [IncomingMessage];
  let last = -1;
  await until("nothing moves", async () => last === (last = bed.egress.usage().bytesReceived) && last > 0);
  expect(last).toBeLessThan(24 * 2 ** 20);
  let bytes = 0;
  for await (const data of answer as AsyncIterable<Buffer>) bytes += data.length;
  expect(bytes).toBe(total);
});
