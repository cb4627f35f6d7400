import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { GatewayLimits } from "../../src/gateway/limits.js";
import { until } from "../support/browser/chromium-until.js";
import { type GatewayBrowser, openGatewayBrowser } from "../support/gateway/gateway-browser.js";
import { type BedOptions, refusedUpgrade } from "../support/gateway/gateway-bed.js";
import { frame, openRawClient, type RawClient } from "../support/gateway/raw-frames.js";
import { connectRaw, type RawCdp } from "../support/gateway/raw-cdp.js";
import { usualStall } from "../support/stall.js";

const mebibyte = 1024 * 1024;

let browser: GatewayBrowser;
const open = async (
  limits: Partial<GatewayLimits> = {},
  more: Pick<BedOptions, "judgeScript"> = {},
): Promise<void> => {
  browser = await openGatewayBrowser({}, { limits, ...more });
};
/** Judges nothing. */
const silentJudge = new URL(
  "data:text/javascript,import { parentPort } from 'node:worker_threads'; parentPort.on('message', () => {});",
);
function garbageCollector(): () => void {
  setFlagsFromString("--expose-gc");
  return runInNewContext("gc") as () => void;
}

const command = (a: string): string => `{"id":77,"method":"Storage.getStorageKey","params":{"a":${a}}}`;
const room = 16 * mebibyte - 100;
const shapes: Record<string, () => string> = {
  "an array of empty objects": () => command(`[${"{},".repeat(room / 3)}{}]`),
  "arrays in arrays": () => command("[".repeat(room / 2) + "]".repeat(room / 2)),
  "one array after the other": () => command(`[${"[],".repeat(room / 3)}[]]`),
  "many numbers": () => command(`[${"1,".repeat(room / 2)}1]`),
  "many keys": () =>
    command(
      `{${Array.from({ length: room / 16 }, (_, at) => `"${String(at).padStart(10, "k")}":0`).join(",")}}`,
    ),
  "a long string": () => command(`"${"x".repeat(room)}"`),
  "a string of escapes": () => command(`"${'\\"'.repeat(room / 2)}"`),
  "a string of nothing but unicode escapes": () => command(`"${"\\u0000".repeat(Math.floor(room / 6))}"`),
  "a string beyond ASCII": () => command(`"${"é".repeat(room / 2)}"`),
  "no JSON": () => `${'"{'.repeat(room / 2)}`,
};
/** A twelfth of what parsing 8 MiB takes. */
const bearable = 1 / 12;
const unfinished = (bytes: number): Buffer => frame(Buffer.alloc(bytes, "x"), { isLast: false });

