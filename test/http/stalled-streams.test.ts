import { expect, test } from "vitest";
import { done } from "../../src/base/errors.js";
import { key, sharedServer } from "../support/http/http-server.js";
import { stallReader } from "../support/http/stalled-reader.js";

const server = sharedServer({ silenceTimeoutMs: 2000 });
const bytes = 64 * 1024;
/** More than Linux keeps of one connection for both its ends. */
const mostBytes = 32 * 2 ** 20;
/** What it keeps of that for the daemon; without a bound it is 4 MiB. */
const mostUnsentBytes = 512 * 1024;
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
  let most = 0;
  const look = async (): Promise<number | undefined> => {
    const left = await unsent();
    most = Math.max(most, left ?? 0);
    return left;
  };
  try {
    const patience = { timeout: 60_000 };
    await expect.poll(look, patience).toBeGreaterThan(0);
    // What it had open is given back, whose seat is another reader's from then on.
    await expect.poll(async () => (await look(), isOver), patience).toBe(true);
    await expect.poll(look, patience).toBeUndefined();
    expect(most).toBeLessThan(mostUnsentBytes);
    expect(made).toBeLessThan(mostBytes);
  } finally {
    socket.destroy();
  }
});
