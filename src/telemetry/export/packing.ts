import type { createOtlpHttpExportDelegate } from "@opentelemetry/otlp-exporter-base/node-http";
import type { IExporterMetricsHelper, ISerializer } from "@opentelemetry/otlp-transformer";
import type { Millis } from "../../base/clock.js";
import type { Exported, Signal } from "./exported.js";
import { logRecordOf } from "./log-records.js";
import { openTelemetry } from "./opentelemetry.js";
import { spanRecordOf } from "./span-records.js";

/**
 * What stands behind a destination's endpoint, as the OTLP specification says for an endpoint of all signals.
 */
export const signalPaths: Readonly<Record<Signal, string>> = { logs: "/v1/logs", traces: "/v1/traces" };

type DelegateOptions = Parameters<typeof createOtlpHttpExportDelegate>[0];

/** Sends a batch, its repeats included; gives how many of it the collector has thrown away. */
export type SendBatch = (batch: readonly Exported[], now: Millis) => Promise<number>;

interface Packing<Record, Reply> {
  readonly serializer: ISerializer<Record[], Reply>;
  readonly metrics: IExporterMetricsHelper<Record[]>;
  recordOf(exported: Exported, now: Millis): Promise<Record>;
  rejectedIn(reply: Reply): number | string | undefined;
}

/** OpenTelemetry's own client for one signal. */
function openClient<Record, Reply>(
  options: DelegateOptions,
  { serializer, metrics, recordOf, rejectedIn }: Packing<Record, Reply>,
): SendBatch {
  let rejected = 0;
  const deserializeResponse = (bytes: Uint8Array): Reply => {
    const reply = serializer.deserializeResponse(bytes);
    rejected = Number(rejectedIn(reply) ?? 0);
    return reply;
  };
  const serializeRequest = (records: Record[]): Uint8Array | undefined =>
    serializer.serializeRequest(records);
  const delegate = openTelemetry().http.createOtlpHttpExportDelegate<Record[], Reply>(
    options,
    { serializeRequest, deserializeResponse },
    "remuda_otlp_http_exporter",
    metrics,
    undefined,
  );
  return async (batch, now) => {
    rejected = 0;
    const records = await Promise.all(batch.map((exported) => recordOf(exported, now)));
    await new Promise<void>((resolve, reject) => {
      delegate.export(records, ({ code, error }) =>
        code === 0 ? resolve() : reject(error ?? new Error("the export has failed")),
      );
    });
    return Math.min(rejected, records.length);
  };
}

export const openClients: Readonly<Record<Signal, (options: DelegateOptions) => SendBatch>> = {
  logs(options) {
    const { ProtobufLogsSerializer, LogsExporterMetricsHelper } = openTelemetry().transformer;
    return openClient(options, {
      serializer: ProtobufLogsSerializer,
      metrics: LogsExporterMetricsHelper,
      recordOf: logRecordOf,
      rejectedIn: ({ partialSuccess }) => partialSuccess?.rejectedLogRecords,
    });
  },
  traces(options) {
    const { ProtobufTraceSerializer, TraceExporterMetricsHelper } = openTelemetry().transformer;
    return openClient(options, {
      serializer: ProtobufTraceSerializer,
      metrics: TraceExporterMetricsHelper,
      recordOf: spanRecordOf,
      rejectedIn: ({ partialSuccess }) => partialSuccess?.rejectedSpans,
    });
  },
};
