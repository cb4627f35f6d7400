import type { TraceContext } from "../../base/trace-context.js";
import type { Span } from "../traces/span.js";

/** The session whose events are exported, as every record says. */
export interface ExportedSession {
  readonly session: string;
  readonly lease: string;
  readonly project: string;
  /** Absent for sessions on demand. */
  readonly pool?: { readonly id: string; readonly name?: string | undefined } | undefined;
  readonly region: string;
  /** The node that exports; absent where a control does. */
  readonly node?: string | undefined;
}

/** What OTLP calls signals: each has requests of its own. */
export type Signal = "logs" | "traces";

/** An event or a span on its way to a destination. */
export interface Exported {
  /** The JSON of a `TelemetryEvent`, or of a `Span`. */
  readonly text: string;
  /** Has to be found out first; the same for all that is of a lease. */
  readonly of: Promise<ExportedSession>;
  /** The event's number in the stream of its lease; absent where the store never gave it one. */
  readonly seq?: number | undefined;
  /** The span in which an event happened. */
  readonly trace?: TraceContext | undefined;
}

export const spanText = (span: Span): string => JSON.stringify(span);
