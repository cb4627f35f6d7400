import type { SpanContext } from "@opentelemetry/api";
import type { ProtobufTraceSerializer } from "@opentelemetry/otlp-transformer";
import type { Millis } from "../../base/clock.js";
import type { TraceContext } from "../../base/trace-context.js";
import type { Span } from "../traces/span.js";
import type { Exported } from "./exported.js";
import { openTelemetry } from "./opentelemetry.js";
import { resourceFor } from "./resources.js";

/** The maintained serializer says what a span is. */
type SpanRecord = Parameters<(typeof ProtobufTraceSerializer)["serializeRequest"]>[0][number];
type SpanTime = SpanRecord["startTime"];

// One object for all spans: the serializer groups them by it.
const scope = { name: "remuda.traces" };

/** Only what is sampled is exported. */
export function spanContextOf({ traceId, spanId, state }: TraceContext): SpanContext {
  const { TraceFlags, createTraceState } = openTelemetry().api;
  return {
    traceId,
    spanId,
    traceFlags: TraceFlags.SAMPLED,
    ...(state !== undefined && { traceState: createTraceState(state) }),
  };
}

/** One span, given as its JSON, as OTLP has it. */
export async function spanRecordOf({ text, of }: Exported): Promise<SpanRecord> {
  const { name, context, parent, isServer = false, link, ...rest } = JSON.parse(text) as Span;
  const { startedAt, endedAt, attributes = {}, failure } = rest;
  const { SpanKind, SpanStatusCode } = openTelemetry().api;
  return {
    name,
    kind: isServer ? SpanKind.SERVER : SpanKind.INTERNAL,
    spanContext: () => spanContextOf(context),
    ...(parent && { parentSpanContext: { ...spanContextOf(parent), isRemote: isServer } }),
    links: link ? [{ context: spanContextOf(link) }] : [],
    startTime: timeOf(startedAt),
    endTime: timeOf(endedAt),
    duration: timeOf(endedAt - startedAt),
    ended: true,
    status:
      failure === undefined
        ? { code: SpanStatusCode.UNSET }
        : { code: SpanStatusCode.ERROR, message: failure },
    attributes: { ...attributes },
    events: [],
    resource: resourceFor(await of),
    instrumentationScope: scope,
    droppedAttributesCount: 0,
    droppedEventsCount: 0,
    droppedLinksCount: 0,
  };
}

/** Seconds and nanoseconds. */
function timeOf(ms: Millis): SpanTime {
  const micros = Math.round(ms * 1000);
  return [Math.floor(micros / 1_000_000), (micros % 1_000_000) * 1000];
}
