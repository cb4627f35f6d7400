import { Readable, Writable } from "node:stream";
import { finished } from "node:stream/promises";
import { expect, test } from "vitest";
import { systemClock } from "../../src/base/clock.js";
import { FairTurns } from "../../src/base/fair-turns.js";
import { pipeBytes } from "../../src/egress/join-sockets.js";

const chunks = 400;
const chunkBytes = 65_536;

/** A source that has all at once, and what came of it in each round of the event loop. */
function carry(turns: FairTurns): {
  readonly rounds: readonly number[];
  readonly done: Promise<unknown>;
  readonly bytes: () => number;
} {
  let [left, inRound, bytes] = [chunks, 0, 0];
  const rounds: number[] = [];
  const from = new Readable({
    read: function () {
      this.push(left-- > 0 ? Buffer.alloc(chunkBytes, left % 251) : null);
    },
  });
  const to = new Writable({
    write(chunk: Buffer, _encoding, done) {
      if (inRound === 0) setImmediate(() => (rounds.push(inRound), (inRound = 0)));
      inRound += 1;
      bytes += chunk.length;
      done();
    },
  });
  pipeBytes(from, to, { clock: systemClock, turn: turns.open() });
  return { rounds, done: finished(to), bytes: () => bytes };
}

test("what flows takes its turns of the event loop, and arrives whole", async () => {
  const { rounds, done, bytes } = carry(new FairTurns(systemClock));
  await done;
  expect(bytes()).toBe(chunks * chunkBytes);
  expect(rounds.length).toBeGreaterThan(20);
  expect(Math.max(...rounds)).toBeLessThan(20);
});

test("two of one browser go on side by side", async () => {
  const turns = new FairTurns(systemClock);
  const both = [carry(turns), carry(turns)];
  await Promise.all(both.map(({ done }) => done));
  expect(both.map(({ bytes }) => bytes())).toEqual([chunks * chunkBytes, chunks * chunkBytes]);
});
