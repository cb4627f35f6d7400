import { expect, test } from "vitest";
import { done } from "../../src/base/errors.js";
import { key, sharedServer } from "../support/http/http-server.js";
import { stallReader } from "../support/http/stalled-reader.js";

const server = sharedServer({ silenceTimeoutMs: 2000 });
const bytes = 64 * 1024;
/** More than Linux keeps of one connection for both its ends. */
const mostBytes = 32 * 2 ** 20;
const event = { seq: 1, text: JSON.stringify({ ts: 1, data: "x".repeat(bytes) }) };

test("a reader of events who never reads has no more made for it than its connection takes, and is cut", async () => {
  let [made, isOver] = [0, false];
  async function* events() {
    try {
      for (;;) {
        made += bytes;
        yield [event];
      }
    } finally {
      isOver = true;
    }
  }
  server().operations.answer("events.stream", async () => done(events()));
  const line = "GET /browsers/brow1234brow1234brow1234/telemetry/stream";
  const { socket, unsent } = await stallReader(server().url, line, [`Authorization: Bearer ${key}`]);
  try {
    const patience = { timeout: 20_000 };
    await expect.poll(unsent, patience).toBeGreaterThan(0);
    // What it had open is given back, whose seat is another reader's from then on.
    await expect.poll(() => isOver, patience).toBe(true);
    await expect.poll(unsent, patience).toBeUndefined();
    expect(made).toBeLessThan(mostBytes);
  } finally {
    socket.destroy();
  }
});
