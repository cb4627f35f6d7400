import { expect, test } from "vitest";
import { newBrowserId, newLeaseId, onDemandPartition } from "../../../src/base/ids.js";
import { RedisEventStore } from "../../../src/store/telemetry/event-store.js";
import type { EventQuery, StreamRef, WrittenEvent } from "../../../src/telemetry/ports.js";
import { onBoth } from "../../support/store/on-both.js";

const limits = { maxBytes: 100_000, maxAgeMs: 3_600_000, keepMs: 3_600_000 };
const all: EventQuery = { filter: { types: [], categories: [] }, order: "asc", limit: 100 };
const stream = (): StreamRef => ({ browser: newBrowserId(onDemandPartition), lease: newLeaseId() });

const at = (ts: number): WrittenEvent => ({
  type: "api_call",
  category: "control",
  text: JSON.stringify({ ts, data: {} }),
});
const batchOf = (ref: StreamRef, number: number, events: readonly WrittenEvent[]) => ({
  stream: ref,
  writer: ref.lease,
  number,
  after: 0,
  events,
  isStored: true,
});

onBoth("events that Redis has lost", ({ bed }) => {
  const open = (): RedisEventStore => new RedisEventStore(bed().store, { unnamed: bed().project, limits });
  const seqs = async (events: RedisEventStore, ref: StreamRef, query: Partial<EventQuery> = {}) =>
    (await events.read(ref, { ...all, ...query })).events.map(({ seq }) => seq);

  test("a Redis that has lost events is told which numbers were given, and is swept of what comes", async () => {
    const [events, ref] = [open(), stream()];
    const first = await events.append(batchOf(ref, 1, [at(1), at(2), at(3)]));
    expect(first).toEqual({ last: 3, lost: 0 });
    for (const key of await bed().redis.keys("*")) await bed().redis.unlink(key);
    const next = { ...batchOf(ref, 2, [at(4)]), after: first.last };
    expect(await events.append(next)).toEqual({ last: 4, lost: 3 });
    expect(await seqs(events, ref)).toEqual([4]);
    expect(await seqs(events, ref, { cursor: first.last })).toEqual([4]);
    expect([await events.has(ref), (await events.streams(0, 10)).length]).toEqual([true, 1]);
    // Once it is known, it is no longer lost.
    expect(await events.append(next)).toEqual({ last: 4, lost: 0 });
    expect(await events.append({ ...batchOf(ref, 3, [at(5)]), after: 4 })).toEqual({ last: 5, lost: 0 });
  });

  test("a batch that tells how many are lost is taken when it tells what is so, and once", async () => {
    const [events, ref] = [open(), stream()];
    const first = await events.append(batchOf(ref, 1, [at(1), at(2), at(3)]));
    for (const key of await bed().redis.keys("*")) await bed().redis.unlink(key);
    const next = { ...batchOf(ref, 2, [at(4)]), after: first.last };
    for (const countedLost of [0, 2, 4])
      expect(await events.append({ ...next, countedLost })).toEqual({ last: 3, lost: 3, isMiscounted: true });
    expect([await seqs(events, ref), await events.last(ref)]).toEqual([[], 0]);
    expect(await events.append({ ...next, countedLost: 3 })).toEqual({ last: 4, lost: 3 });
    // Whoever has not heard that it was taken tells again.
    expect(await events.append({ ...next, countedLost: 0 })).toEqual({ last: 4, lost: 0 });
    expect(await seqs(events, ref)).toEqual([4]);
  });
});
