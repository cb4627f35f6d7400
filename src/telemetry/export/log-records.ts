import type { LogBody, SeverityNumber } from "@opentelemetry/api-logs";
import type { ProtobufLogsSerializer } from "@opentelemetry/otlp-transformer";
import type { Millis } from "../../base/clock.js";
import type { TelemetryEvent } from "../event.js";
import type { Exported } from "./exported.js";
import { openTelemetry } from "./opentelemetry.js";
import { resourceFor } from "./resources.js";
import { spanContextOf } from "./span-records.js";

/** The maintained serializer says what a record is. */
type LogRecord = Parameters<(typeof ProtobufLogsSerializer)["serializeRequest"]>[0][number];

// One object for all records: the serializer groups them by it.
const scope = { name: "remuda.telemetry" };

const errorTypes = new Set([
  "console_error",
  "network_loading_failed",
  "page_crashed",
  "proxy_error",
  "service_crashed",
  "system_oom_kill",
  "monitor_init_failed",
  "monitor_reconnect_failed",
]);
const warningTypes = new Set(["monitor_disconnected", "monitor_events_dropped"]);

const severityOf = (type: string): { severityNumber: SeverityNumber; severityText: string } => {
  const { SeverityNumber } = openTelemetry().apiLogs;
  if (errorTypes.has(type)) return { severityNumber: SeverityNumber.ERROR, severityText: "ERROR" };
  return warningTypes.has(type)
    ? { severityNumber: SeverityNumber.WARN, severityText: "WARN" }
    : { severityNumber: SeverityNumber.INFO, severityText: "INFO" };
};

/** One event, given as its JSON, as an OTLP log record: its data as the body, the rest as attributes. */
export async function logRecordOf(
  { text, of, seq, trace }: Exported,
  observedAt: Millis,
): Promise<LogRecord> {
  const { ts, type, category, source, data, truncated } = JSON.parse(text) as TelemetryEvent;
  return {
    hrTime: [Math.floor(ts / 1_000_000), (ts % 1_000_000) * 1000],
    hrTimeObserved: [Math.floor(observedAt / 1000), Math.round(observedAt % 1000) * 1_000_000],
    ...severityOf(type),
    body: data as LogBody,
    eventName: type,
    resource: resourceFor(await of),
    ...(trace && { spanContext: spanContextOf(trace) }),
    instrumentationScope: scope,
    attributes: {
      // Receivers that know no event names find the type here.
      "remuda.event.type": type,
      "remuda.event.category": category,
      "remuda.event.source": source.kind,
      // Times have whole milliseconds: two events of one millisecond are put in their order by it.
      ...(seq !== undefined && { "remuda.event.seq": seq }),
      ...(truncated && { "remuda.event.truncated": true }),
      ...semanticsOf(data),
    },
    droppedAttributesCount: 0,
  };
}

/** What has a name in OpenTelemetry's semantic conventions for HTTP, so that receivers can group by it. */
function semanticsOf({ url, method, status }: TelemetryEvent["data"]): Record<string, string | number> {
  return {
    ...(typeof url === "string" && url !== "" && { "url.full": url }),
    ...(typeof method === "string" && typeof url === "string" && { "http.request.method": method }),
    ...(typeof status === "number" && typeof url === "string" && { "http.response.status_code": status }),
  };
}
