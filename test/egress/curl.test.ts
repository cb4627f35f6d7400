import type { RequestListener } from "node:http";
import { afterEach, expect, test } from "vitest";
import { systemClock } from "../../src/base/clock.js";
import type { CurlAnswer, CurlRequest } from "../../src/egress/parts.js";
import { type EgressBed, openEgress, rulesFor } from "../support/egress/egress-bed.js";
import { openOrigin, openRawOrigin, openSecureOrigin } from "../support/egress/egress-origin.js";
import { openUpstream } from "../support/egress/egress-upstream.js";
import { until } from "../support/browser/chromium-until.js";

const closing: (() => Promise<unknown> | unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

async function open(listener: RequestListener): Promise<{ bed: EgressBed; url: string }> {
  const origin = await openOrigin(listener);
  const bed = await openEgress(rulesFor(["127.0.0.1"]), { settings: { curlBodyBytes: 1000 } });
  closing.push(
    () => origin.close(),
    () => bed.egress.close(),
  );
  return { bed, url: `http://127.0.0.1:${origin.port}` };
}
const fetchOf = (
  bed: EgressBed,
  url: string,
  { signal = new AbortController().signal, ...more }: Partial<CurlRequest> & { signal?: AbortSignal } = {},
): Promise<CurlAnswer> =>
  bed.egress.fetch({ url, method: "GET", headers: {}, timeoutMs: 60_000, ...more }, signal);

test("a request goes out with its method, headers and body; the answer comes whole", async () => {
  const { bed, url } = await open(async (asked, reply) => {
    let body = "";
    for await (const piece of asked as AsyncIterable<Buffer>) body += piece.toString();
    reply.setHeader("set-cookie", ["a=1", "b=2"]).writeHead(201);
    reply.end(
      `${asked.method} ${asked.url} ${asked.headers["x-one"]} ${asked.headers.host === url.slice(7)} ${body}`,
    );
  });
  const answer = await fetchOf(bed, `${url}/p?q`, {
    method: "POST",
    headers: { "X-One": "1", Host: "elsewhere.test", "Proxy-Authorization": "x" },
    body: "sent",
  });
  expect(answer).toMatchObject({
    status: 201,
    headers: { "set-cookie": ["a=1", "b=2"] },
    durationMs: expect.any(Number),
  });
  expect(answer.body.toString()).toBe("POST /p?q 1 true sent");
  await expect.poll(() => bed.egress.usage()).toMatchObject({ requests: 1, connections: 0 });
  expect(bed.egress.usage().bytesReceived).toBeGreaterThan(0);
});

test("the body of a DELETE arrives, though Node.js would not say where it ends", async () => {
  const { bed, url } = await open(async (asked, reply) => {
    let body = "";
    for await (const piece of asked as AsyncIterable<Buffer>) body += piece.toString();
    reply.end(`${asked.method} ${body}`);
  });
  expect((await fetchOf(bed, url, { method: "DELETE", body: "sent" })).body.toString()).toBe("DELETE sent");
});

test("a redirect is answered, not followed", async () => {
  const { bed, url } = await open((_, reply) => reply.writeHead(302, { location: "http://10.0.0.1/" }).end());
  expect(await fetchOf(bed, url)).toMatchObject({ status: 302, headers: { location: ["http://10.0.0.1/"] } });
});

test("what the rules deny is denied here too, and counted", async () => {
  const { bed } = await open((_, reply) => reply.end());
  await expect(fetchOf(bed, "http://127.0.0.2/")).rejects.toMatchObject({ kind: "denied", by: "private" });
  expect(bed.egress.usage()).toMatchObject({ requests: 1, denied: { private: 1 } });
});

test.each(["no url", "ftp://site.test/", "file:///etc/passwd", "http://user:pass@site.test/", "http://"])(
  "%s is malformed",
  async (url) => {
    const { bed } = await open((_, reply) => reply.end());
    await expect(fetchOf(bed, url)).rejects.toMatchObject({ kind: "malformed" });
  },
);

test.each([{ method: "G T" }, { headers: { "x y": "1" } }, { headers: { x: "a\r\nb: c" } }])(
  "%j is malformed",
  async (more) => {
    const { bed, url } = await open((_, reply) => reply.end());
    await expect(fetchOf(bed, url, more)).rejects.toMatchObject({ kind: "malformed" });
    await expect.poll(() => bed.egress.usage().connections).toBe(0);
  },
);

test("a body that is too large, an answer that does not come and one that breaks off are failures", async () => {
  const { bed, url } = await open((asked, reply) => {
    if (asked.url === "/large") reply.end(Buffer.alloc(1001));
    if (asked.url === "/broken")
      reply.writeHead(200, { "content-length": 10 }).write("part", () => reply.destroy());
  });
  await expect(fetchOf(bed, `${url}/large`)).rejects.toMatchObject({ kind: "too_large" });
  await expect(fetchOf(bed, `${url}/broken`)).rejects.toMatchObject({ kind: "failed" });
  await expect(fetchOf(bed, `${url}/silent`, { timeoutMs: 100 })).rejects.toMatchObject({ kind: "failed" });
  await expect.poll(() => bed.egress.usage().connections).toBe(0);
});

test("a caller that goes away, and rules that change, end it", async () => {
  const origin = await openRawOrigin((socket) => void socket.resume());
  const { bed } = await open((_, reply) => reply.end());
  closing.push(() => origin.close());
  const going = new AbortController();
  const given = fetchOf(bed, `http://127.0.0.1:${origin.port}/`, { signal: going.signal }).catch(
    (error: unknown) => error,
  );
  await until("the origin has it", () => origin.accepted.length === 1);
  going.abort();
  expect(await given).toMatchObject({ kind: "failed" });
  const other = fetchOf(bed, `http://127.0.0.1:${origin.port}/`).catch((error: unknown) => error);
  await until("the origin has it", () => origin.accepted.length === 2);
  await bed.egress.apply(rulesFor([]));
  expect(await other).toMatchObject({ kind: "failed" });
});

test("the limit and the caller's end count before there is a connection, too", async () => {
  const origin = await openOrigin((_, reply) => reply.end());
  const never = new Promise<string[]>(() => {});
  const bed = await openEgress(rulesFor(["127.0.0.1"]), { parts: { resolve: () => never } });
  closing.push(
    () => origin.close(),
    () => bed.egress.close(),
  );
  const url = `http://site.test:${origin.port}/`;
  await expect(fetchOf(bed, url, { timeoutMs: 100 })).rejects.toMatchObject({
    kind: "failed",
    message: "There was no whole answer in time",
  });
  const going = new AbortController();
  const given = fetchOf(bed, url, { signal: going.signal });
  const goneAt = systemClock.monotonic();
  going.abort();
  await expect(given).rejects.toMatchObject({ kind: "failed" });
  await expect(fetchOf(bed, url, { signal: going.signal })).rejects.toMatchObject({ kind: "failed" });
  expect(systemClock.monotonic() - goneAt).toBeLessThan(5000);
});

test("a connection that comes when nobody waits for it any more is cut, and nothing is asked on it", async () => {
  const origin = await openRawOrigin((socket) => void socket.resume());
  let resolved: (addresses: string[]) => void = () => {};
  const resolving = new Promise<string[]>((resolve) => (resolved = resolve));
  const bed = await openEgress(rulesFor(["127.0.0.1"]), { parts: { resolve: () => resolving } });
  closing.push(
    () => origin.close(),
    () => bed.egress.close(),
  );
  const late = fetchOf(bed, `http://site.test:${origin.port}/`, { timeoutMs: 50 });
  await expect(late).rejects.toMatchObject({ kind: "failed" });
  resolved(["127.0.0.1"]);
  await until("it is cut", () => bed.egress.usage().connections === 0);
  expect(bed.egress.usage().bytesSent).toBe(0);
});

test("an answer that changes the connection to another protocol is a failure at once", async () => {
  const origin = await openRawOrigin((socket) =>
    socket.once("data", () =>
      socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"),
    ),
  );
  const { bed } = await open((_, reply) => reply.end());
  closing.push(() => origin.close());
  await expect(fetchOf(bed, `http://127.0.0.1:${origin.port}/`)).rejects.toMatchObject({
    kind: "failed",
    message: "The connection was changed to another protocol",
  });
  await until("it is cut", () => bed.egress.usage().connections === 0);
});

test("https is verified", async () => {
  const origin = await openSecureOrigin((_, reply) => reply.end());
  const { bed } = await open((_, reply) => reply.end());
  closing.push(() => origin.close());
  await expect(fetchOf(bed, `https://127.0.0.1:${origin.port}/`)).rejects.toMatchObject({
    kind: "failed",
    message: expect.stringContaining("CERT"),
  });
});

test("it goes through the upstream that the rules name", async () => {
  const { bed } = await open((_, reply) => reply.end());
  const origin = await openOrigin((_, reply) => reply.end("through"));
  const { upstream, asked, close } = await openUpstream({ protocol: "http", port: origin.port });
  closing.push(() => origin.close(), close);
  await bed.egress.apply({ allowed: null, privates: [], routes: [], upstream });
  expect((await fetchOf(bed, "http://site.test/")).body.toString()).toBe("through");
  expect(asked).toEqual(["CONNECT site.test:80"]);
});
