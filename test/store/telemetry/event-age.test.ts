import { expect, test } from "vitest";
import { RedisEventStore, type StreamLimits } from "../../../src/store/telemetry/event-store.js";
import type { StreamRef } from "../../../src/telemetry/ports.js";
import { age } from "../../support/store/age.js";
import { onBoth } from "../../support/store/on-both.js";
import { all, at, batchOf, limits, seqs, stream } from "../../support/telemetry/event-batches.js";

const [second, minute, hour] = [1000, 60_000, 3_600_000];

onBoth("events that are too old", ({ bed }) => {
  const open = (over: Partial<StreamLimits> = {}): RedisEventStore =>
    new RedisEventStore(bed().store, {
      unnamed: bed().project,
      limits: { ...limits, maxAgeMs: hour, keepMs: 10 * hour, ...over },
    });
  const pass = (ms: number): Promise<void> => age(bed().redis, "*:stream*", ms);
  const bytesOf = async (events: RedisEventStore, ref: StreamRef): Promise<number | undefined> =>
    (await events.streams(0, 10)).find(({ lease }) => lease === ref.lease)?.bytes;

  test("are shown to nobody, in neither order, also where none comes after them", async () => {
    const [events, ref] = [open(), stream()];
    await events.append(batchOf(ref, 1, [at(1), at(2)]));
    await pass(40 * minute);
    await events.append(batchOf(ref, 2, [at(3)]));
    expect(await seqs(events, ref)).toEqual([1, 2, 3]);
    await pass(30 * minute);
    for (const order of ["asc", "desc"] as const)
      for (const limit of [1, 100]) {
        const page = await events.read(ref, { ...all, order, limit });
        expect(
          page.events.map(({ seq }) => seq),
          `${limit} of them, ${order}`,
        ).toEqual([3]);
        expect(page.hasMore).toBe(false);
      }
    expect(await seqs(events, ref, { cursor: 1 })).toEqual([3]);
    expect(await seqs(events, ref, { order: "desc", cursor: 3 })).toEqual([]);
    await pass(31 * minute);
    expect([await seqs(events, ref), await events.last(ref)]).toEqual([[], 3]);
  });

  test("are those by the age that is set now, and go from Redis with the next batch", async () => {
    const [events, ref] = [open(), stream()];
    await events.append(batchOf(ref, 1, [at(1)]));
    const bytes = await bytesOf(events, ref);
    await pass(40 * minute);
    const shorter = open({ maxAgeMs: 20 * minute });
    expect([await seqs(shorter, ref), await seqs(events, ref)]).toEqual([[], [1]]);
    await shorter.append(batchOf(ref, 2, [at(2)]));
    expect([await seqs(events, ref), await bytesOf(events, ref)]).toEqual([[2], bytes]);
  });

  test("are those of more than a minute where nothing is to be stored", async () => {
    const [events, ref] = [open(), stream()];
    await events.append({ ...batchOf(ref, 1, [at(1)]), isStored: false });
    await pass(40 * second);
    await events.append({ ...batchOf(ref, 2, [at(2)]), isStored: false });
    expect(await seqs(events, ref)).toEqual([1, 2]);
    await pass(30 * second);
    expect(await seqs(events, ref)).toEqual([2]);
  });

  test("leave Redis when the last of them is, and count no bytes; the numbers go on", async () => {
    const [events, ref] = [open(), stream()];
    await events.append(batchOf(ref, 1, [at(1)]));
    await pass(hour);
    expect(await bed().redis.keys(`*:streamEvents:${ref.lease}`)).toEqual([]);
    expect(await bytesOf(events, ref)).toBe(0);
    expect(await events.append(batchOf(ref, 2, [at(2)]))).toEqual({ last: 2, lost: 0 });
    expect(await seqs(events, ref)).toEqual([2]);
  });

  test("are not lost with a Redis that has lost all; those of a writer that was silent for less are", async () => {
    for (const [silentMs, lost] of [
      [hour, 0],
      [hour - second, 3],
    ] as const) {
      const [events, ref] = [open(), stream()];
      await events.append(batchOf(ref, 1, [at(1), at(2), at(3)]));
      for (const key of await bed().redis.keys("*")) await bed().redis.unlink(key);
      const next = { ...batchOf(ref, 2, [at(4)]), after: 3, silentMs };
      expect(await events.append(next)).toEqual({ last: 4, lost });
    }
  });
});
