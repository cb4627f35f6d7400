import { once } from "node:events";
import { connect } from "node:net";
import { afterEach, expect, test } from "vitest";
import type { GatewayLimits } from "../../src/gateway/limits.js";
import { until } from "../support/browser/chromium-until.js";
import { DrivenClock } from "../support/driven-clock.js";
import { endsAt } from "../support/gateway/client-ends.js";
import type { BedOptions } from "../support/gateway/gateway-bed.js";
import { type GatewayBrowser, openGatewayBrowser } from "../support/gateway/gateway-browser.js";
import { connectRaw } from "../support/gateway/raw-cdp.js";
import { frame, openRawClient } from "../support/gateway/raw-frames.js";

const mebibyte = 1024 * 1024;
/**
 * The limits are as wide as Chromium's pipe allows; an operator may choose them. What is long comes as fast
 * as it can: client-counts.test.ts holds its sender to a rate.
 */
const wide: Partial<GatewayLimits> = {
  messageBytes: 100 * mebibyte,
  clientBytesPerSecond: 1024 * mebibyte,
  unfinished: { browserBytes: 256 * mebibyte, daemonBytes: 512 * mebibyte },
};
/** 100 MiB take their time on a crowded machine. */
const limitMs = 240_000;

let browser: GatewayBrowser;
const open = async (
  limits: Partial<GatewayLimits> = {},
  more: Pick<BedOptions, "clock"> = {},
): Promise<void> => {
  browser = await openGatewayBrowser({}, { limits, ...more });
};
afterEach(async () => browser.close());

test(
  "messages of 60 MiB pass both ways, and the others are still served",
  async () => {
    await open(wide);
    const [client, other] = await Promise.all([connectRaw(browser.url()), connectRaw(browser.url())]);
    const session = await client.attach();
    const text = "x".repeat(60 * mebibyte);
    const reply = await client.send("Runtime.evaluate", { expression: `"${text}".length` }, session);
    expect(reply.result).toMatchObject({ result: { value: text.length } });
    const back = client.evaluate(`"y".repeat(${60 * mebibyte})`, session);
    expect((await other.send("Browser.getVersion")).result).toBeDefined();
    expect(await back).toHaveLength(60 * mebibyte);
    await Promise.all([client.close(), other.close()]);
  },
  limitMs,
);

test(
  "a message just below 100 MiB passes; one that would be longer than Chromium's pipe takes is refused and ends nothing",
  async () => {
    await open(wide);
    const client = await connectRaw(browser.url());
    const evaluate = (bytes: number) =>
      client.send("Runtime.evaluate", { expression: `/*${"x".repeat(bytes)}*/ 1+1` });
    expect((await evaluate(99 * mebibyte)).error?.message).toBe("'Runtime.evaluate' wasn't found");
    expect((await evaluate(100 * mebibyte - 200)).error?.message).toBe(
      "The message is longer than Chromium accepts",
    );
    expect((await client.send("Browser.getVersion")).result).toBeDefined();
    await client.close();
  },
  limitMs,
);

test("a message of more than 100 MiB closes its client with 1009 and nobody else", async () => {
  await open(wide);
  const [client, other] = await Promise.all([connectRaw(browser.url()), connectRaw(browser.url())]);
  client.socket.send(`{"id":1,"method":"${"x".repeat(100 * mebibyte)}"}`);
  expect((await client.closed).code).toBe(1009);
  expect((await other.send("Browser.getVersion")).result).toBeDefined();
  await other.close();
});

/** A client that has asked for much and reads nothing. */
async function openUnreading(
  askedBytes: number,
): Promise<{ readonly closed: Promise<unknown>; read(): void; destroy(): void }> {
  const observer = await connectRaw(browser.url());
  const infos = (await observer.send("Target.getTargets")).result?.targetInfos as {
    targetId: string;
    type: string;
  }[];
  const target = infos.find(({ type }) => type === "page")?.targetId;
  await observer.close();
  const client = await connectRaw(browser.url(`/devtools/page/${target}`));
  client.socket.pause();
  const expression = `"z".repeat(${mebibyte})`;
  for (let sent = 0; sent < askedBytes / mebibyte; sent += 1) {
    client.socket.send(
      JSON.stringify({
        id: 100 + sent,
        method: "Runtime.evaluate",
        params: { expression, returnByValue: true },
      }),
    );
  }
  return {
    closed: client.closed,
    read: () => client.socket.resume(),
    destroy: () => client.socket.terminate(),
  };
}

