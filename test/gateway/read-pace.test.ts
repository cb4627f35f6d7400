import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import { FairTurns } from "../../src/base/fair-turns.js";
import { ReadPace } from "../../src/gateway/read-pace.js";
import { DrivenClock } from "../support/driven-clock.js";

const kibibyte = 1024;

/** A client whose bytes take so long to read; what is read of it, and how much at once. */
function open({ msPerKibibyte, messages = 0 }: { msPerKibibyte: number; messages?: number }) {
  const incoming = { messages: 0 };
  const clock = new DrivenClock();
  const turn = new FairTurns(clock).open({ share: 1 });
  const socket = new PassThrough({ highWaterMark: 64 * kibibyte });
  const pieces: Buffer[] = [];
  let holds = 0;
  const pace = new ReadPace({
    socket,
    turn,
    incoming,
    clock,
    wait: () => {
      holds += 1;
      socket.pause();
      pace.pause();
    },
    proceed: () => {
      holds -= 1;
      if (holds > 0) return;
      socket.resume();
      pace.resume();
    },
  });
  socket.on("data", (chunk: Buffer) => {
    pace.begin(chunk);
    pieces.push(chunk);
    incoming.messages += messages;
    clock.stand((chunk.length / kibibyte) * msPerKibibyte);
    pace.end();
  });
  return { clock, turn, socket, pieces, pace };
}

const bytes = Buffer.from(Array.from({ length: 256 * kibibyte }, (_, at) => at % 251));

async function send(client: ReturnType<typeof open>): Promise<void> {
  const { socket, clock } = client;
  for (let at = 0; at < bytes.length; at += 64 * kibibyte)
    socket.write(bytes.subarray(at, at + 64 * kibibyte));
  socket.end();
  while (!socket.readableEnded) {
    clock.stand(1);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

test("a client whose messages are short is read in small pieces once its turn is over, and all of it to its end", async () => {
  const client = open({ msPerKibibyte: 0.05 });
  await send(client);
  expect(Buffer.concat(client.pieces)).toEqual(bytes);
  const lengths = client.pieces.map(({ length }) => length);
  expect(lengths[0]).toBe(64 * kibibyte);
  // What takes 3 ms at once takes some 0.3 ms at most from then on.
  expect(lengths.slice(6).every((length) => length <= 6 * kibibyte)).toBe(true);
});

test("one that sends long messages is read as much at once as before", async () => {
  const client = open({ msPerKibibyte: 0.15 / 64 });
  await send(client);
  expect(Buffer.concat(client.pieces)).toEqual(bytes);
  expect(client.pieces).toHaveLength(4);
});

test("nothing more is read of a client before ws has given all messages of what was read", async () => {
  const client = open({ msPerKibibyte: 0.15 / 64, messages: 3 });
  const { socket, pieces, pace } = client;
  const rounds = async (): Promise<void> => {
    for (let round = 0; round < 3; round += 1) await new Promise((resolve) => setImmediate(resolve));
  };
  for (let at = 0; at < 2; at += 1) socket.write(bytes.subarray(0, 64 * kibibyte));
  await rounds();
  for (let given = 0; given < 3; given += 1) {
    expect(pieces).toHaveLength(1);
    pace.given();
    await rounds();
  }
  expect(pieces).toHaveLength(2);
});
