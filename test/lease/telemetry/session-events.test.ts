import { getEventListeners } from "node:events";
import { afterEach, beforeEach, expect, test } from "vitest";
import { systemClock } from "../../../src/base/clock.js";
import { makeEventOperations } from "../../../src/lease/telemetry/session-events.js";
import { RedisEventStore } from "../../../src/store/telemetry/event-store.js";
import { ReaderSeats } from "../../../src/telemetry/reader-seats.js";
import { StreamReads } from "../../../src/telemetry/stream-reads.js";
import { callerOf, type ControlBed, openControlBed } from "../../support/daemon/control-bed.js";
import { filledPool, lendFrom } from "../../support/daemon/control-pools.js";

let control: ControlBed;
beforeEach(async () => {
  control = await openControlBed("session-events");
});
afterEach(() => control.close());

const ask = { start: "now", filter: { types: [], categories: [] } } as const;
const goneCaller = (gone: AbortSignal) => callerOf({ gone });

function open(stopping = new AbortController().signal) {
  const { bed } = control;
  const limits = { maxBytes: 2 ** 20, maxAgeMs: 60_000, keepMs: 60_000 };
  const events = new RedisEventStore(bed.store, { unnamed: bed.project, limits });
  return makeEventOperations({
    poolStore: bed.poolStore,
    projects: bed.projects,
    events,
    reads: new StreamReads(events, systemClock),
    streams: new ReaderSeats({ ofBrowser: 2, ofAll: 2 }),
    pages: new ReaderSeats({ ofBrowser: 2, ofAll: 2 }),
    clock: systemClock,
    stopping,
  });
}

test("a reader gives its seat back, however it goes: before the first event, in the middle, or at the end", async () => {
  const { id } = await lendFrom(control, await filledPool(control, { size: 1, name: "herd" }));
  const operations = open();
  const opened = async (gone: AbortSignal) => {
    const stream = await operations.stream(id, ask, goneCaller(gone));
    if (stream.kind === "refused") throw new Error(`refused: ${stream.code}`);
    return stream.value;
  };
  for (let round = 0; round < 5; round += 1) {
    // Hung up while the session was looked for: nobody ever reads it, and it is thrown away unread.
    await (await opened(AbortSignal.abort())).return();
    const leaving = new AbortController();
    await opened(leaving.signal);
    leaving.abort();
    const cut = await opened(new AbortController().signal);
    await cut.next();
    await cut.return();
  }
  const [one, two] = [await opened(new AbortController().signal), await opened(new AbortController().signal)];
  await expect(opened(new AbortController().signal)).rejects.toThrow("too_many_requests");
  for (const stream of [one, two]) {
    await stream.next();
    await stream.return();
  }
});

test("a stream that has ended leaves nothing at the signals that live on", async () => {
  const { id } = await lendFrom(control, await filledPool(control, { size: 1, name: "herd" }));
  const [stopping, gone] = [new AbortController(), new AbortController()];
  const operations = open(stopping.signal);
  for (let round = 0; round < 3; round += 1) {
    const stream = await operations.stream(id, ask, goneCaller(gone.signal));
    if (stream.kind === "refused") throw new Error(`refused: ${stream.code}`);
    await stream.value.next();
    await stream.value.return();
  }
  for (const { signal } of [stopping, gone]) expect(getEventListeners(signal, "abort")).toEqual([]);
  const last = await operations.stream(id, ask, goneCaller(gone.signal));
  if (last.kind === "refused") throw new Error(`refused: ${last.code}`);
  await last.value.next();
  stopping.abort();
  expect(await last.value.next()).toMatchObject({ done: true });
});
