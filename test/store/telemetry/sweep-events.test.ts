import { expect, test } from "vitest";
import { newBrowserId, newLeaseId, onDemandPartition } from "../../../src/base/ids.js";
import { RedisEventStore } from "../../../src/store/telemetry/event-store.js";
import type { StreamRef } from "../../../src/telemetry/ports.js";
import { makeSweepEvents } from "../../../src/telemetry/sweep-events.js";
import { DrivenClock } from "../../support/driven-clock.js";
import { onBoth } from "../../support/store/on-both.js";

const limits = { maxBytes: 100_000, maxAgeMs: 3_600_000, keepMs: 3_600_000 };
const stream = (): StreamRef => ({ browser: newBrowserId(onDemandPartition), lease: newLeaseId() });
const batchOf = (ref: StreamRef) => ({
  stream: ref,
  writer: ref.lease,
  number: 1,
  after: 0,
  silentMs: 0,
  events: [{ type: "api_call", category: "control" as const, text: JSON.stringify({ ts: 1 }) }],
  isStored: true,
});

const bound = (events: RedisEventStore) => ({
  streams: events.streams.bind(events),
  clear: events.clear.bind(events),
  drop: events.drop.bind(events),
  now: events.now.bind(events),
});
const sweep = (events: Parameters<typeof makeSweepEvents>[0], maxBytes: number): Promise<void> =>
  makeSweepEvents(events, { maxBytes, clock: new DrivenClock() })();

onBoth("the sweep of events", ({ bed }) => {
  const open = (): RedisEventStore => new RedisEventStore(bed().store, { unnamed: bed().project, limits });

  test("of more than a page of streams, those that are over go, and as many of the oldest as are too many", async () => {
    const events = open();
    const refs = Array.from({ length: 1200 }, stream);
    await Promise.all(refs.map((ref) => events.append(batchOf(ref))));
    const listed = await Promise.all([0, 500, 1000].map((from) => events.streams(from, 500)));
    const inOrder = listed.flat();
    const each = inOrder[0]?.bytes ?? 0;
    const over = inOrder.filter((_, place) => place % 3 === 0);
    for (const { lease } of over)
      for (const key of await bed().redis.keys(`*:streamState:${lease}`)) await bed().redis.unlink(key);
    let cleared = 0;
    const dying = {
      ...bound(events),
      now: async () => (await events.now()) + 2 * 3_600_000,
      clear: async (ref: StreamRef) => {
        if ((cleared += 1) > 300) throw new Error("the sweep was killed");
        await events.clear(ref);
      },
    };
    await expect(sweep(dying, 200 * each)).rejects.toThrow("killed");
    cleared = -1200;
    await sweep(dying, 200 * each);
    const left = (await Promise.all([0, 500].map((from) => events.streams(from, 500)))).flat();
    expect(left).toHaveLength(800);
    expect(left.filter(({ bytes }) => bytes === 0)).toHaveLength(600);
    expect(left.slice(600).every(({ bytes }) => bytes === each)).toBe(true);
  });

  test("a sweep that took long rests for long", async () => {
    const clock = new DrivenClock();
    let sweeps = 0;
    const slow = {
      ...bound(open()),
      now: async () => {
        sweeps += 1;
        clock.stand(3000);
        return 0;
      },
    };
    const sweepOften = makeSweepEvents(slow, { maxBytes: 1, clock });
    for (let minute = 0; minute < 10; minute += 1) {
      await sweepOften();
      clock.stand(30_000);
    }
    expect(sweeps).toBe(5);
  });
});
