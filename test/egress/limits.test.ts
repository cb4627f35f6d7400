import { afterEach, describe, expect, test } from "vitest";
import { systemClock } from "../../src/base/clock.js";
import type { CurlAnswer } from "../../src/egress/parts.js";
import { Bucket } from "../../src/egress/limits.js";
import { makeReservedEndpoints } from "../../src/egress/reserved-endpoints.js";
import { DrivenClock } from "../support/driven-clock.js";
import { type BedOptions, type EgressBed, openEgress, rulesFor } from "../support/egress/egress-bed.js";
import { ask, closeOf, openSocket, openTunnel, readText } from "../support/egress/egress-client.js";
import { openOrigin, openRawOrigin } from "../support/egress/egress-origin.js";
import { until } from "../support/browser/chromium-until.js";

const closing: (() => Promise<unknown> | unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});
async function bedFor(options: BedOptions): Promise<EgressBed> {
  const bed = await openEgress(rulesFor(["127.0.0.0/8", "[::1]"]), options);
  closing.push(() => bed.egress.close());
  return bed;
}

test("a browser at its limit of connections is refused more until one is over", async () => {
  const origin = await openRawOrigin((socket) => void socket.pipe(socket));
  closing.push(() => origin.close());
  const bed = await bedFor({ settings: { maxConnections: 2 } });
  const target = `127.0.0.1:${origin.port}`;
  const [first] = [await openTunnel(bed.port, target), await openTunnel(bed.port, target)];
  const third = await openTunnel(bed.port, target);
  expect(third).toMatchObject({ status: 503, answer: expect.stringContaining("X-Remuda-Egress: limited") });
  expect(await ask(bed.port, `http://${target}/`)).toMatchObject({
    status: 503,
    headers: { "x-remuda-egress": "limited" },
  });
  expect(bed.egress.usage()).toMatchObject({ connections: 2, denied: { limit: 2 } });
  first.socket.destroy();
  await until("it is over", () => bed.egress.usage().connections === 1);
  expect(await openTunnel(bed.port, target)).toMatchObject({ status: 200 });
});

