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

/** Somebody who never reads, until they are cut; gives the most that was seen to wait for them. */
async function stall(): Promise<number> {
  let [made, most, isOver] = [0, 0, false];
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
  const look = async (): Promise<number | undefined> => {
    const left = await unsent();
    most = Math.max(most, left ?? 0);
    return left;
  };
  try {
    const patience = { timeout: 60_000 };
    await expect.poll(look, patience).toBeUndefined();
    // What it had open is given back, whose seat is another reader's from then on.
    if (made > 0) await expect.poll(() => isOver, patience).toBe(true);
    expect(most).toBeLessThan(mostUnsentBytes);
    expect(made).toBeLessThan(mostBytes);
    return most;
  } finally {
    socket.destroy();
  }
}

test("a reader of events who never reads has no more made for it than its connection takes, and is cut", async () => {
  let [most, tries] = [0, 0];
  // Where this process has had no turn for long, the connection was cut before anybody had looked.
  for (; most === 0; tries += 1) {
    expect(tries, "the connection is cut each time before anybody looks").toBeLessThan(10);
    most = await stall();
  }
});
