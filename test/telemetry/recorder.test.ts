import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { newBrowserId, newLeaseId, newOtlpDestinationId, onDemandPartition } from "../../src/base/ids.js";
import { RedisEventStore } from "../../src/store/telemetry/event-store.js";
import type { SeenEvent } from "../../src/telemetry/event.js";
import type { EventBatch, StreamRef } from "../../src/telemetry/ports.js";
import { captureSettings, type CaptureSettings } from "../../src/telemetry/settings.js";
import { DrivenClock } from "../support/driven-clock.js";
import { until } from "../support/browser/chromium-until.js";
import { startRedis, type TestRedis } from "../support/store/redis.js";
import { openStoreBed, type StoreBed } from "../support/store/store-bed.js";
import { LossCounts, makeRecorder, recorderLimits } from "../support/telemetry/recorder.js";

let server: TestRedis;
let bed: StoreBed;
let events: RedisEventStore;
const openEvents = (): RedisEventStore => {
  const limits = { maxBytes: 2 ** 24, maxAgeMs: 3_600_000, keepMs: 3_600_000 };
  return new RedisEventStore(bed.store, { unnamed: bed.project, limits });
};
beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server.stop());
beforeEach(async () => {
  bed = await openStoreBed(server, { project: "recorded" });
  events = openEvents();
});
afterEach(() => bed.close());

const stream = (): StreamRef => ({ browser: newBrowserId(onDemandPartition), lease: newLeaseId() });
const settings = captureSettings({ browser: { control: { enabled: true } } }) as CaptureSettings;
const seen = (
  data: Record<string, unknown> = {},
  category: SeenEvent["category"] = "control",
): SeenEvent => ({ type: "api_call", category, source: { kind: "kernel_api" }, data });
const all = { filter: { types: [], categories: [] }, order: "asc", limit: 1000 } as const;
const stored = async (ref: StreamRef) =>
  (await events.read(ref, all)).events.map(({ seq, text }) => ({ seq, ...JSON.parse(text) }));

test("what is emitted is stored in its order, within a batch's time, and nothing else is", async () => {
  const clock = new DrivenClock();
  const ref = stream();
  const sink = makeRecorder(events, { clock }).open(ref, settings);
  expect([sink.wants("control"), sink.wants("monitor"), sink.wants("page")]).toEqual([true, true, false]);
  for (let number = 1; number <= 3; number += 1) expect(sink.emit(seen({ number }))).toBe(true);
  expect(sink.emit(seen({}, "page"))).toBe(true);
  expect(await events.last(ref)).toBe(0);
  await clock.advance(100);
  await until("it is stored", async () => ((await events.last(ref)) === 3 ? true : undefined));
  expect(await stored(ref)).toMatchObject([1, 2, 3].map((number) => ({ seq: number, data: { number } })));
  expect((await stored(ref))[0]).toEqual({
    seq: 1,
    ts: 0,
    type: "api_call",
    category: "control",
    source: { kind: "kernel_api" },
    data: { number: 1 },
    truncated: false,
  });
});

test("what waits at the end of a lease is stored then, and what comes after it is not", async () => {
  const ref = stream();
  const recorder = makeRecorder(events);
  const sink = recorder.open(ref, settings);
  for (let number = 1; number <= 2500; number += 1) sink.emit(seen({ number }));
  const closed = sink.close();
  sink.emit(seen({ number: "late" }));
  await closed;
  expect((await events.read(ref, all)).events).toHaveLength(1000);
  expect([await events.last(ref), recorder.heldBytes, sink.lost]).toEqual([2500, 0, 0]);
});

test("what the store let go by age while a lease was silent is not lost; what went before that is", async () => {
  for (const [silentMs, lost] of [
    [3_600_000, 0],
    [3_599_000, 3],
  ] as const) {
    const [clock, ref, meter] = [new DrivenClock(), stream(), new LossCounts()];
    const sink = makeRecorder(events, { clock, meter }).open(ref, settings);
    for (let number = 1; number <= 3; number += 1) sink.emit(seen({ number }));
    await clock.advance(100);
    await until("they are stored and that is known", () => meter.recordedCount === 3);
    // As another daemon's sweep does.
    await openEvents().drop(ref);
    await clock.advance(silentMs);
    sink.emit(seen({ number: "next" }));
    await clock.advance(100);
    await until("it is stored and that is known", () => meter.recordedCount === 4);
    expect([await events.last(ref), await events.has(ref), sink.lostInStore]).toEqual([4, true, lost]);
  }
});

