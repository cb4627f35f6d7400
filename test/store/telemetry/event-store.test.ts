import { expect, test } from "vitest";
import {
  newBrowserId,
  newLeaseId,
  newProjectId,
  onDemandIn,
  onDemandPartition,
} from "../../../src/base/ids.js";
import { RedisEventStore, type StreamLimits } from "../../../src/store/telemetry/event-store.js";
import type { EventQuery, StreamRef, WrittenEvent } from "../../../src/telemetry/ports.js";
import { readHistory } from "../../../src/telemetry/read-events.js";
import { eraseEvents, makeSweepEvents } from "../../../src/telemetry/sweep-events.js";
import { DrivenClock } from "../../support/driven-clock.js";
import { onBoth } from "../../support/store/on-both.js";
import { all, at, batchOf, limits, seqs, stream } from "../../support/telemetry/event-batches.js";

const bound = (events: RedisEventStore) => ({
  streams: events.streams.bind(events),
  clear: events.clear.bind(events),
  drop: events.drop.bind(events),
});

const sweep = (events: Parameters<typeof makeSweepEvents>[0], maxBytes: number): Promise<void> =>
  makeSweepEvents(events, { maxBytes, clock: new DrivenClock() })();

onBoth("events of leases", ({ bed }) => {
  const open = (over: Partial<StreamLimits> = {}): RedisEventStore =>
    new RedisEventStore(bed().store, { unnamed: bed().project, limits: { ...limits, ...over } });

  test("are numbered from 1, and a batch that comes twice is stored once", async () => {
    const [events, ref] = [open(), stream()];
    await events.append(batchOf(ref, 1, [at(1), at(2)]));
    await events.append(batchOf(ref, 2, [at(3)]));
    await events.append(batchOf(ref, 2, [at(3)]));
    await events.append(batchOf(ref, 1, [at(1), at(2)]));
    const page = await events.read(ref, all);
    expect(page).toMatchObject({ next: 3, hasMore: false });
    expect(page.events.map(({ seq, text }) => [seq, JSON.parse(text).ts])).toEqual([
      [1, 1],
      [2, 2],
      [3, 3],
    ]);
    expect(await events.last(ref)).toBe(3);
    expect(await events.last(stream())).toBe(0);
    expect(await events.read(stream(), all)).toEqual({ events: [], next: 0, hasMore: false });
    expect(await events.read(stream(), { ...all, since: 1 })).toEqual({
      events: [],
      next: 0,
      hasMore: false,
    });
  });

  test("are read in pages, in either order, from any place", async () => {
    const [events, ref] = [open(), stream()];
    await events.append(
      batchOf(
        ref,
        1,
        Array.from({ length: 50 }, (_, index) => at(index)),
      ),
    );
    const read: number[] = [];
    for (let cursor = 0, more = true; more;) {
      const page = await events.read(ref, { ...all, cursor, limit: 7 });
      read.push(...page.events.map(({ seq }) => seq));
      [cursor, more] = [page.next, page.hasMore];
    }
    expect(read).toEqual(Array.from({ length: 50 }, (_, index) => index + 1));
    expect(await seqs(events, ref, { order: "desc", limit: 3 })).toEqual([50, 49, 48]);
    expect(await seqs(events, ref, { order: "desc", limit: 3, cursor: 3 })).toEqual([2, 1]);
    expect((await events.read(ref, { ...all, cursor: 43, limit: 7 })).hasMore).toBe(false);
  });

  test("are chosen by type, category and their own time", async () => {
    const [events, ref] = [open(), stream()];
    const now = await bed().store.now();
    const micros = (ms: number): number => ms * 1000;
    await events.append(
      batchOf(ref, 1, [
        at(micros(now - 7000), "page_load", "page"),
        at(micros(now - 5000)),
        at(micros(now - 3000), "page_lcp", "page"),
        at(micros(now), "page_load", "page"),
      ]),
    );
    const of = (filter: Partial<EventQuery["filter"]>) => ({
      filter: { types: [], categories: [], ...filter },
    });
    expect(await seqs(events, ref, of({ types: ["page_load"] }))).toEqual([1, 4]);
    expect(await seqs(events, ref, of({ types: ["page_load", "page_lcp"] }))).toEqual([1, 3, 4]);
    expect(await seqs(events, ref, of({ categories: ["control"] }))).toEqual([2]);
    expect(await seqs(events, ref, of({ types: ["page_load"], categories: ["control"] }))).toEqual([]);
    expect(await seqs(events, ref, { since: now - 5000 })).toEqual([2, 3, 4]);
    expect(await seqs(events, ref, { until: now - 3000 })).toEqual([1, 2]);
    expect(await seqs(events, ref, { order: "desc", until: now - 3000 })).toEqual([2, 1]);
    expect(await seqs(events, ref, { since: now + 60_000 })).toEqual([]);
  });

  test("one question looks at so many bytes, whether they are meant or not; a page asks until it has what there is", async () => {
    const [events, ref] = [open({ maxBytes: 4 * 2 ** 20 }), stream()];
    const long = (index: number): WrittenEvent => ({
      type: index === 5 || index === 250 ? "page_crashed" : "console_log",
      category: "page",
      text: JSON.stringify({ ts: index, data: "x".repeat(8000) }),
    });
    for (let batch = 0; batch < 3; batch += 1)
      await events.append(
        batchOf(
          ref,
          batch + 1,
          Array.from({ length: 100 }, (_, index) => long(batch * 100 + index)),
        ),
      );
    const filter = { types: ["page_crashed"], categories: [] };
    for (const order of ["asc", "desc"] as const) {
      const looked = await events.read(ref, { ...all, filter, order });
      expect(looked.hasMore).toBe(true);
      expect(order === "asc" ? looked.next : 301 - looked.next).toBeLessThan(40);
      const page = await readHistory(events, ref, { ...all, filter, order, limit: 2 });
      expect(page.events.map(({ seq }) => seq)).toEqual(order === "asc" ? [6, 251] : [251, 6]);
    }
    expect(await readHistory(events, ref, { ...all, filter })).toMatchObject({ next: 300, hasMore: false });
  });

  test("a place beyond the last event, however far, is an empty page", async () => {
    const [events, ref] = [open(), stream()];
    await events.append(batchOf(ref, 1, [at(1), at(2)]));
    for (const cursor of [3, 1e14, 999_999_999_999_999]) {
      expect(await events.read(ref, { ...all, cursor })).toEqual({
        events: [],
        next: cursor,
        hasMore: false,
      });
      expect(await seqs(events, ref, { order: "desc", cursor })).toEqual([2, 1]);
    }
  });

  test("the oldest go where there are too many bytes, and the numbers go on", async () => {
    const [events, ref] = [open({ maxBytes: 5000 }), stream()];
    const large = { ...at(1), text: JSON.stringify({ ts: 1, data: "x".repeat(1000) }) };
    for (let number = 1; number <= 20; number += 1) await events.append(batchOf(ref, number, [large, at(2)]));
    const left = await seqs(events, ref);
    expect(left.at(-1)).toBe(40);
    expect(left).toEqual(left.map((_, index) => (left[0] ?? 0) + index));
    expect(left.length).toBeGreaterThan(5);
    const [{ bytes = Infinity } = {}] = await events.streams(0, 10);
    expect(bytes).toBeLessThanOrEqual(5000);
    await events.append(
      batchOf(ref, 21, [{ ...large, text: JSON.stringify({ ts: 1, data: "x".repeat(6000) }) }]),
    );
    expect([await seqs(events, ref), await events.last(ref)]).toEqual([[], 41]);
    await events.append(batchOf(ref, 22, [at(3)]));
    expect(await seqs(events, ref)).toEqual([42]);
  });

  test("a batch that comes again is told its own last number, whoever has put events behind it since", async () => {
    const [events, ref] = [open(), stream()];
    await events.append(batchOf(ref, 1, [at(1), at(2)]));
    await events.append({ ...batchOf(ref, 1, [at(3)]), writer: "another" });
    expect(await events.append(batchOf(ref, 1, [at(1), at(2)]))).toEqual({ last: 2, lost: 0 });
  });

  test("what is kept is kept for a time, and for a moment where nothing is to be stored", async () => {
    const [kept, passing] = [stream(), stream()];
    await open().append(batchOf(kept, 1, [at(1)]));
    await open().append({ ...batchOf(passing, 1, [at(1)]), isStored: false });
    const ttlOf = async (part: string, { lease }: StreamRef): Promise<number> => {
      const [key = ""] = await bed().redis.keys(`*:${part}:${lease}`);
      return await bed().redis.pttl(key);
    };
    expect(await ttlOf("streamEvents", kept)).toBeGreaterThan(60_000);
    expect(await ttlOf("streamEvents", passing)).toBeLessThanOrEqual(60_000);
    // Who reads them live goes on after a silence: the numbers do, too.
    for (const ref of [kept, passing]) expect(await ttlOf("streamState", ref)).toBeGreaterThan(60_000);
  });

  test("after a silence in which all events have gone, numbers go on, and bytes begin anew", async () => {
    const [events, ref] = [open({ maxBytes: 2000 }), stream()];
    const large = { ...at(1), text: JSON.stringify({ ts: 1, data: "x".repeat(1500) }) };
    await events.append({ ...batchOf(ref, 1, [large]), isStored: false });
    // As when its minute is over.
    const [key = ""] = await bed().redis.keys(`*:streamEvents:${ref.lease}`);
    await bed().redis.unlink(key);
    expect(await events.streams(0, 10)).toMatchObject([{ ...ref, bytes: 0 }]);
    await events.append({ ...batchOf(ref, 2, [large]), isStored: false });
    expect([await seqs(events, ref), await events.last(ref)]).toEqual([[2], 2]);
  });

  test("where all have too many bytes those that began first lose theirs, and their numbers go on", async () => {
    const events = open();
    const refs = [stream(), stream(), stream()];
    for (const ref of refs) {
      await events.append(batchOf(ref, 1, [at(1), at(2)]));
      // Each begins in a millisecond of its own.
      const before = await bed().store.now();
      while ((await bed().store.now()) === before);
    }
    const [first, second, third] = refs as [StreamRef, StreamRef, StreamRef];
    const total = (await events.streams(0, 10)).reduce((sum, { bytes = 0 }) => sum + bytes, 0);
    await sweep(events, total);
    expect(await seqs(events, first)).toEqual([1, 2]);
    await sweep(events, total / 2);
    expect([await seqs(events, first), await seqs(events, second), await seqs(events, third)]).toEqual([
      [],
      [],
      [1, 2],
    ]);
    await events.append({ ...batchOf(first, 2, [at(3)]), writer: "another" });
    expect(await seqs(events, first)).toEqual([3]);
  });

  test("streams of which nothing is kept any more are forgotten, and a project's go with it", async () => {
    const events = open();
    const [over, kept] = [stream(), stream()];
    const other = newProjectId();
    const others = { browser: newBrowserId(onDemandIn(other)), lease: newLeaseId() };
    for (const ref of [over, kept, others])
      await events.append({ ...batchOf(ref, 1, [at(1)]), writer: ref.lease });
    const [key = ""] = await bed().redis.keys(`*streamState:${over.lease}`);
    await bed().redis.unlink(key);
    const later = { ...bound(events), now: async () => (await events.now()) + 2 * 3_600_000 };
    await sweep(events, 2 ** 30);
    expect(await events.has(over)).toBe(true);
    await sweep(later, 2 ** 30);
    expect([await events.has(over), await events.has(kept)]).toEqual([false, true]);
    await eraseEvents(events, other);
    expect([await events.has(kept), await events.has(others), await seqs(events, others)]).toEqual([
      true,
      false,
      [],
    ]);
  });

  test("streams are listed as they began, the newest of a browser is found, and a dropped one leaves nothing", async () => {
    const events = open();
    const browser = newBrowserId(onDemandPartition);
    const [first, second] = [newLeaseId(), newLeaseId()].map((lease) => ({ browser, lease })) as [
      StreamRef,
      StreamRef,
    ];
    for (const ref of [first, second]) await events.append(batchOf(ref, 1, [at(1)]));
    expect((await events.streams(0, 10)).map(({ lease }) => lease).toSorted()).toEqual(
      [first.lease, second.lease].toSorted(),
    );
    expect(await events.findLatest(browser)).toBe(second.lease);
    await events.drop(first);
    expect(await events.findLatest(browser)).toBe(second.lease);
    await events.drop(second);
    expect(await events.findLatest(browser)).toBeUndefined();
    expect(await events.streams(0, 10)).toEqual([]);
    expect((await bed().redis.keys("*")).filter((key) => !key.includes("streamWriter"))).toEqual([]);
  });
});
