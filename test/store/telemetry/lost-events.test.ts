import { expect, test } from "vitest";
import { RedisEventStore } from "../../../src/store/telemetry/event-store.js";
import { until } from "../../support/browser/chromium-until.js";
import { onBoth } from "../../support/store/on-both.js";
import { at, batchOf, limits, seqs, stream } from "../../support/telemetry/event-batches.js";

onBoth("events that Redis has lost", ({ bed }) => {
  const open = (keepMs = limits.keepMs): RedisEventStore =>
    new RedisEventStore(bed().store, { unnamed: bed().project, limits: { ...limits, keepMs } });

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
    // A writer that tells it once more has not heard the answer; whoever goes on has.
    expect(await events.append(next)).toEqual({ last: 4, lost: 3 });
    expect(await events.append({ ...batchOf(ref, 3, [at(5)]), after: 4 })).toEqual({ last: 5, lost: 0 });
  });

  test("what a lease was silent for too long to keep is not lost, and numbers go on", async () => {
    const [events, ref] = [open(1000), stream()];
    const first = await events.append(batchOf(ref, 1, [at(1), at(2), at(3)]));
    await until("they are gone", async () => (await events.last(ref)) === 0);
    // A sweep that finds nothing of it any more takes it from the list.
    await open().drop(ref);
    const next = { ...batchOf(ref, 2, [at(4)]), after: first.last, silentMs: 1000 };
    expect(await events.append({ ...next, countedLost: 0 })).toEqual({ last: 4, lost: 0 });
    expect([await seqs(events, ref), await events.has(ref)]).toEqual([[4], true]);
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
    expect(await events.append({ ...next, countedLost: 0 })).toEqual({ last: 4, lost: 3 });
    expect(await seqs(events, ref)).toEqual([4]);
  });
});