test("a store that stands still holds up nobody: what waits is bounded, the rest is counted, nothing comes twice", async () => {
  const ref = stream();
  const meter = new LossCounts();
  const limits = { ...recorderLimits, queueBytes: 50_000 };
  const recorder = makeRecorder(events, { meter, limits });
  const sink = recorder.open(ref, settings);
  sink.emit(seen({ first: true }));
  await until("it is stored", async () => ((await events.last(ref)) === 1 ? true : undefined));
  server.signal("SIGSTOP");
  try {
    const taken: boolean[] = [];
    for (let number = 0; number < 1000; number += 1) taken.push(sink.emit(seen({ text: "x".repeat(100) })));
    expect(taken[0]).toBe(true);
    expect(taken.at(-1)).toBe(false);
    expect(recorder.heldBytes).toBeLessThanOrEqual(50_000);
    expect(sink.lost).toBe(taken.filter((isTaken) => !isTaken).length);
    expect(meter.lostBy).toEqual({ too_many: sink.lost });
  } finally {
    server.signal("SIGCONT");
  }
  const kept = 1001 - sink.lost;
  await until("what has waited is stored", async () =>
    (await events.last(ref)) === kept ? true : undefined,
  );
  await sink.close();
  expect((await stored(ref)).map(({ seq }) => seq)).toEqual(Array.from({ length: kept }, (_, at) => at + 1));
  expect([recorder.heldBytes, meter.recordedCount]).toEqual([0, kept]);
});

test("what a lease has left while the store is away is lost after its limit, and counted", async () => {
  const clock = new DrivenClock();
  const meter = new LossCounts();
  let asked = 0;
  const away = async (): Promise<never> => {
    asked += 1;
    throw new Error("away");
  };
  const sink = makeRecorder({ append: away }, { clock, meter }).open(stream(), settings);
  sink.emit(seen());
  sink.emit(seen());
  const closed = sink.close();
  await clock.advance(20_000);
  await closed;
  expect(meter.lostBy).toEqual({ store_away: 2 });
  expect([sink.lost, sink.lostInStore, asked > 3]).toEqual([2, 2, true]);
});

test("an event that is too large is cut between characters, and says so", async () => {
  const batches: EventBatch[] = [];
  const limits = { ...recorderLimits, eventBytes: 2000, screenshotBytes: 5000 };
  const append = async (batch: EventBatch) => ({ last: batches.push(batch), lost: 0 });
  const recorder = makeRecorder({ append }, { limits });
  const sink = recorder.open(stream(), { ...settings, categories: new Set(["control", "screenshot"]) });
  sink.emit(seen({ text: "ü€😀".repeat(1000), list: ["b".repeat(3000), 1], kept: "short" }));
  sink.emit(seen({ png: "p".repeat(4000) }, "screenshot"));
  sink.emit(seen(Object.fromEntries(Array.from({ length: 1000 }, (_, at) => [`k${at}`, "v"]))));
  sink.emit(seen({ text: "fits" }));
  await sink.close();
  const texts = batches.flatMap((batch) => batch.events).map(({ text }) => text);
  const told = texts.map((text) => JSON.parse(text));
  expect(texts.map((text) => Buffer.byteLength(text) <= 2000)).toEqual([true, false, true, true]);
  expect(told.map(({ truncated }) => truncated)).toEqual([true, false, true, false]);
  expect(told[0].data.text).toMatch(/^(?:ü€😀)*(?:ü|ü€)?\.\.\.\[truncated\]$/u);
  expect(told[0].data).toMatchObject({
    list: [expect.stringMatching(/^b+\.\.\.\[truncated\]$/), 1],
    kept: "short",
  });
  expect(told[2].data).toEqual({});
});

test("at the end of a lease a store that is away is tried for as long with many batches as with one", async () => {
  const clock = new DrivenClock();
  const meter = new LossCounts();
  let [atOnce, most] = [0, 0];
  const away = async (): Promise<never> => {
    most = Math.max(most, (atOnce += 1));
    await new Promise<void>((resolve) => void clock.after(500, resolve));
    atOnce -= 1;
    throw new Error("away");
  };
  const recorder = makeRecorder({ append: away }, { clock, meter });
  const sink = recorder.open(stream(), settings);
  for (let number = 0; number < 3500; number += 1) sink.emit(seen({ number }));
  // A lease that ends while its daemon does is closed twice.
  const closed = Promise.all([sink.close(), recorder.close()]);
  await clock.advance(11_000);
  await closed;
  expect(meter.lostBy).toEqual({ store_away: 3500 });
  expect([recorder.heldBytes, most]).toEqual([0, 1]);
});

test("what a PATCH switches off and on again while the store is slow stays in its order", async () => {
  const clock = new DrivenClock();
  const texts: string[] = [];
  const slow = async ({ events: batch }: EventBatch) => {
    await new Promise<void>((resolve) => void clock.after(300, resolve));
    return { last: texts.push(...batch.map(({ text }) => text)), lost: 0 };
  };
  const recorder = makeRecorder({ append: slow }, { clock });
  const ref = stream();
  for (let round = 0; round < 20; round += 1) {
    const sink = recorder.open(ref, settings);
    sink.emit(seen({ number: 2 * round }));
    await clock.advance(110);
    sink.emit(seen({ number: 2 * round + 1 }));
    void sink.close();
  }
  const closed = recorder.close();
  await clock.advance(60_000);
  await closed;
  expect(texts.map((text) => JSON.parse(text).data.number)).toEqual(
    Array.from({ length: 40 }, (_, at) => at),
  );
});