describe("in one browser, within the limits of every daemon", () => {
  beforeAll(() => open());
  afterAll(() => browser.close());

  test.each(Object.keys(shapes))(
    "16 MiB of %s: an answer, and nobody stands still for long",
    async (name) => {
      const raw = await openRawClient(browser.url());
      const other = await connectRaw(browser.url());
      const message = frame(shapes[name]?.() ?? "");
      const measure = async (): Promise<void> => {
        const answered = raw.hears("error");
        raw.socket.write(message);
        await answered;
        expect((await other.send("Browser.getVersion")).result).toBeDefined();
      };
      expect(await usualStall(measure, bearable)).toBeLessThan(bearable);
      raw.socket.destroy();
      await other.close();
    },
  );

  test("what is too deep or too much inside a message inside a message is refused", async () => {
    const client = await connectRaw(browser.url());
    const carry = (message: string) => client.send("Target.sendMessageToTarget", { sessionId: "S", message });
    const deep = await carry(`{"id":1,"method":"A.b","params":{"a":${"[".repeat(400)}${"]".repeat(400)}}}`);
    expect(deep.error?.message).toContain("nested deeper than 300");
    const many = await carry(`{"id":1,"method":"A.b","params":{"a":[${"{},".repeat(150_000)}{}]}}`);
    expect(many.error?.message).toContain("more than 200000 keys and elements");
    let inner = JSON.stringify({ id: 1, method: "Browser.getVersion" });
    for (let carriers = 0; carriers < 5; carriers += 1) {
      inner = JSON.stringify({
        id: 1,
        method: "Target.sendMessageToTarget",
        params: { sessionId: "S", message: inner },
      });
    }
    expect((await carry(inner)).error?.message).toContain("more than 4 messages inside each other");
    await client.close();
  });

  test("an error tells whose command was too deep", async () => {
    const client = await connectRaw(browser.url());
    const session = await client.attach();
    client.socket.send(
      `{"id":9,"method":"A.b","params":{"a":${"[".repeat(400)}${"]".repeat(400)}},"sessionId":"${session}"}`,
    );
    expect(await client.message(({ id }) => id === 9)).toMatchObject({
      sessionId: session,
      error: { code: -32600 },
    });
    await client.close();
  });

  test("commands stay in their order, whichever thread judges them", async () => {
    const client = await connectRaw(browser.url());
    const session = await client.attach();
    await client.evaluate("globalThis.seen = []", session);
    const sizes = [10, 300_000, 10, 70_000, 20, 2_000_000, 10, 100_000];
    const sent = Array.from({ length: 40 }, (_, at) => at);
    await Promise.all(
      sent.map((at) =>
        client.evaluate(`seen.push(${at}) /*${"x".repeat(sizes[at % sizes.length] ?? 0)}*/`, session),
      ),
    );
    expect(await client.evaluate("seen", session)).toEqual(sent);
    await client.close();
  });

  test("what another thread judges is refused and rewritten as ever", async () => {
    const client = await connectRaw(browser.url());
    const session = await client.attach();
    const padding = " ".repeat(200_000);
    const navigated = await client.send("Page.navigate", { url: `file:///etc/passwd#${padding}` }, session);
    expect(navigated.error?.message).toContain("file URLs are not open to clients");
    const behaviour = { behavior: "allow", downloadPath: `/etc/${"x".repeat(100_000)}` };
    expect((await client.send("Browser.setDownloadBehavior", behaviour)).result).toEqual({});
    expect((await client.send("Browser.close", { padding })).result).toEqual({});
    expect((await client.closed).code).toBe(1000);
  });

  test("a message that was too long to begin with costs nothing: 1009 at its head", async () => {
    const client = await openRawClient(browser.url());
    client.socket.write(frame("begin", { length: 17 * mebibyte }));
    expect(await client.closed).toBe(1009);
  });

  test.each<[string, () => Buffer, number]>([
    [
      "thousands of tiny fragments",
      () =>
        Buffer.concat([
          frame("{", { isLast: false }),
          ...Array.from({ length: 2000 }, () => frame("x", { opcode: 0, isLast: false })),
        ]),
      1008,
    ],
    [
      "thousands of empty fragments",
      () =>
        Buffer.concat([
          frame("{", { isLast: false }),
          ...Array.from({ length: 2000 }, () => frame("", { opcode: 0, isLast: false })),
        ]),
      1008,
    ],
    ["a compressed frame", () => frame("xxxx", { isCompressed: true }), 1002],
    ["a ping of 126 bytes", () => frame("x".repeat(126), { opcode: 9 }), 1002],
    ["a fragment of nothing", () => frame("x", { opcode: 0 }), 1002],
  ])("%s ends the client that sends it", async (_, bytes, code) => {
    const client = await openRawClient(browser.url());
    client.socket.write(bytes());
    expect(await client.closed).toBe(code);
  });

  test("a client with ten thousand commands unanswered gets an error for the next, and they are forgotten with it", async () => {
    const client = await connectRaw(browser.url());
    const session = await client.attach();
    const never = JSON.stringify({ expression: "new Promise(() => {})", awaitPromise: true });
    for (let id = 1000; id < 11_001; id += 1)
      client.socket.send(
        `{"id":${id},"method":"Runtime.evaluate","params":${never},"sessionId":"${session}"}`,
      );
    expect((await client.message(({ error }) => error !== undefined)).error?.message).toContain(
      "10000 commands wait",
    );
    await client.close();
    // Chromium is still busy with the ten thousand, and may not answer within the limit of an upgrade.
    const next = await until("a client is let in", () =>
      connectRaw(browser.url()).catch((error: Error) => {
        expect(error.message).toContain("503");
        return undefined;
      }),
    );
    expect((await next.send("Browser.getVersion")).result).toBeDefined();
    await next.close();
  });
});

