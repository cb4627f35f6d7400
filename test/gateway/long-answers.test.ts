import { afterEach, beforeEach, expect, test } from "vitest";
import { type GatewayBrowser, openGatewayBrowser } from "../support/gateway/gateway-browser.js";
import { connectRaw, type RawCdp } from "../support/gateway/raw-cdp.js";
import { frame, openRawClient } from "../support/gateway/raw-frames.js";
import { usualStall } from "../support/stall.js";

const mebibyte = 2 ** 20;
const longBytes = 90 * mebibyte;
let browser: GatewayBrowser;
let other: RawCdp;

beforeEach(async () => {
  // A ping between would be no part of an answer.
  browser = await openGatewayBrowser({}, { limits: { pingMs: 600_000 } });
  other = await connectRaw(browser.url());
});
afterEach(async () => {
  other.socket.terminate();
  await browser.close();
});

async function firstPage(): Promise<string> {
  const infos = (await other.send("Target.getTargets")).result?.["targetInfos"] as {
    targetId: string;
    type: string;
  }[];
  return infos.find(({ type }) => type === "page")?.targetId ?? "";
}

const evaluation = (expression: string): string =>
  JSON.stringify({ id: 5, method: "Runtime.evaluate", params: { expression, returnByValue: true } });

/** Nothing but the bytes of one answer, its frame's head included: what reads them shares the event loop. */
async function makeReader(): Promise<(ask: string, bytes: number) => Promise<Buffer[]>> {
  const { socket } = await openRawClient(browser.url(`/devtools/page/${await firstPage()}`));
  socket.removeAllListeners("data");
  return async (ask, bytes) => {
    const chunks: Buffer[] = [];
    let left = bytes;
    const whole = new Promise<void>((resolve) => {
      const take = (chunk: Buffer): void => {
        chunks.push(chunk);
        left -= chunk.length;
        if (left > 0) return;
        socket.off("data", take);
        resolve();
      };
      socket.on("data", take);
    });
    socket.write(frame(ask));
    await whole;
    return chunks;
  };
}

/** An eighth of what parsing 8 MiB takes. */
const bearable = 1 / 8;

test("an answer of 90 MiB is one whole frame, and nobody stands still for it", async () => {
  const read = await makeReader();
  const [head, tail] = ['{"id":5,"result":{"result":{"type":"string","value":"', '"}}}'];
  const bytes = head.length + longBytes + tail.length;
  let chunks: Buffer[] = [];
  const stall = await usualStall(async () => {
    chunks = [];
    chunks = await read(evaluation(`"x".repeat(${longBytes})`), 10 + bytes);
  }, bearable);
  const [first = Buffer.alloc(0), last = first] = [chunks[0], chunks.at(-1)];
  expect([first[0], first[1], Number(first.readBigUInt64BE(2))]).toEqual([0x81, 127, bytes]);
  expect(first.toString("latin1", 10, 10 + head.length)).toBe(head);
  expect(last.toString("latin1", last.length - tail.length)).toBe(tail);
  expect(chunks.reduce((sum, { length }) => sum + length, 0)).toBe(10 + bytes);
  expect(Buffer.concat(await read(evaluation("6 * 7"), 2)).toString()).toContain('"value":42');
  expect(stall).toBeLessThan(bearable);
});

test("long answers and events come whole and in their order to sessions of any kind", async () => {
  const session = await other.attach();
  await other.send("Runtime.enable", {}, session);
  await other.send("Runtime.addBinding", { name: "tell" }, session);
  const long = 3 * mebibyte;
  const value = `"é\\"".repeat(${long / 3})`;
  const [first, second, third] = await Promise.all([
    other.evaluate(`tell(${value}); 1`, session),
    other.evaluate(value, session),
    other.evaluate("3", session),
  ]);
  const expected = 'é"'.repeat(long / 3);
  expect([first, second === expected, third]).toEqual([1, true, 3]);
  const called = await other.message(({ method }) => method === "Runtime.bindingCalled");
  expect([called.params?.["payload"] === expected, called.sessionId]).toEqual([true, session]);
});
