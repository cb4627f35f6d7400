import { once } from "node:events";
import { createServer, request } from "node:http";
import { type AddressInfo, type Socket } from "node:net";
import { expect, test } from "vitest";
import { openPort } from "../../src/egress/port.js";
import { openEgress, rulesFor } from "../support/egress/egress-bed.js";
import { ask, closeOf, openSocket } from "../support/egress/egress-client.js";

async function origin() {
  const server = createServer((asked, reply) =>
    reply.end(`${asked.method} ${asked.url} ${asked.headers.host}`),
  );
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return { port: (server.address() as AddressInfo).port, server };
}

test("one egress carries plain requests, tunnels and its own requests, and counts them together", async () => {
  const { port, server } = await origin();
  const bed = await openEgress(rulesFor([`127.0.0.1:${port}`]));
  const get = async (url: string) => {
    const asking = request({ host: "127.0.0.1", port: bed.port, path: url, agent: false }).end();
    const [reply] = await once(asking, "response");
    let text = "";
    for await (const piece of reply) text += piece;
    return { status: reply.statusCode, headers: reply.headers, text };
  };
  expect(await get(`http://127.0.0.1:${port}/x?y`)).toMatchObject({
    status: 200,
    text: `GET /x?y 127.0.0.1:${port}`,
  });
  expect(await get(`http://127.0.0.1:${port}/z`)).toMatchObject({ status: 200 });
  expect(await get(`http://127.0.0.2:${port}/z`)).toMatchObject({
    status: 403,
    headers: { "x-remuda-egress": "denied" },
  });
  const asking = request({
    host: "127.0.0.1",
    port: bed.port,
    method: "CONNECT",
    path: `127.0.0.1:${port}`,
  }).end();
  const [, socket] = (await once(asking, "connect")) as [unknown, Socket];
  socket.write("GET /t HTTP/1.1\r\nHost: q\r\nConnection: close\r\n\r\n");
  let text = "";
  for await (const piece of socket) text += piece;
  expect(text).toContain("GET /t q");
  expect(bed.egress.usage()).toMatchObject({ requests: 4, denied: { private: 1 } });
  const asked = { url: `http://127.0.0.1:${port}/c`, method: "GET", headers: {}, timeoutMs: 60_000 };
  expect(await bed.egress.fetch(asked, new AbortController().signal)).toMatchObject({
    status: 200,
    body: Buffer.from(`GET /c 127.0.0.1:${port}`),
  });
  await bed.egress.close();
  server.close();
});

test("an egress that cannot listen is not opened, and what it is says where it listens", async () => {
  const listener = openPort({ host: "127.0.0.1" });
  expect(() => listener.proxyUrl).toThrow("does not listen");
  const failing = {
    tier: "proxy",
    proxyUrl: "",
    listen: () => Promise.reject(new Error("no port is free")),
    close: () => {},
  } as const;
  await expect(openEgress(rulesFor([]), { listener: failing })).rejects.toThrow("no port is free");
  const bed = await openEgress(rulesFor([]), { listener });
  expect(bed.egress).toMatchObject({
    tier: "proxy",
    namespace: undefined,
    proxyUrl: `http://127.0.0.1:${bed.port}`,
  });
  await Promise.all([bed.egress.close(), bed.egress.close()]);
});

test("a browser that sends half a head, or none, holds up nobody", async () => {
  const bed = await openEgress(rulesFor([]));
  const sockets = await Promise.all(Array.from({ length: 50 }, () => openSocket(bed.port)));
  for (const socket of sockets) socket.write("GET http://site.test/ HTTP/1.1\r\nX: ");
  expect(await ask(bed.port, "http://127.0.0.1/")).toMatchObject({ status: 403 });
  await bed.egress.close();
  await Promise.all(sockets.map((socket) => closeOf(socket.resume().end())));
});