describe("in a browser of its own", () => {
  afterEach(() => browser.close());

  test("a client that leaves while its message is being judged leaves nothing behind", async () => {
    await open();
    const client = await connectRaw(browser.url());
    client.socket.send(shapes["a long string"]?.() ?? "");
    await until("it has come", () => browser.bed.counts.received > 15 * mebibyte);
    client.socket.terminate();
    await until("it is gone", () => browser.bed.counts.closed === 1);
    const next = await connectRaw(browser.url());
    expect((await next.send("Browser.getVersion")).result).toBeDefined();
    await next.close();
  });

  test("clients that leave before anybody has judged what they sent leave nothing of it in memory", async () => {
    await open({}, { judgeScript: silentJudge });
    const long = frame(Buffer.alloc(15 * mebibyte, "x"));
    const collect = garbageCollector();
    collect();
    const before = process.memoryUsage().arrayBuffers;
    for (let left = 1; left <= 8; left += 1) {
      // Each holder may read so much at once.
      browser.bed.newLease(browser.chromium.id);
      const client = await openRawClient(browser.url());
      client.socket.write(long);
      await until("it has come", () => browser.bed.counts.received === left * 15 * mebibyte);
      client.socket.destroy();
      await until("it is gone", () => browser.bed.counts.closed === left);
    }
    const kept = (): number => {
      collect();
      return process.memoryUsage().arrayBuffers - before;
    };
    // Two threads have one each.
    await until("the rest is gone", () => kept() < 40 * mebibyte);
  });

  test("twenty clients that finish nothing are cut where they hold too much together, others are served", async () => {
    await open({ unfinished: { browserBytes: 8 * mebibyte, daemonBytes: 64 * mebibyte } });
    const other = await connectRaw(browser.url());
    const clients: RawClient[] = await Promise.all(
      Array.from({ length: 20 }, () => openRawClient(browser.url())),
    );
    const part = unfinished(mebibyte);
    for (const { socket } of clients) socket.write(part);
    await until("most are cut", () => browser.bed.counts.closed >= 12);
    expect((await other.send("Browser.getVersion")).result).toBeDefined();
    expect(clients.filter(({ socket }) => !socket.destroyed).length).toBeGreaterThanOrEqual(7);
    for (const { socket } of clients) socket.destroy();
    await until("all are gone", () => browser.bed.counts.closed === 20);
    await other.close();
  });

  test("a client that pings without end and reads nothing is cut", async () => {
    // Its silence to the gateway's own pings is not what ends it; ws 8.23 bears 60 pongs that wait.
    await open({ highWaterBytes: mebibyte / 4, holdMs: 300, pingMs: 600_000 });
    const other = await connectRaw(browser.url());
    const client = await openRawClient(browser.url());
    client.socket.pause();
    const pings = Buffer.concat(Array.from({ length: 10_000 }, () => frame("p".repeat(125), { opcode: 9 })));
    let sent = 0;
    const flood = (): void => {
      for (; sent < 60 && client.socket.write(pings); sent += 1);
      if (sent < 60) client.socket.once("drain", flood);
    };
    flood();
    await until("it is cut", () => browser.bed.counts.closed === 1);
    expect((await other.send("Browser.getVersion")).result).toBeDefined();
    client.socket.destroy();
    await other.close();
  });

  test("as many clients as may be: the next upgrade is 429, until one has gone", async () => {
    await open({ clients: 3 });
    const clients = await Promise.all([1, 2, 3].map(() => connectRaw(browser.url())));
    expect(await refusedUpgrade(browser.url())).toMatchObject({
      status: 429,
      body: { code: "too_many_clients" },
    });
    await clients[0]?.close();
    let next: RawCdp | undefined;
    await until(
      "there is room",
      async () => (next = await connectRaw(browser.url()).catch(() => undefined)) !== undefined,
    );
    await Promise.all([...clients.slice(1), next].map((client) => client?.close()));
  });

  test("a refused upgrade takes no place", async () => {
    await open({ clients: 1 });
    for (let turn = 0; turn < 3; turn += 1)
      expect((await refusedUpgrade(browser.url("/devtools/page/none"))).status).toBe(404);
    await (await connectRaw(browser.url())).close();
  });
});
