import type { Millis } from "../base/clock.js";
import type { TraceContext } from "../base/trace-context.js";
import type { telemetryCategories } from "../spec/bodies.js";
import type { Span } from "./traces/span.js";

/** What a configuration can switch on; `monitor` tells of the telemetry itself and is always on. */
export type EventCategory = (typeof telemetryCategories)[number] | "monitor";

/** Where an event was seen. */
export interface EventSource {
  readonly kind: "cdp" | "kernel_api" | "extension" | "local_process";
  /** The CDP event it was made of. */
  readonly event?: string;
  readonly metadata?: Readonly<Record<string, string>>;
}

/** One event as it is stored, streamed and exported (docs/telemetry.md#events). */
export interface TelemetryEvent {
  /** Unix microseconds. */
  readonly ts: number;
  readonly type: string;
  readonly category: EventCategory;
  readonly source: EventSource;
  readonly data: Readonly<Record<string, unknown>>;
  /** True where `data` was cut for size. */
  readonly truncated: boolean;
}

/** What somebody has seen; the sink sets the time where none is given. */
export type SeenEvent = Omit<TelemetryEvent, "ts" | "truncated"> & {
  readonly ts?: number;
  readonly truncated?: boolean;
  readonly navigation?: NavigationFacts | undefined;
  /** It counts events that are lost, which would be lost uncounted with it. */
  readonly countsLost?: true;
  /** Whoever has seen it tells it again where it is not taken: it is not lost then. */
  readonly isToldAgain?: true;
  /** Makes its data anew when it is stored; of the arguments it counts what the sink says then. */
  readonly recount?: ((lostInStore: number) => TelemetryEvent["data"]) | undefined;
};

/** What is known of a navigation beside its event, for its span. */
export interface NavigationFacts {
  /** When its document was asked for, by the monotonic clock. */
  readonly startedAt?: Millis | undefined;
  /** An error page of Chromium's is shown in the document's place. */
  readonly hasFailed: boolean;
}

/** Takes what happens in one browser. Never throws and never waits. */
export interface EventSink {
  /** False: nothing need be made of what happens in this category. */
  wants(category: EventCategory): boolean;
  /** False where the event is lost, because too much waits already. */
  emit(event: SeenEvent): boolean;
}

/** What a lease's events go into; it also counts those that did not get there. */
export interface LeaseSink extends EventSink {
  /** Events of this lease that are lost, so far. */
  readonly lost: number;
  /** Events of its lease that were taken and never got into the store, or have gone from there, so far. */
  readonly lostInStore: number;
  /** What its events and spans are part of; undefined: they are in no trace. */
  trace: TraceContext | undefined;
  /** Exports a span, where anything is exported. Never throws and never waits. */
  span(span: Span): void;
}
