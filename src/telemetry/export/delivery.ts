import type { Agent } from "node:http";
import type { CompressionAlgorithm } from "@opentelemetry/otlp-exporter-base";
import type { Clock, Millis } from "../../base/clock.js";
import { within } from "../../base/deadline.js";
import type { Collector, Collectors } from "./collectors.js";
import type { Exported, Signal } from "./exported.js";
import { openTelemetry } from "./opentelemetry.js";
import { openClients, type SendBatch, signalPaths } from "./packing.js";

/** As exporters of OpenTelemetry name it (OTEL_EXPORTER_OTLP_COMPRESSION). */
export type Compression = "gzip" | "none";

interface DeliveryParts {
  readonly signal: Signal;
  readonly collectors: Pick<Collectors, "agentFor" | "isClosed">;
  readonly clock: Clock;
  readonly compression: Compression;
  /** How long one batch may take, its repeats included. */
  readonly limitMs: Millis;
}

/** What came of a batch: how many records the collector has thrown away, or why all of them are lost. */
type Delivered =
  | { readonly kind: "delivered"; readonly rejected: number }
  | { readonly kind: "failed"; readonly why: string };

/** A request that only just keeps within its limit is not given up by the second clock. */
const marginMs: Millis = 2000;
/** Requests to a collector go one after the other; of those given up some may still be ending. */
const concurrencyLimit = 8;

const compressionOf = (name: Compression): CompressionAlgorithm => {
  const { CompressionAlgorithm: known } = openTelemetry().exporter;
  return name === "gzip" ? known.GZIP : known.NONE;
};

/** Names of OpenSSL's and of Node.js for what is wrong with a certificate. */
const untrusted = /CERT|^UNABLE_TO_(GET|VERIFY)|^INVALID_(CA|PURPOSE)$|^HOSTNAME_MISMATCH$|^PATH_LENGTH/;

/**
 * Sends batches to one collector by OpenTelemetry's own client, which packs them and repeats what is worth
 * it. What that client would take from the daemon's environment (OTEL_EXPORTER_OTLP_HEADERS) is given here:
 * others' keys are no tenant's to receive.
 */
export class Delivery {
  readonly #agents = new Set<Agent>();
  readonly #send: SendBatch;

  constructor(
    { endpoint, headers }: Collector,
    private readonly parts: DeliveryParts,
  ) {
    this.#send = openClients[parts.signal]({
      url: `${endpoint}${signalPaths[parts.signal]}`,
      headers: async () => ({
        ...Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, value.reveal()])),
        "Content-Type": "application/x-protobuf",
      }),
      timeoutMillis: parts.limitMs,
      compression: compressionOf(parts.compression),
      concurrencyLimit,
      agentFactory: (protocol) => this.#openAgent(protocol),
    });
  }

  /** Never rejects, and takes no longer than its limit. */
  async send(batch: readonly Exported[]): Promise<Delivered> {
    const { clock, limitMs } = this.parts;
    const limit = { what: "a delivery", limitMs: limitMs + marginMs };
    try {
      const rejected = await within(clock, limit, this.#send(batch, clock.now()));
      return { kind: "delivered", rejected };
    } catch (error) {
      // Whoever answers a byte at a time is answered no more.
      for (const agent of this.#agents) agent.destroy();
      return { kind: "failed", why: this.#whyOf(error) };
    }
  }

  close(): void {
    for (const agent of this.#agents) agent.destroy();
  }

  #openAgent(protocol: string): Agent {
    const agent = this.parts.collectors.agentFor(protocol);
    this.#agents.add(agent);
    return agent;
  }

  /** Errors may have the collector's answer, its address or headers in them: none of that is told. */
  #whyOf(error: unknown): string {
    if (this.parts.collectors.isClosed(error))
      return "The collector is at an address that may not be reached";
    const { code } = error as { readonly code?: unknown };
    if (typeof code === "string" && untrusted.test(code))
      return "The collector's certificate is not one that this daemon trusts";
    if (!(error instanceof openTelemetry().exporter.OTLPExporterError))
      return "The collector could not be reached, or gave no whole answer";
    if (typeof code !== "number") return "The collector was busy for as long as it was tried";
    return code < 400
      ? "The collector answered with a redirect, which is not followed"
      : `The collector refused what was sent: ${code}`;
  }
}
