import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import { Budget } from "../../../src/base/budget.js";
import { turns } from "../../../src/base/fair-turns.js";
import { bytesOf, wholeOf } from "../../../src/browser/cdp/frame.js";
import { openPipe, type Pipe, type PipeParts } from "../../../src/browser/cdp/pipe.js";
import { until } from "../../support/browser/chromium-until.js";

const mebibyte = 2 ** 20;

function open(given: PipeParts = {}): {
  pipe: Pipe;
  output: PassThrough;
  frames: string[];
  lengths: number[];
  parts: number[][];
} {
  const output = new PassThrough({ highWaterMark: 4 * mebibyte });
  const pipe = openPipe(new PassThrough(), output, given);
  const [frames, lengths]: [string[], number[]] = [[], []];
  const parts: number[][] = [];
  pipe.onFrame((frame) => {
    lengths.push(bytesOf(frame));
    if (!Buffer.isBuffer(frame)) parts.push(frame.map(({ length }) => length));
    if (bytesOf(frame) < 1000) frames.push(wholeOf(frame).toString());
  });
  return { pipe, output, frames, lengths, parts };
}

test("a thousand messages in one read come in their order, a part of them in each round of the event loop", async () => {
  const { output, frames } = open();
  const sent = Array.from({ length: 1000 }, (_, at) => `{"method":"A.b","params":{"at":${at}}}`);
  output.write(`${sent.join("\0")}\0{"method":"A`);
  while (frames.length === 0) await new Promise((resolve) => setImmediate(resolve));
  expect(frames.length).toBeLessThan(200);
  await until("all have come", () => frames.length === 1000);
  output.write('.c"}\0');
  await until("the last has come", () => frames.length === 1001);
  expect(frames).toEqual([...sent, '{"method":"A.c"}']);
});

test("messages of a browser that were put off are delivered even when the browser is gone by then", async () => {
  const { pipe, output, frames } = open();
  let heard = -1;
  pipe.onClosed(() => (heard = frames.length));
  output.write(`${Array.from({ length: 1000 }, (_, at) => `{"id":${at}}`).join("\0")}\0{"id":`);
  await until("some have come", () => frames.length > 0);
  output.destroy();
  await until("its end", () => heard >= 0);
  expect(heard).toBe(1000);
  await new Promise((resolve) => setImmediate(resolve));
  expect(frames.length).toBe(1000);
});

test("held while a read is put off, it goes on when it is let go", async () => {
  const { pipe, output, frames } = open();
  output.write(`${Array.from({ length: 300 }, () => "{}").join("\0")}\0`);
  await until("some have come", () => frames.length > 0);
  pipe.hold();
  output.write("[]\0");
  await until("what was read has come", () => frames.length === 300);
  pipe.resume();
  await until("the rest has come", () => frames.length === 301);
});

test("a message without end takes no more than its limit: an answer becomes an error, an event is dropped, the next is read", async () => {
  // At the rate of a browser in the long run, what is written here would take 14 s.
  const { output, frames, lengths } = open({ turn: turns.open({ share: 1 }) });
  const part = Buffer.alloc(mebibyte, "x");
  const write = (bytes: Buffer | string): Promise<void> =>
    new Promise((resolve) => output.write(bytes, () => resolve()));
  await write('{"id":1073741830,"result":{"value":"');
  for (let sent = 0; sent < 130; sent += 1) await write(part);
  await write('"},"sessionId":"ABC-1"}\0{"method":"A.b","params":"');
  for (let sent = 0; sent < 130; sent += 1) await write(part);
  await write('","sessionId":"ABC-1"}\0{"id":2,"result":{}}\0');
  await until("the last has come", () => frames.length === 2);
  expect(frames).toEqual([
    '{"id":1073741830,"error":{"code":-32000,"message":"The answer is too long"},"sessionId":"ABC-1"}',
    '{"id":2,"result":{}}',
  ]);
  expect(lengths).toHaveLength(2);
});

test("a long message stays in parts, however small the pieces are in which it comes, and its ends are each in one", async () => {
  const { output, lengths, parts } = open();
  const pieces = [1, 60_000, 3, 65_536, 65_536, 65_536, 4000, ...Array.from({ length: 5000 }, () => 7), 5];
  const write = (bytes: number): Promise<void> =>
    new Promise((resolve) => output.write(Buffer.alloc(bytes, "x"), () => resolve()));
  for (const bytes of pieces) await write(bytes);
  output.write("\0");
  await until("it has come", () => lengths.length === 1);
  const bytes = pieces.reduce((sum, each) => sum + each, 0);
  expect(lengths).toEqual([bytes]);
  expect(parts[0]?.length).toBeLessThan(8);
  for (const part of parts[0] ?? []) expect(part).toBeGreaterThanOrEqual(4096);
});

test("where browsers have not finished too much together the longest message is given up, the others come", async () => {
  const budget = new Budget({ browserBytes: 128 * mebibyte, daemonBytes: 4 * mebibyte });
  const [long, short] = ["long", "short"].map((name) => open({ counting: (cut) => budget.open(name, cut) }));
  if (!long || !short) throw new Error("there are two");
  long.output.write(`{"id":1073741831,"result":{"value":"${"x".repeat(3 * mebibyte)}`);
  await until("it is counted", () => budget.heldBytes > 3 * mebibyte);
  short.output.write(`{"id":1073741832,"result":{"value":"${"y".repeat(2 * mebibyte)}`);
  await until("one is given up", () => budget.heldBytes < 3 * mebibyte);
  short.output.write('"}}\0');
  long.output.write('"},"sessionId":"ABC-1"}\0{"id":3,"result":{}}\0');
  await until("all have come", () => short.lengths.length === 1 && long.frames.length === 2);
  expect(short.lengths[0]).toBeGreaterThan(2 * mebibyte);
  expect(long.frames[0]).toBe(
    '{"id":1073741831,"error":{"code":-32000,"message":"The answer is too long"},"sessionId":"ABC-1"}',
  );
  expect(budget.heldBytes).toBe(0);
});
