import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { RemudaError } from "../../src/base/errors.js";
import { newBrowserId, newLeaseId, onDemandPartition } from "../../src/base/ids.js";
import { RedisEventStore } from "../../src/store/telemetry/event-store.js";
import type { StoredEvent, StreamRef } from "../../src/telemetry/ports.js";
import { followStream, type StreamStart } from "../../src/telemetry/read-events.js";
import { DrivenClock } from "../support/driven-clock.js";
import { startRedis, type TestRedis } from "../support/store/redis.js";
import { openStoreBed, type StoreBed } from "../support/store/store-bed.js";

let server: TestRedis;
let bed: StoreBed;
let events: RedisEventStore;
let ref: StreamRef;
let written = 0;
beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server.stop());
beforeEach(async () => {
  bed = await openStoreBed(server, { project: "followed" });
  const limits = { maxBytes: 2 ** 20, maxAgeMs: 3_600_000, keepMs: 3_600_000 };
  events = new RedisEventStore(bed.store, { unnamed: bed.project, limits });
  ref = { browser: newBrowserId(onDemandPartition), lease: newLeaseId() };
  written = 0;
});
afterEach(() => bed.close());

async function write(count: number, text = ""): Promise<void> {
  written += 1;
  const event = { type: "api_call", category: "control" as const };
  await events.append({
    stream: ref,
    writer: ref.lease,
    number: written,
    after: 0,
    silentMs: 0,
    isStored: true,
    events: Array.from({ length: count }, () => ({ ...event, text: JSON.stringify({ ts: 1, data: text }) })),
  });
}

const filter = { types: [], categories: [] };
function follow(start: StreamStart, parts: Partial<Parameters<typeof followStream>[0]> = {}) {
  const clock = new DrivenClock();
  const stop = new AbortController();
  const all = { store: events, clock, isHeld: async () => true, until: stop.signal, ...parts };
  const reader = followStream(all, ref, { start, filter });
  // Time goes by while somebody waits for the next.
  const next = async (): Promise<readonly StoredEvent[] | undefined> => {
    const coming = reader.next();
    const waiting = { isOver: false };
    void coming.finally(() => (waiting.isOver = true)).catch(() => {});
    while (!waiting.isOver) {
      await clock.advance(50);
      await bed.store.now();
    }
    const { value, done } = await coming;
    return done ? undefined : value;
  };
  return { clock, reader, next, stop };
}
const seqs = (list: readonly StoredEvent[] | undefined) => list?.map(({ seq }) => seq);

test("begins with what comes, with the oldest, or after an event", async () => {
  await write(5);
  const [now, oldest, after] = [follow("now"), follow("oldest"), follow({ after: 3 })];
  for (const { next } of [now, oldest, after]) expect(await next()).toEqual([]);
  await write(3);
  expect(seqs(await now.next())).toEqual([6, 7, 8]);
  expect(seqs(await oldest.next())).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
  expect(seqs(await after.next())).toEqual([4, 5, 6, 7, 8]);
});

test("cut and resumed at any place it has every event once", async () => {
  const total = 600;
  const got: number[] = [];
  let cut = 7;
  while (got.length < total) {
    if (written < 6) await write(100);
    const reader = follow({ after: got.at(-1) ?? 0 });
    // A client that was cut has read some events of what it was sent.
    const taken = [...(seqs(await reader.next()) ?? []), ...(seqs(await reader.next()) ?? [])];
    cut = (cut * 31) % 97;
    got.push(...taken.slice(0, cut + 1));
    await reader.reader.return();
  }
  expect(got).toEqual(Array.from({ length: total }, (_, at) => at + 1));
});

test("gives a sign every 15 s while nothing comes", async () => {
  const { next, clock } = follow("now");
  expect(await next()).toEqual([]);
  expect(await next()).toEqual([]);
  expect(clock.now()).toBeGreaterThanOrEqual(15_000);
  expect(clock.now()).toBeLessThan(16_000);
  await write(1);
  expect(seqs(await next())).toEqual([1]);
});

