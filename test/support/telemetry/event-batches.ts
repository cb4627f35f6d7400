import { newBrowserId, newLeaseId, onDemandPartition } from "../../../src/base/ids.js";
import type { StreamLimits } from "../../../src/store/telemetry/event-store.js";
import type {
  EventBatch,
  EventQuery,
  EventStore,
  StreamRef,
  WrittenEvent,
} from "../../../src/telemetry/ports.js";

export const limits: StreamLimits = { maxBytes: 100_000, maxAgeMs: 3_600_000, keepMs: 3_600_000 };
export const all: EventQuery = { filter: { types: [], categories: [] }, order: "asc", limit: 100 };
export const stream = (): StreamRef => ({ browser: newBrowserId(onDemandPartition), lease: newLeaseId() });

/** An event; `ts` is in microseconds. */
export const at = (
  ts: number,
  type = "api_call",
  category: WrittenEvent["category"] = "control",
): WrittenEvent => ({ type, category, text: JSON.stringify({ ts, type, category, data: {} }) });

/** What one writer stores of a stream's first events. */
export const batchOf = (ref: StreamRef, number: number, events: readonly WrittenEvent[]): EventBatch => ({
  stream: ref,
  writer: ref.lease,
  number,
  after: 0,
  silentMs: 0,
  events,
  isStored: true,
});

/** The numbers of a stream's events. */
export const seqs = async (
  events: Pick<EventStore, "read">,
  ref: StreamRef,
  query: Partial<EventQuery> = {},
): Promise<number[]> => (await events.read(ref, { ...all, ...query })).events.map(({ seq }) => seq);
