import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import { openPipe, type Pipe } from "../../src/browser/pipe.js";
import { until } from "../support/chromium-until.js";

const mebibyte = 2 ** 20;

function open(): { pipe: Pipe; output: PassThrough; frames: string[]; lengths: number[] } {
  const output = new PassThrough({ highWaterMark: 4 * mebibyte });
  const pipe = openPipe(new PassThrough(), output);
  const [frames, lengths]: [string[], number[]] = [[], []];
  pipe.onFrame((frame) => {
    lengths.push(frame.length);
    if (frame.length < 1000) frames.push(frame.toString());
  });
  return { pipe, output, frames, lengths };
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
  const { output, frames, lengths } = open();
  const part = Buffer.alloc(mebibyte, "x");
  const write = (bytes: Buffer | string): Promise<void> => new Promise((resolve) => output.write(bytes, () => resolve()));
  await write('{"id":1073741830,"result":{"value":"');
  for (let sent = 0; sent < 130; sent += 1) await write(part);
  await write('"},"sessionId":"ABC-1"}\0{"method":"A.b","params":"');
  for (let sent = 0; sent < 130; sent += 1) await write(part);
  await write('","sessionId":"ABC-1"}\0{"id":2,"result":{}}\0');
  await until("the last has come", () => frames.length === 2);
  expect(frames).toEqual([
    `{"id":1073741830,"error":{"code":-32000,"message":"The answer is longer than ${128 * mebibyte} bytes"},"sessionId":"ABC-1"}`, '{"id":2,"result":{}}',
  ]);
  expect(lengths).toHaveLength(2);
});
