import { once } from "node:events";
import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import { WebSocket } from "ws";
import { IncomingFrames } from "../../src/gateway/incoming-frames.js";
import { frame } from "../support/gateway/raw-frames.js";

const kibibyte = 1024;

/** What ws understands of the bytes after `IncomingFrames` has seen them. */
async function received(pieces: readonly Buffer[]): Promise<string[]> {
  const stream = new PassThrough();
  const socket = new WebSocket(null as never, undefined, { isServer: true } as never);
  const messages: string[] = [];
  socket.on("message", (data: Buffer) => messages.push(data.toString()));
  const incoming = new IncomingFrames();
  const through = Object.assign(stream, { setTimeout: () => {}, setNoDelay: () => {} });
  (socket as unknown as { setSocket(socket: unknown, head: Buffer, options: object): void }).setSocket(
    through,
    Buffer.alloc(0),
    { maxPayload: 0 },
  );
  through.prependListener("data", (chunk: Buffer) => incoming.take(chunk));
  for (const piece of pieces) stream.write(piece);
  stream.write(frame("the end"));
  while (messages.at(-1) !== "the end") await once(socket, "message");
  expect(incoming.unfinishedBytes).toBe(0);
  expect(incoming.messages).toBe(messages.length);
  socket.terminate();
  return messages.slice(0, -1);
}

const cut = (bytes: Buffer, sizes: readonly number[]): Buffer[] => {
  const pieces: Buffer[] = [];
  for (let [at, turn] = [0, 0]; at < bytes.length; turn += 1) {
    const size = sizes[turn % sizes.length] ?? 1;
    pieces.push(Buffer.from(bytes.subarray(at, at + size)));
    at += size;
  }
  return pieces;
};

const long = Array.from({ length: 64 * kibibyte }, (_, at) => String.fromCharCode(97 + (at % 23))).join("");

test.each([[[5]], [[7]], [[65_536]], [[3, 65_531]], [[1_000_000]], [[2, 1, 1, 1, 1, 5, 40_000]]])(
  "frames of any length, cut in pieces of %j bytes, are what they were",
  async (sizes) => {
    const texts = ["short", "", long, "x".repeat(300), "last"];
    const bytes = Buffer.concat(texts.map((text) => frame(text)));
    expect(await received(cut(bytes, sizes))).toEqual(texts);
  },
);

test("a message in fragments, with a ping between them, is what it was", async () => {
  const bytes = Buffer.concat([
    frame(long, { isLast: false }),
    frame("ping", { opcode: 9 }),
    frame(long, { opcode: 0, isLast: false }),
    frame("end", { opcode: 0 }),
  ]);
  expect(await received(cut(bytes, [5003]))).toEqual([`${long}${long}end`]);
});

test("what is not whole is counted until it is, pings are not", () => {
  const incoming = new IncomingFrames();
  incoming.take(frame("x".repeat(5000), { isLast: false }));
  const first = incoming.unfinishedBytes;
  expect(first).toBeGreaterThanOrEqual(5000);
  incoming.take(frame("p".repeat(100), { opcode: 9 }));
  expect(incoming.unfinishedBytes).toBe(first);
  for (let fragment = 0; fragment < 1000; fragment += 1)
    incoming.take(frame("x", { opcode: 0, isLast: false }));
  expect(incoming.unfinishedBytes).toBeGreaterThan(first + 100 * 1000);
  incoming.take(frame("", { opcode: 0 }));
  expect(incoming.unfinishedBytes).toBe(0);
});
