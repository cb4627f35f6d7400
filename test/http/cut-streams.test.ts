import { randomInt } from "node:crypto";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { systemClock } from "../../src/base/clock.js";
import { done } from "../../src/base/errors.js";
import { newBrowserId, newLeaseId, onDemandPartition } from "../../src/base/ids.js";
import { RedisEventStore } from "../../src/store/telemetry/event-store.js";
import type { StreamRef } from "../../src/telemetry/ports.js";
import { type EventOperations, followStream } from "../../src/telemetry/read-events.js";
import { Random } from "../simulation/random.js";
import { until } from "../support/browser/chromium-until.js";
import { key, sharedServer } from "../support/http/http-server.js";
import { startRedis, type TestRedis } from "../support/store/redis.js";
import { openStoreBed, type StoreBed } from "../support/store/store-bed.js";
import { gapsIn, StreamFollower, wrongNumbers } from "../support/telemetry/stream-follower.js";

const server = sharedServer();
const steps = 60;
let redis: TestRedis;
let bed: StoreBed;
let events: RedisEventStore;
let ref: StreamRef;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());
beforeEach(async () => {
  bed = await openStoreBed(redis, { project: "cut" });
  const limits = { maxBytes: 2 ** 26, maxAgeMs: 3_600_000, keepMs: 3_600_000 };
  events = new RedisEventStore(bed.store, { unnamed: bed.project, limits });
  ref = { browser: newBrowserId(onDemandPartition), lease: newLeaseId() };
});
afterEach(() => bed.close());

/** Writes events of these lengths at once. */
async function write(number: number, lengths: readonly number[]): Promise<void> {
  const event = { type: "api_call", category: "control" as const };
  const text = (length: number): string => JSON.stringify({ ts: 1, data: { text: "x".repeat(length) } });
  const batch = { stream: ref, writer: ref.lease, number, after: 0, silentMs: 0, isStored: true };
  await events.append({ ...batch, events: lengths.map((length) => ({ ...event, text: text(length) })) });
}

/** Streams the bed's events, as a daemon does. */
const stream: EventOperations["stream"] = async (_, ask, { gone }) =>
  done(followStream({ store: events, clock: systemClock, isHeld: async () => true, until: gone }, ref, ask));

interface Cutting {
  readonly random: Random;
  readonly followers: readonly StreamFollower[];
}

/**
 * Writes so many batches, cuts readers before them and waits for one of them by chance; gives how many
 * events.
 */
async function writeAndCut({ random, followers }: Cutting): Promise<number> {
  let written = 0;
  for (let step = 1; step <= steps; step += 1) {
    const lengths = Array.from({ length: random.between(1, 20) }, () => random.below(20_000));
    await write(step, lengths);
    written += lengths.length;
    followers.filter(() => random.chance(0.5)).forEach((follower) => follower.cut());
    const awaited = random.chance(0.25) ? written - random.below(20) : 0;
    await until("some of it", () => (followers[0]?.lastSeq ?? 0) >= awaited);
  }
  return written;
}

test("a reader who is cut at random, in the middle of events too, and goes on after its last has each once", async () => {
  const seed = Number(process.env["REMUDA_SEED"] ?? randomInt(2 ** 31));
  server().operations.answer("events.stream", stream);
  const place = { url: server().url, apiKey: key };
  const followers = [1, 2, 3].map(() => new StreamFollower([place], ref.browser));
  try {
    const written = await writeAndCut({ random: new Random(seed), followers });
    await until("all of it", () => followers.every(({ lastSeq }) => lastSeq >= written), 60_000);
    for (const { told, opened } of followers) {
      expect([wrongNumbers(told), gapsIn(told), told.length], `seed ${seed}`).toEqual([[], 0, written]);
      expect(opened.length, `seed ${seed}`).toBeGreaterThan(5);
    }
  } finally {
    await Promise.all(followers.map((follower) => follower.stop()));
  }
});