test("ends when its lease is over, its last events told", async () => {
  let isHeld = true;
  const { next } = follow("now", { isHeld: async () => isHeld });
  await next();
  isHeld = false;
  await write(1);
  expect(seqs(await next())).toEqual([1]);
  expect(await next()).toBeUndefined();
});

test("ends at once when its reader has gone or the daemon stops", async () => {
  const { next, stop } = follow("now");
  await next();
  stop.abort();
  expect(await next()).toBeUndefined();
});

test("a reader that takes nothing is read nothing for, and one that comes too late sees the gap", async () => {
  let reads = 0;
  const counted = {
    last: events.last.bind(events),
    read: (...args: Parameters<typeof events.read>) => {
      reads += 1;
      return events.read(...args);
    },
  };
  const { next, clock } = follow("oldest", { store: counted });
  await next();
  for (let batch = 0; batch < 100; batch += 1) await write(50, "x".repeat(1000));
  await clock.advance(60_000);
  expect(reads).toBe(0);
  const [first] = (await next()) ?? [];
  expect(reads).toBe(1);
  // What is left of the stream fits its bounds; the numbers tell what has gone.
  expect(first?.seq).toBeGreaterThan(3000);
});

test("a store that is away ends no stream", async () => {
  let isAway = true;
  const sick = {
    last: events.last.bind(events),
    read: async (...args: Parameters<typeof events.read>) => {
      if (isAway) throw new RemudaError("store_unavailable");
      return await events.read(...args);
    },
  };
  await write(2);
  const { next, clock, reader } = follow("oldest", { store: sick });
  await next();
  const coming = reader.next();
  await clock.advance(5000);
  isAway = false;
  await clock.advance(250);
  expect(seqs((await coming).value as readonly StoredEvent[])).toEqual([1, 2]);
});

/** A store that is away while a test says so. */
function sickStore() {
  const sick = { isAway: false };
  const read = async (...args: Parameters<typeof events.read>) => {
    if (sick.isAway) throw new RemudaError("store_unavailable");
    return await events.read(...args);
  };
  return { sick, store: { last: events.last.bind(events), read } };
}

test("while the store is away the signs that the stream lives go on", async () => {
  const { sick, store } = sickStore();
  const { next, clock } = follow("now", { store });
  await next();
  sick.isAway = true;
  for (const sign of [1, 2, 3]) {
    expect(seqs(await next())).toEqual([]);
    expect(clock.now()).toBeLessThan(sign * 16_000);
  }
  sick.isAway = false;
  await write(1);
  expect(seqs(await next())).toEqual([1]);
});

test("where the store is away when its lease ends, the last events are told before it ends", async () => {
  const { sick, store } = sickStore();
  const held = { isHeld: true };
  const { reader, clock } = follow("now", { store, isHeld: async () => held.isHeld });
  await reader.next();
  await write(3);
  sick.isAway = true;
  held.isHeld = false;
  const coming = reader.next();
  await clock.advance(10_000);
  sick.isAway = false;
  await clock.advance(300);
  expect(seqs((await coming).value as readonly StoredEvent[])).toEqual([1, 2, 3]);
  const ending = reader.next();
  await clock.advance(300);
  expect((await ending).done).toBe(true);
});

test("after an event that is not there, since the store has lost it or it is another lease's, it goes on with what comes", async () => {
  await write(2);
  const { next } = follow({ after: 900 });
  await next();
  await write(2);
  expect(seqs(await next())).toEqual([3, 4]);
});

test("a silent stream is asked for its last number, and read when that grows", async () => {
  let reads = 0;
  const counted = {
    last: events.last.bind(events),
    read: (...args: Parameters<typeof events.read>) => {
      reads += 1;
      return events.read(...args);
    },
  };
  await write(1);
  const { next } = follow("now", { store: counted });
  await next();
  // Fifteen seconds of silence, looked at four times a second.
  expect(seqs(await next())).toEqual([]);
  expect(reads).toBe(1);
  await write(2);
  expect(seqs(await next())).toEqual([2, 3]);
  expect(reads).toBe(2);
});
