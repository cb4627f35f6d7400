import { afterEach, expect, test } from "vitest";
import type { Rules } from "../../src/egress/rules.js";
import { type EgressBed, openEgress, resolveBy, rulesFor } from "../support/egress/egress-bed.js";
import { ask, openSocket, openTunnel, readText, sendRaw } from "../support/egress/egress-client.js";
import { openOrigin, openRawOrigin } from "../support/egress/egress-origin.js";
import { freePort } from "../support/free-port.js";
import { until } from "../support/browser/chromium-until.js";

const closing: (() => Promise<unknown> | unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

async function open(rules: Rules): Promise<EgressBed> {
  const bed = await openEgress(rules);
  closing.push(() => bed.egress.close());
  return bed;
}

/** What would have ended the daemon during `work`. */
async function faultsOf(work: () => Promise<unknown>): Promise<unknown[]> {
  const faults: unknown[] = [];
  const others = process.listeners("uncaughtException");
  process.removeAllListeners("uncaughtException").on("uncaughtException", (fault) => void faults.push(fault));
  try {
    await work();
    return faults;
  } finally {
    process.removeAllListeners("uncaughtException");
    for (const other of others) process.on("uncaughtException", other);
  }
}

const malformed = [
  "CONNECT a..b:443 HTTP/1.1\r\nHost: localhost\r\n\r\n",
  "GET /x HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
];

test.each(malformed)("%j and a reset right after it end nothing but that connection", async (text) => {
  const bed = await open(rulesFor([]));
  expect(
    await faultsOf(async () => {
      for (let count = 0; count < 50; count += 1) {
        const socket = await openSocket(bed.port);
        socket.write(text + "x".repeat(100_000));
        await new Promise(setImmediate);
        socket.resetAndDestroy();
      }
      expect(await sendRaw(bed.port, malformed[0] ?? "")).toContain("400");
    }),
  ).toEqual([]);
});

test("a SOCKS proxy that resets with its answer ends nothing but that connection", async () => {
  const proxy = await openRawOrigin((socket) => {
    const answers = [Buffer.from([5, 0]), Buffer.from([5, 0, 0, 1, 127, 0, 0, 1, 0, 0])];
    socket.on("data", () =>
      socket.write(answers.shift() ?? "", () => void (answers.length === 0 && socket.resetAndDestroy())),
    );
  });
  closing.push(() => proxy.close());
  const upstream = { id: "p", protocol: "socks5", host: "127.0.0.1", port: proxy.port, bypass: [] } as const;
  const bed = await open({ ...rulesFor([]), upstream });
  expect(
    await faultsOf(async () => {
      for (let count = 0; count < 50; count += 1)
        (await openTunnel(bed.port, "site.test:80")).socket.destroy();
      await until("nothing is open", () => bed.egress.usage().connections === 0);
    }),
  ).toEqual([]);
});

test("requests in one piece are not given the same kept connection", async () => {
  const origin = await openOrigin((asked, reply) => reply.end(`<${asked.url}>`));
  closing.push(() => origin.close());
  const bed = await open(rulesFor(["127.0.0.1"]));
  const url = `http://127.0.0.1:${origin.port}`;
  await ask(bed.port, `${url}/first`);
  const socket = await openSocket(bed.port);
  socket.write(
    ["/a", "/b", "/c"].map((path) => `GET ${url}${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`).join(""),
  );
  const text = await readText(socket, (got) => got.includes("</c>"));
  socket.destroy();
  expect(text.match(/<[^>]*>/g)).toEqual(["</a>", "</b>", "</c>"]);
});

test("a new connection is used although an idle one is there, and is not left open beside it", async () => {
  const ports: (number | undefined)[] = [];
  const origin = await openOrigin((asked, reply) => {
    ports.push(asked.socket.remotePort);
    asked.resume().once("end", () => reply.end("ok"));
  });
  closing.push(() => origin.close());
  const bed = await open(rulesFor(["127.0.0.1"]));
  const url = `http://127.0.0.1:${origin.port}/`;
  await ask(bed.port, url);
  await ask(bed.port, url, { method: "POST", headers: { "content-length": 4 }, body: "body" });
  await ask(bed.port, url);
  expect(ports[1]).not.toBe(ports[0]);
  expect(ports[2]).toBe(ports[0]);
});

test("a page is not told the address behind a name that does not answer", async () => {
  const bed = await openEgress(rulesFor(["site.test"]), {
    parts: { resolve: resolveBy({ "site.test": ["127.0.0.1"] }) },
  });
  closing.push(() => bed.egress.close());
  const { status, text } = await ask(bed.port, `http://site.test:${await freePort()}/`);
  expect({ status, text }).toEqual({ status: 502, text: expect.stringContaining("ECONNREFUSED") });
  expect(text).not.toContain("127.0.0.1");
});