test("a Redis that forgets what it has stored gives no number twice, and what it lost is counted", async () => {
  const ref = stream();
  const meter = new LossCounts();
  const sink = makeRecorder(events, { meter }).open(ref, settings);
  for (let number = 1; number <= 3; number += 1) sink.emit(seen({ number }));
  await until("it is stored", async () => ((await events.last(ref)) === 3 ? true : undefined));
  await bed.redis.flushall();
  sink.emit(seen({ number: 4 }));
  await until("it is stored", async () => ((await events.last(ref)) === 4 ? true : undefined));
  await sink.close();
  expect(await stored(ref)).toMatchObject([{ seq: 4, data: { number: 4 } }]);
  expect([meter.lostBy, meter.recordedCount, sink.lostInStore]).toEqual([{ store_lost: 3 }, 4, 3]);
  expect(await events.has(ref)).toBe(true);
});

test("what Redis has lost is counted once, also where the first answer that tells it is lost", async () => {
  const [clock, ref, meter] = [new DrivenClock(), stream(), new LossCounts()];
  let [asked, isCut] = [0, false];
  const append = async (batch: EventBatch) => {
    asked += 1;
    const appended = await events.append(batch);
    if (!isCut) return appended;
    isCut = false;
    throw new Error("the connection was lost");
  };
  const sink = makeRecorder({ append }, { clock, meter }).open(ref, settings);
  for (let number = 1; number <= 3; number += 1) sink.emit(seen({ number }));
  await clock.advance(100);
  await until("they are stored and that is known", () => meter.recordedCount === 3);
  await bed.redis.flushall();
  isCut = true;
  for (const number of [4, 5]) {
    sink.emit(seen({ number }));
    await until("it is stored and that is known", async () => {
      await clock.advance(100);
      return meter.recordedCount === number;
    });
  }
  expect([asked, await events.last(ref)]).toEqual([4, 5]);
  expect([meter.lostBy, sink.lostInStore]).toEqual([{ store_lost: 3 }, 3]);
});

/** What a lease exports, and when that is over. */
function exportsInto(sent: (number | string | undefined)[]) {
  const add = (text: string, { seq }: { readonly seq?: number | undefined } = {}): boolean =>
    sent.push(JSON.parse(text).data.number, seq) > 0;
  return { open: () => ({ add, addSpan: () => true, close: () => void sent.push("over") }) };
}

test("an event is exported with the number under which it is stored, also one whose lease ends before", async () => {
  const ref = stream();
  const sent: (number | string | undefined)[] = [];
  const recorder = makeRecorder(events, { exports: exportsInto(sent) });
  const other = makeRecorder(events).open(ref, settings);
  other.emit(seen());
  await other.close();
  const sink = recorder.open(ref, { ...settings, destination: newOtlpDestinationId() });
  for (const number of [1, 2]) sink.emit(seen({ number }));
  expect(sent).toEqual([]);
  await sink.close();
  expect(sent).toEqual([1, 2, 2, 3, "over"]);
  expect(await stored(ref)).toMatchObject([{}, { seq: 2, data: { number: 1 } }, { seq: 3 }]);
});

test("what the store never takes is exported without a number", async () => {
  const clock = new DrivenClock();
  const sent: (number | string | undefined)[] = [];
  const append = async (): Promise<never> => {
    throw new Error("away");
  };
  const limits = { ...recorderLimits, queueBytes: 500 };
  const recorder = makeRecorder({ append }, { clock, limits, exports: exportsInto(sent) });
  const sink = recorder.open(stream(), { ...settings, destination: newOtlpDestinationId() });
  sink.emit(seen({ number: 1 }));
  sink.emit(seen({ number: 2, text: "x".repeat(500) }));
  expect(sent).toEqual([2, undefined]);
  const closed = sink.close();
  await clock.advance(20_000);
  await closed;
  expect(sent).toEqual([2, undefined, 1, undefined, "over"]);
});

test("what is told again where it is not taken is neither exported nor counted as lost meanwhile", async () => {
  const meter = new LossCounts();
  const sent: (number | string | undefined)[] = [];
  const limits = { ...recorderLimits, queueBytes: 500 };
  const recorder = makeRecorder(events, { limits, meter, exports: exportsInto(sent) });
  const sink = recorder.open(stream(), { ...settings, destination: newOtlpDestinationId() });
  const again = { ...seen({ number: 1, text: "x".repeat(500) }), isToldAgain: true } as const;
  expect([sink.emit(again), sink.emit(again), meter.lostBy]).toEqual([false, false, {}]);
  expect([await sink.close(), sent]).toEqual([undefined, ["over"]]);
});
