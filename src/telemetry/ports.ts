import type { Millis } from "../base/clock.js";
import type { BrowserId, LeaseId, OtlpDestinationId } from "../base/ids.js";
import type { TraceContext } from "../base/trace-context.js";
import type { EventCategory } from "./event.js";
import type { Span } from "./traces/span.js";

/** The events of one lease. */
export interface StreamRef {
  readonly browser: BrowserId;
  readonly lease: LeaseId;
}

/** An event that is to be stored; `text` is the JSON of a `TelemetryEvent`, which begins with `ts`. */
export interface WrittenEvent {
  readonly type: string;
  readonly category: EventCategory;
  readonly text: string;
}

/** A batch of one writer. One that comes twice under its number is stored once. */
export interface EventBatch {
  readonly stream: StreamRef;
  readonly writer: string;
  readonly number: number;
  /**
   * The last `seq` that the writer was told: those that come have greater ones, whatever the store has lost.
   */
  readonly after: number;
  /** How long ago the writer was told it: what the store has let go since then by age is not lost. */
  readonly silentMs: Millis;
  readonly events: readonly WrittenEvent[];
  readonly isStored: boolean;
  /** How many that were stored and are lost its events tell of; absent where none of them does. */
  readonly countedLost?: number;
}

/** What came of a batch. */
export interface AppendResult {
  /** The `seq` of the stream's newest event. */
  readonly last: number;
  /** So many events had been stored before, and the store has lost them. */
  readonly lost: number;
  /** True where the batch tells of another number than `lost`: nothing of it was stored. */
  readonly isMiscounted?: boolean;
}

/** An event as it was stored; `seq` counts those of its stream from 1. */
export interface StoredEvent {
  readonly seq: number;
  /** The JSON of a `TelemetryEvent`. */
  readonly text: string;
}

/** Where an event stands in its stream, and in a trace. */
interface ExportedPlace {
  readonly seq?: number | undefined;
  readonly trace?: TraceContext | undefined;
}

/** The way of one lease's events to a destination. Never throws and never waits. */
export interface ExportStream {
  /**
   * `text` is the JSON of a `TelemetryEvent`, which has the `seq` and has happened within the span that are
   * given. False where it is lost, because too much waits already.
   */
  add(text: string, at?: ExportedPlace): boolean;
  /** The same of a span. */
  addSpan(span: Span): boolean;
  /** What was added before is still sent. */
  close(): void;
}

/** Sends leases' events on to collectors of their own. */
export interface Exports {
  open(stream: StreamRef, destination: OtlpDestinationId): ExportStream;
}

/** Which events of a stream are meant; lists that are empty mean all. */
export interface EventFilter {
  readonly types: readonly string[];
  readonly categories: readonly string[];
}

export interface EventQuery {
  readonly filter: EventFilter;
  readonly order: "asc" | "desc";
  /** Strictly after it in the order that is asked for; absent: from the beginning of that. */
  readonly cursor?: number;
  /** The first instant that is meant. */
  readonly since?: Millis;
  /** It was told as so long ago, which is meant by the clock of whoever saw the events too. */
  readonly sinceAgoMs?: Millis;
  /** The first instant that is no longer meant. */
  readonly until?: Millis;
  readonly limit: number;
}

export interface EventPage {
  readonly events: readonly StoredEvent[];
  /** Where the next page begins, as a cursor; what was looked at and did not match is behind it. */
  readonly next: number;
  readonly hasMore: boolean;
}

/** Events of leases, each stream under bounds of bytes and age. */
export interface EventStore {
  append(batch: EventBatch): Promise<AppendResult>;
  read(stream: StreamRef, query: EventQuery): Promise<EventPage>;
  /** The `seq` of the newest event; 0 where there is none. */
  last(stream: StreamRef): Promise<number>;
  /** Whether there are events of it. */
  has(stream: StreamRef): Promise<boolean>;
  /** The newest lease of a browser that has stored events here. */
  findLatest(browser: BrowserId): Promise<LeaseId | undefined>;
}

/**
 * Why events are lost: too many came at once, the store was away until their lease was over, or it has lost
 * what it had stored.
 */
export type EventLoss = "too_many" | "store_away" | "store_lost";
export interface EventMeter {
  recorded(count: number): void;
  lost(why: EventLoss, count: number): void;
}