describe("bandwidth", () => {
  const bytes = 300_000;
  const perSecond = 500_000;
  /**
   * What must take at least so long, since a tenth of a second's worth may pass at once and one piece may be
   * overdrawn.
   */
  const leastMs = ((bytes - perSecond / 10 - 65_536) / perSecond) * 1000;

  const never = new AbortController().signal;
  const curl = (bed: EgressBed, port: number, body?: string): Promise<CurlAnswer> =>
    bed.egress.fetch(
      {
        url: `http://127.0.0.1:${port}/`,
        method: body === undefined ? "GET" : "POST",
        headers: {},
        timeoutMs: 10_000,
        ...(body !== undefined && { body }),
      },
      never,
    );

  test.each(["tunnel", "plain", "curl"])("what a %s receives is held to the limit", async (kind) => {
    const origin = await openOrigin((_, reply) => reply.end(Buffer.alloc(bytes)));
    closing.push(() => origin.close());
    const bed = await bedFor({ settings: { bytesPerSecond: perSecond } });
    const started = systemClock.monotonic();
    if (kind === "plain")
      expect((await ask(bed.port, `http://127.0.0.1:${origin.port}/`)).text).toHaveLength(bytes);
    else if (kind === "curl") expect((await curl(bed, origin.port)).body).toHaveLength(bytes);
    else {
      const { socket } = await openTunnel(bed.port, `127.0.0.1:${origin.port}`);
      socket.write("GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
      expect((await readText(socket)).length).toBeGreaterThan(bytes);
    }
    expect(systemClock.monotonic() - started).toBeGreaterThan(leastMs);
  });

  test.each(["plain", "curl"])("what a %s sends is held to it too", async (kind) => {
    let received = 0;
    const origin = await openOrigin(
      (asked, reply) =>
        void asked.on("data", (data: Buffer) => (received += data.length)).once("end", () => reply.end("ok")),
    );
    closing.push(() => origin.close());
    const bed = await bedFor({ settings: { bytesPerSecond: perSecond } });
    const started = systemClock.monotonic();
    const body = "x".repeat(bytes);
    if (kind === "curl") await curl(bed, origin.port, body);
    else await ask(bed.port, `http://127.0.0.1:${origin.port}/`, { method: "POST", body });
    expect(received).toBe(bytes);
    expect(systemClock.monotonic() - started).toBeGreaterThan(leastMs);
  });

  test("a curl whose answer breaks off or is given up ends at once, however slow it is", async () => {
    const origin = await openRawOrigin((socket) => {
      socket.once("data", () => {
        socket.write("HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n");
        socket.write(Buffer.alloc(2000), () => socket.destroy());
      });
    });
    const silent = await openRawOrigin((socket) => void socket.resume());
    closing.push(() => Promise.all([origin.close(), silent.close()]));
    const slowBed = (): Promise<EgressBed> => bedFor({ settings: { bytesPerSecond: 1024 } });
    // What the first one overdraws would hold the second up before it begins.
    const [bed, other] = [await slowBed(), await slowBed()];
    await expect(curl(bed, origin.port)).rejects.toThrow("There was no whole answer: ECONNRESET");
    const gone = new AbortController();
    const asking = {
      url: `http://127.0.0.1:${silent.port}/`,
      method: "POST",
      headers: {},
      timeoutMs: 60_000,
    };
    const given = other.egress.fetch({ ...asking, body: "x".repeat(bytes) }, gone.signal);
    await until("it is asked", () => silent.accepted.length > 0);
    const goneAt = systemClock.monotonic();
    gone.abort();
    await expect(given).rejects.toThrow("The request was given up");
    expect(systemClock.monotonic() - goneAt).toBeLessThan(5000);
    for (const { egress } of [bed, other])
      await until("nothing is open", () => egress.usage().connections === 0);
  });

  /** As long as a head may be, or almost. */
  const long = "x".repeat(14_000);
  const heads = 22;
  const slow = 200_000;

  test.each(["requests", "answers", "curls"])("heads are held to it as well: %s", async (kind) => {
    const inAnswer = kind === "answers" ? { "x-long": long } : {};
    const inRequest = kind === "answers" ? {} : { "x-long": long };
    const origin = await openOrigin((_, reply) => reply.writeHead(200, inAnswer).end());
    closing.push(() => origin.close());
    const bed = await bedFor({ settings: { bytesPerSecond: slow } });
    const url = `http://127.0.0.1:${origin.port}/`;
    const asking = { url, method: "GET", headers: inRequest, timeoutMs: 10_000 };
    const started = systemClock.monotonic();
    for (let head = 0; head < heads; head += 1)
      if (kind === "curls") await bed.egress.fetch(asking, never);
      else await ask(bed.port, url, { headers: inRequest });
    // What a tenth of a second has passes at once, and the last need not be paid for yet.
    const heldMs = (((heads - 1) * long.length - slow / 10) / slow) * 1000;
    expect(systemClock.monotonic() - started).toBeGreaterThan(heldMs);
  });

  test.each(["plain", "tunnel"])("so is what comes for somebody who has given up a %s", async (kind) => {
    const origin = await openOrigin((_, reply) => reply.end(Buffer.alloc(bytes)));
    closing.push(() => origin.close());
    const bed = await bedFor({ settings: { bytesPerSecond: perSecond } });
    const target = `127.0.0.1:${origin.port}`;
    const get = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
    const received = (): number => bed.egress.usage().bytesReceived;
    const started = systemClock.monotonic();
    for (let given = 0; given < 12; given += 1) {
      const socket =
        kind === "tunnel" ? (await openTunnel(bed.port, target)).socket : await openSocket(bed.port);
      const before = received();
      socket.write(kind === "tunnel" ? get : get.replace("/", `http://${target}/`));
      await until("some has come", () => received() > before + 30_000);
      const closed = closeOf(origin.accepted.at(-1) ?? socket);
      socket.destroy();
      await closed;
    }
    const elapsedMs = systemClock.monotonic() - started;
    // What came last need not be paid for yet.
    const last = 200_000;
    expect(received()).toBeLessThan((elapsedMs / 1000) * perSecond + perSecond / 10 + last);
  });

  test("whoever waits for the limit is let go at once when he gives up", async () => {
    const origin = await openOrigin((_, reply) => reply.end(Buffer.alloc(bytes)));
    closing.push(() => origin.close());
    const bed = await bedFor({ settings: { bytesPerSecond: 1024 } });
    const url = `http://127.0.0.1:${origin.port}/`;
    const first = await openSocket(bed.port);
    first.write(`GET ${url} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
    await until("it is behind", () => bed.egress.usage().bytesReceived > 10_000);
    const going = new AbortController();
    const given = bed.egress.fetch({ url, method: "GET", headers: {}, timeoutMs: 60_000 }, going.signal);
    const goneAt = systemClock.monotonic();
    going.abort();
    await expect(given).rejects.toThrow("The request was given up");
    const late = bed.egress.fetch({ url, method: "GET", headers: {}, timeoutMs: 300 }, never);
    await expect(late).rejects.toThrow("There was no whole answer in time");
    first.destroy();
    await until("nothing is open", () => bed.egress.usage().connections === 0);
    expect(origin.accepted).toHaveLength(1);
    expect(systemClock.monotonic() - goneAt).toBeLessThan(5000);
  });

  test("what has passed is taken once, whether it was taken in pieces or was not", async () => {
    const clock = new DrivenClock();
    let carried = 0;
    const bucket = new Bucket(1000, clock, () => carried);
    expect(bucket.catchUp()).toBe(0);
    bucket.take(150);
    carried = 150;
    expect(bucket.catchUp()).toBe(50);
    carried = 180;
    expect(bucket.catchUp()).toBe(80);
    // A piece that has not gone out yet.
    expect(bucket.take(40)).toBe(120);
    expect(bucket.catchUp()).toBe(120);
    carried = 230;
    expect(bucket.catchUp()).toBe(130);
    await clock.advance(130);
    expect(bucket.catchUp()).toBe(0);
  });

  test("the bucket fills with time, up to a tenth of a second's worth", async () => {
    const clock = new DrivenClock();
    const bucket = new Bucket(1000, clock, () => 0);
    expect(bucket.take(100)).toBe(0);
    expect(bucket.take(50)).toBe(50);
    await clock.advance(50);
    expect(bucket.take(10)).toBe(10);
    await clock.advance(60_000);
    expect(bucket.take(100)).toBe(0);
    expect(bucket.take(1)).toBe(1);
  });
});

describe("what belongs to the service itself", () => {
  test.each([
    ["an address", "127.0.0.1", "127.0.0.1"],
    ["another address of the same machine", "127.0.0.1", "127.0.0.2"],
    ["IPv6 loopback", "127.0.0.1", "[::1]"],
    ["a name of loopback", "0.0.0.0", "localhost"],
    ["every address", "::", "127.0.0.1"],
  ])("is denied by %s, though rules open it", async (_, host, asked) => {
    const origin = await openOrigin((__, reply) => reply.end());
    closing.push(() => origin.close());
    const bed = await bedFor({ parts: { reserved: makeReservedEndpoints([{ host, port: origin.port }]) } });
    const { status, answer } = await openTunnel(bed.port, `${asked}:${origin.port}`);
    expect(status).toBe(403);
    expect(answer).toContain('"rule":"remuda"');
    expect(origin.accepted).toHaveLength(0);
  });

  test("is the proxy of a neighbour and its own, while they live", async () => {
    const [bed, neighbour] = [await bedFor({}), await bedFor({})];
    for (const port of [bed.port, neighbour.port]) {
      expect(await openTunnel(bed.port, `127.0.0.1:${port}`)).toMatchObject({
        status: 403,
        answer: expect.stringContaining('"rule":"remuda"'),
      });
      expect(await ask(bed.port, `http://127.0.0.1:${port}/`)).toMatchObject({ status: 403 });
    }
    await neighbour.egress.close();
    expect(await openTunnel(bed.port, `127.0.0.1:${neighbour.port}`)).toMatchObject({ status: 502 });
  });

  test("is nothing on other ports or machines", () => {
    const reserved = makeReservedEndpoints([
      { host: "127.0.0.1", port: 4700 },
      { host: "192.0.2.7", port: 6379 },
    ]);
    expect(reserved.isOwn("127.0.0.1", 4701)).toBe(false);
    expect(reserved.isOwn("192.0.2.8", 4700)).toBe(false);
    expect(reserved.isOwn("192.0.2.7", 6379)).toBe(true);
    expect(reserved.isOwn("127.0.0.1", 6379)).toBe(false);
  });
});
