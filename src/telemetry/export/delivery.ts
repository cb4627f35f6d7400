import type { Agent } from "node:http";
import { CompressionAlgorithm, OTLPExporterError } from "@opentelemetry/otlp-exporter-base";
import { createOtlpHttpExportDelegate } from "@opentelemetry/otlp-exporter-base/node-http";
import { LogsExporterMetricsHelper, ProtobufLogsSerializer } from "@opentelemetry/otlp-transformer";
import type { Clock, Millis } from "../../base/clock.js";
import { within } from "../../base/deadline.js";
import type { Collector, Collectors } from "./collectors.js";
import type { ExportedEvent } from "./exported.js";
import { type LogRecord, logRecordOf } from "./log-records.js";

interface DeliveryParts {
  readonly collectors: Pick<Collectors, "agentFor" | "isClosed">;
  readonly clock: Clock;
  /** Of one batch, its repeats included. */
  readonly limitMs: Millis;
}

/** What came of a batch: how many records the collector has thrown away, or why all of them are lost. */
export type Delivered =
  | { readonly kind: "delivered"; readonly rejected: number }
  | { readonly kind: "failed"; readonly why: string };

/** A request that only just keeps within its limit is not given up by the second clock. */
const marginMs: Millis = 2000;
/** Requests to a collector go one after the other; of those given up some may still be ending. */
const concurrencyLimit = 8;

/**
 * Sends batches to one collector by OpenTelemetry's own client, which packs them and repeats what is worth it. What
 * that client would take from the daemon's environment (OTEL_EXPORTER_OTLP_HEADERS) is given here: others' keys
 * are no tenant's to receive.
 */
export class Delivery {
  readonly #agents = new Set<Agent>();
  readonly #delegate: ReturnType<typeof createOtlpHttpExportDelegate<LogRecord[], unknown>>;
  #rejected = 0;

  constructor(
    { endpoint, headers }: Collector,
    private readonly parts: DeliveryParts,
  ) {
    this.#delegate = createOtlpHttpExportDelegate<LogRecord[], unknown>(
      {
        url: `${endpoint}/v1/logs`,
        headers: async () => ({
          ...Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, value.reveal()])),
          "Content-Type": "application/x-protobuf",
        }),
        timeoutMillis: parts.limitMs,
        compression: CompressionAlgorithm.GZIP,
        concurrencyLimit,
        agentFactory: (protocol) => this.#openAgent(protocol),
      },
      {
        serializeRequest: ProtobufLogsSerializer.serializeRequest,
        deserializeResponse: (bytes) => this.#read(bytes),
      },
      "remuda_otlp_http_log_exporter",
      LogsExporterMetricsHelper,
      undefined,
    );
  }

  /** Never rejects, and takes no longer than its limit. */
  async send(events: readonly ExportedEvent[]): Promise<Delivered> {
    this.#rejected = 0;
    const now = this.parts.clock.now();
    const limit = { what: "a delivery", limitMs: this.parts.limitMs + marginMs };
    try {
      const records = await Promise.all(events.map((event) => logRecordOf(event, now)));
      await within(this.parts.clock, limit, this.#export(records));
      return { kind: "delivered", rejected: Math.min(this.#rejected, records.length) };
    } catch (error) {
      // Whoever answers a byte at a time is answered no more.
      for (const agent of this.#agents) agent.destroy();
      return { kind: "failed", why: this.#whyOf(error) };
    }
  }

  close(): void {
    for (const agent of this.#agents) agent.destroy();
  }

  #export(records: LogRecord[]): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#delegate.export(records, ({ code, error }) =>
        code === 0 ? resolve() : reject(error ?? new Error("the export has failed")),
      );
    });
  }

  #openAgent(protocol: string): Agent {
    const agent = this.parts.collectors.agentFor(protocol);
    this.#agents.add(agent);
    return agent;
  }

  #read(bytes: Uint8Array): unknown {
    const response = ProtobufLogsSerializer.deserializeResponse(bytes);
    this.#rejected = Number(response.partialSuccess?.rejectedLogRecords ?? 0);
    return response;
  }

  /** Errors may have the collector's answer, its address or headers in them: none of that is told. */
  #whyOf(error: unknown): string {
    if (this.parts.collectors.isClosed(error))
      return "The collector is at an address that may not be reached";
    const { code } = error as { readonly code?: unknown };
    if (!(error instanceof OTLPExporterError))
      return "The collector could not be reached, or gave no whole answer";
    if (typeof code !== "number") return "The collector was busy for as long as it was tried";
    return code < 400
      ? "The collector answered with a redirect, which is not followed"
      : `The collector refused what was sent: ${code}`;
  }
}