test("a client that does not read holds Chromium back, and is cut after its time so that the others go on", async () => {
  await open({ highWaterBytes: 2 * mebibyte, holdMs: 500 });
  const ends = endsAt(browser);
  const other = await connectRaw(browser.url());
  const unreading = await openUnreading(60 * mebibyte);
  await until("the upstream is held", () => browser.bed.counts.sent > 4 * mebibyte);
  await until("it is cut", async () => browser.bed.counts.closed === 2);
  // The first had found the page for it.
  expect(ends).toEqual(["left", "cut"]);
  expect(browser.bed.counts.sent).toBeLessThan(40 * mebibyte);
  expect((await other.send("Browser.getVersion")).result).toBeDefined();
  await browser.chromium.probe(20_000);
  unreading.read();
  await unreading.closed;
  await other.close();
});

test("a client that pauses and reads on in time gets everything", async () => {
  await open({ highWaterBytes: 2 * mebibyte, holdMs: 20_000 });
  const client = await connectRaw(browser.url());
  const session = await client.attach();
  client.socket.pause();
  const replies = Array.from({ length: 40 }, () => client.evaluate(`"z".repeat(${mebibyte})`, session));
  await until("the upstream is held", () => browser.bed.counts.sent > 4 * mebibyte);
  client.socket.resume();
  expect((await Promise.all(replies)).map((text) => String(text).length)).toEqual(
    replies.map(() => mebibyte),
  );
  await client.close();
});

test("a client further behind than its limit is cut at once", async () => {
  await open({ highWaterBytes: mebibyte, cutBytes: 8 * mebibyte }, { clock: new DrivenClock() });
  const ends = endsAt(browser);
  const client = await connectRaw(browser.url());
  const session = await client.attach();
  client.socket.pause();
  void client.evaluate(`"z".repeat(${30 * mebibyte})`, session);
  await until("it is cut", () => ends.length > 0);
  expect(ends).toEqual(["cut"]);
  await browser.chromium.probe(20_000);
  client.socket.resume();
  expect(await client.closed).toEqual({ code: 1013, reason: "too far behind with reading" });
});

test("a client that misses two pings is cut", async () => {
  await open({ pingMs: 50 });
  const { hostname, port, pathname, search } = new URL(browser.url());
  const socket = connect(Number(port), hostname);
  const closed = once(socket, "close");
  socket.write(
    `GET ${pathname}${search} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
      "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
  );
  socket.resume();
  const alive = await connectRaw(browser.url());
  await closed;
  await new Promise((resolve) => alive.socket.once("ping", resolve));
  expect((await alive.send("Browser.getVersion")).result).toBeDefined();
  expect(browser.bed.counts.opened - browser.bed.counts.closed).toBe(1);
  await alive.close();
});

test(
  "all that a client has sent is read before its silence ends it, however long that takes",
  async () => {
    await open({ pingMs: 1000 });
    // It answers no pings, as if its pongs stood behind its commands; then nothing more comes.
    const { socket, closed } = await openRawClient(browser.url());
    const commands = 40_000;
    let answers = 0;
    socket.on("data", (chunk: Buffer) => (answers += chunk.toString("latin1").split('"error"').length - 1));
    socket.write(Buffer.concat(Array.from({ length: commands }, () => frame("{}"))));
    await closed;
    // An answer that comes in two parts may be missed.
    expect(answers).toBeGreaterThan(0.99 * commands);
  },
  limitMs,
);

test("a client that is held is borne for twenty pings, and ended then", async () => {
  const clock = new DrivenClock();
  const pingMs = 1000;
  await open({ pingMs, highWaterBytes: mebibyte, holdMs: 600 * pingMs }, { clock });
  const client = await connectRaw(browser.url());
  const session = await client.attach();
  client.socket.pause();
  const timers = clock.pending;
  void client.evaluate(`"z".repeat(${30 * mebibyte})`, session);
  await until("it is held", () => clock.pending > timers);
  await clock.advance(20 * pingMs);
  expect(browser.bed.counts.closed).toBe(0);
  await clock.advance(pingMs);
  await until("it is ended", () => browser.bed.counts.closed === 1);
  client.socket.resume();
  expect((await client.closed).code).toBe(1006);
});
