import { PassThrough } from "node:stream";
import { buffer } from "node:stream/consumers";
import { expect, test } from "vitest";
import { wholeOf } from "../../../src/browser/cdp/frame.js";
import { PacketReader, writePacket } from "../../../src/gateway/bidi/packets.js";

async function packed(...messages: readonly string[]): Promise<Buffer> {
  const stream = new PassThrough();
  for (const message of messages) writePacket(stream, message);
  stream.end();
  return await buffer(stream);
}

test("packets come whole however they are cut, empty ones too", async () => {
  const messages = ["one", "", "x".repeat(1000), "é"];
  const bytes = await packed(...messages);
  for (const size of [1, 3, 7, 1000, bytes.length]) {
    const found: string[] = [];
    const reader = new PacketReader((frame) => found.push(wholeOf(frame).toString()));
    for (let at = 0; at < bytes.length; at += size) reader.push(bytes.subarray(at, at + size));
    expect(found).toEqual(messages);
  }
});

test("a packet that is longer than it may be is told of before anything of it is kept", async () => {
  const found: string[] = [];
  const reader = new PacketReader((frame) => found.push(wholeOf(frame).toString()), {
    mostBytes: 4,
    exceeded: () => found.push("too long"),
  });
  reader.push(await packed("four", "fives", "more"));
  expect(found).toEqual(["four", "too long"]);
});
