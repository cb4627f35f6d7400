import type { Agent } from "node:http";
import type { CompressionAlgorithm } from "@opentelemetry/otlp-exporter-base";
import { type Clock, type Millis, pause } from "../../base/clock.js";
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
  | {
      readonly kind: "failed";
      readonly why: string;
      /** It may be taken later. */
      readonly mayPass: boolean;
    };

/** What OpenTelemetry's client is to send, and when it has asked the collector for that. */
interface Round {
  readonly batch: readonly Exported[];
  readonly now: Millis;
  readonly limitMs: Millis;
  readonly askedAt: Millis[];
}

/** A request that only just keeps within its limit is not given up by the second clock. */
const marginMs: Millis = 2000;
/**
 * OpenTelemetry's client (0.223) asks a collector that is busy or away once, and five times more. Where it
 * has asked less often, the next time would have been too late.
 */
const mostAsked = 6;
/** The client is used again after a pause, at first and at most. */
const [firstPauseMs, lastPauseMs]: readonly [Millis, Millis] = [1000, 5000];

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
  readonly #closing = new AbortController();
  readonly #client = openTelemetry();
  #agent: Agent | undefined;

  /** Throws where the client cannot be loaded now: what waits for it goes on waiting then. */
  constructor(
    private readonly collector: Collector,
    private readonly parts: DeliveryParts,
  ) {}

  /** Never rejects, and takes no longer than its limit. */
  async send(batch: readonly Exported[]): Promise<Delivered> {
    const { clock, limitMs } = this.parts;
    const [now, endsAt] = [clock.now(), clock.monotonic() + limitMs];
    for (let leastMs = firstPauseMs; ; leastMs = Math.min(leastMs * 2, lastPauseMs)) {
      const round: Round = { batch, now, limitMs: endsAt - clock.monotonic(), askedAt: [] };
      const sent = await this.#sendOnce(round);
      const pauseMs = Math.max(leastMs, lastWaitOf(round));
      const isOver = sent.kind === "delivered" || !sent.mayPass;
      if (isOver || clock.monotonic() + pauseMs >= endsAt) return sent;
      await pause(clock, pauseMs, this.#closing.signal);
      if (this.#closing.signal.aborted) return sent;
    }
  }

  /** What is under way is given up. */
  close(): void {
    this.#closing.abort();
    this.#agent?.destroy();
  }

  async #sendOnce(round: Round): Promise<Delivered> {
    const limit = { what: "a delivery", limitMs: round.limitMs + marginMs };
    try {
      const send = this.#openClient(round);
      const rejected = await within(this.parts.clock, limit, send(round.batch, round.now));
      return { kind: "delivered", rejected };
    } catch (error) {
      // Whoever answers a byte at a time is answered no more.
      this.#agent?.destroy();
      return { kind: "failed", why: this.#whyOf(error), mayPass: mayPass(error, round) };
    }
  }

  /** A client for each use: it knows of no limit but the one that it is made with. */
  #openClient(round: Round): SendBatch {
    const { signal, collectors, compression } = this.parts;
    return openClients[signal]({
      url: `${this.collector.endpoint}${signalPaths[signal]}`,
      headers: async () => this.#headersFor(round),
      timeoutMillis: round.limitMs,
      compression: compressionOf(compression),
      concurrencyLimit: 1,
      agentFactory: (protocol) => (this.#agent ??= collectors.agentFor(protocol)),
    });
  }

  /** The client asks for them before each request. */
  #headersFor({ askedAt }: Round): Record<string, string> {
    this.#closing.signal.throwIfAborted();
    askedAt.push(this.parts.clock.monotonic());
    const given = Object.entries(this.collector.headers).map(([name, value]) => [name, value.reveal()]);
    return { ...Object.fromEntries(given), "Content-Type": "application/x-protobuf" };
  }

  /** Errors may have the collector's answer, its address or headers in them: none of that is told. */
  #whyOf(error: unknown): string {
    if (this.parts.collectors.isClosed(error))
      return "The collector is at an address that may not be reached";
    const { code } = error as { readonly code?: unknown };
    if (typeof code === "string" && untrusted.test(code))
      return "The collector's certificate is not one that this daemon trusts";
    if (!(error instanceof this.#client.exporter.OTLPExporterError))
      return "The collector could not be reached, or gave no whole answer";
    if (typeof code !== "number") return "The collector was busy for as long as it was tried";
    return code < 400
      ? "The collector answered with a redirect, which is not followed"
      : `The collector refused what was sent: ${code}`;
  }
}

/** Whether a collector that was asked as often as the client does it may take the batch later. */
function mayPass(error: unknown, { askedAt }: Round): boolean {
  const isRefused = typeof (error as { readonly code?: unknown }).code === "number";
  return askedAt.length === mostAsked && !isRefused;
}

/** How long the client has waited last: as long as the collector's `Retry-After` said, if it had one. */
const lastWaitOf = ({ askedAt }: Round): Millis => (askedAt.at(-1) ?? 0) - (askedAt.at(-2) ?? 0);
