import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { RemudaError } from "../../src/base/errors.js";
import { newBrowserId, newLeaseId, onDemandPartition } from "../../src/base/ids.js";
import { RedisEventStore } from "../../src/store/telemetry/event-store.js";
import type { EventStore, StreamRef } from "../../src/telemetry/ports.js";
import { StreamReads } from "../../src/telemetry/stream-reads.js";
import { DrivenClock } from "../support/driven-clock.js";
import { startRedis, type TestRedis } from "../support/store/redis.js";
import { openStoreBed, type StoreBed } from "../support/store/store-bed.js";

let server: TestRedis;
let bed: StoreBed;
let events: RedisEventStore;
/** Questions that have reached the store, and how many of them at once at most. */
let asked: { all: number; underWay: number; most: number };
let reads: StreamReads;
beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server.stop());
beforeEach(async () => {
  bed = await openStoreBed(server, { project: "followed" });
  const limits = { maxBytes: 2 ** 20, maxAgeMs: 3_600_000, keepMs: 3_600_000 };
  events = new RedisEventStore(bed.store, { unnamed: bed.project, limits });
  asked = { all: 0, underWay: 0, most: 0 };
  const store = {
    read: (...of: Parameters<EventStore["read"]>) => counted(() => events.read(...of)),
    last: (stream: StreamRef) => counted(() => events.last(stream)),
  };
  reads = new StreamReads(store, new DrivenClock());
});
afterEach(() => bed.close());

async function counted<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
  asked.all += 1;
  asked.underWay += 1;
  asked.most = Math.max(asked.most, asked.underWay);
  return await ask().finally(() => (asked.underWay -= 1));
}

const newStream = (): StreamRef => ({ browser: newBrowserId(onDemandPartition), lease: newLeaseId() });

async function write(stream: StreamRef, count: number, number = 1): Promise<void> {
  const event = { type: "api_call", category: "control" as const, text: '{"ts":1}' };
  const batch = { stream, writer: stream.lease, number, after: 0, silentMs: 0, isStored: true };
  await events.append({ ...batch, events: Array.from({ length: count }, () => event) });
}

const after = (cursor: number): Parameters<EventStore["read"]>[1] => ({
  filter: { types: [], categories: [] },
  order: "asc",
  limit: 100,
  cursor,
});

test("readers of a stream who ask the same meanwhile are one question, and each gets all of the answer", async () => {
  const stream = newStream();
  await write(stream, 7);
  const pages = await Promise.all(Array.from({ length: 500 }, () => reads.read(stream, after(2))));
  expect(pages.map(({ events: told }) => told.map(({ seq }) => seq))).toEqual(
    pages.map(() => [3, 4, 5, 6, 7]),
  );
  expect(asked).toEqual({ all: 2, underWay: 0, most: 1 });
});

test("an answer is never older than its question", async () => {
  const stream = newStream();
  await write(stream, 1);
  for (let number = 2; number < 20; number += 1) {
    const earlier = reads.last(stream);
    await write(stream, 1, number);
    expect(await reads.last(stream)).toBe(number);
    await earlier;
  }
});

test("a stream with many readers holds up no other, and four questions are under way at once", async () => {
  const [crowded, ...others] = Array.from({ length: 9 }, newStream) as [StreamRef, ...StreamRef[]];
  const answered: StreamRef[] = [];
  const ask = async (stream: StreamRef, cursor: number): Promise<void> => {
    await reads.read(stream, after(cursor));
    answered.push(stream);
  };
  const crowd = Array.from({ length: 500 }, (_, cursor) => ask(crowded, cursor));
  await Promise.all(others.map((stream) => ask(stream, 0)));
  expect(answered.filter((stream) => stream === crowded).length).toBeLessThan(20);
  await Promise.all(crowd);
  expect(asked).toEqual({ all: 508, underWay: 0, most: 4 });
});

test("a part of the store that hangs holds up the readers of no other", async () => {
  const clock = new DrivenClock();
  const sound = newStream();
  await write(sound, 3);
  const hanging = new Set<(answer: number) => void>();
  const partly = new StreamReads(
    {
      read: (stream, query) => events.read(stream, query),
      last: () => new Promise((resolve) => hanging.add(resolve)),
    },
    clock,
  );
  const hung = Array.from({ length: 8 }, () => partly.last(newStream()));
  const page = partly.read(sound, after(0));
  expect(hanging.size).toBe(4);
  await clock.advance(50);
  expect(hanging.size).toBe(8);
  await clock.advance(50);
  expect((await page).events).toHaveLength(3);
  for (const answer of hanging) answer(7);
  expect(await Promise.all(hung)).toEqual(hung.map(() => 7));
});

test("where the store is away all who wait for one stream are told so, and nobody else", async () => {
  const [lost, sound] = [newStream(), newStream()];
  await write(sound, 3);
  const partly = new StreamReads(
    {
      read: (stream, query) =>
        stream === lost ? Promise.reject(new RemudaError("store_unavailable")) : events.read(stream, query),
      last: (stream) => events.last(stream),
    },
    new DrivenClock(),
  );
  const asking = Array.from({ length: 50 }, (_, cursor) => partly.read(lost, after(cursor)));
  const other = partly.read(sound, after(0));
  const told = await Promise.allSettled(asking);
  const away = { status: "rejected", reason: expect.objectContaining({ code: "store_unavailable" }) };
  expect(told).toEqual(asking.map(() => away));
  expect((await other).events).toHaveLength(3);
  expect(await partly.last(lost)).toBe(0);
});
