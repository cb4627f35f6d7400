import { expect, test } from "vitest";
import { RedisEventStore } from "../../../src/store/telemetry/event-store.js";
import type { EventBatch, StreamRef } from "../../../src/telemetry/ports.js";
import { onBoth } from "../../support/store/on-both.js";
import { at, batchOf, limits, seqs, stream } from "../../support/telemetry/event-batches.js";

/** One event, of an instant in ms by the clock of its node. */
const batchAt = (ref: StreamRef, number: number, time: number): EventBatch =>
  batchOf(ref, number, [at(time * 1000)]);

onBoth("events by clocks that differ", ({ bed }) => {
  const open = (): RedisEventStore => new RedisEventStore(bed().store, { unnamed: bed().project, limits });

  test("what is asked for since an instant is found wherever the clocks of Redis and of nodes stand", async () => {
    const [events, ref] = [open(), stream()];
    // Redis is an hour ahead of the first node, and an hour behind the second, whose clock is then put back.
    const [now, hour] = [await bed().store.now(), 3_600_000];
    const times = [now - hour, now - hour, now + hour, now + hour, now, now - hour, now];
    for (const [index, time] of times.entries()) await events.append(batchAt(ref, index + 1, time));
    expect(await seqs(events, ref, { since: now + hour })).toEqual([3, 4]);
    expect(await seqs(events, ref, { since: now })).toEqual([3, 4, 5, 7]);
    expect(await seqs(events, ref, { since: now - hour })).toEqual([1, 2, 3, 4, 5, 6, 7]);
    expect(await seqs(events, ref, { since: now + hour + 1 })).toEqual([]);
  });

  const [minute, hour] = [60_000, 3_600_000];
  test.each([-hour, 0, hour])(
    "what is asked for since so long ago is found wherever the caller's clock stands, with a node %d ms ahead",
    async (nodeAhead) => {
      const now = await bed().store.now();
      const [events, ref] = [open(), stream()];
      for (const [index, agoMs] of [2 * hour, 3 * minute, 0].entries())
        await events.append(batchAt(ref, index + 1, now + nodeAhead - agoMs));
      for (const callerAhead of [-hour, 0, hour]) {
        const query = { since: now + callerAhead - 5 * minute, sinceAgoMs: 5 * minute };
        const found = await seqs(events, ref, query);
        // Where the caller's clock is two hours behind the node's, the oldest is shown too.
        const expected = nodeAhead - callerAhead > hour ? [1, 2, 3] : [2, 3];
        expect(found, `a caller ${callerAhead} ms ahead`).toEqual(expected);
      }
    },
  );

  test("nothing is so long ago in a stream without events", async () => {
    const ref = stream();
    const now = await bed().store.now();
    expect(await seqs(open(), ref, { since: now, sinceAgoMs: 1000 })).toEqual([]);
  });
});
