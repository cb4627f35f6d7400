import type { Clock, Millis } from "../base/clock.js";
import type { LeaseId } from "../base/ids.js";
import type { TraceContext } from "../base/trace-context.js";
import type { Capture } from "./browser-telemetry.js";
import type { ReportedCommand } from "./commands/tell.js";
import type { EventCategory, EventSource, SeenEvent } from "./event.js";
import { type OpenedSpan, tellConnected, tellFirstCommand } from "./traces/connection-spans.js";

/** One connection of a client, as the gateway tells it (gateway/ports.ts). */
interface Client {
  readonly id: string;
  readonly lease: LeaseId;
  readonly protocol: "cdp" | "bidi";
  readonly arrivedAt: Millis;
  readonly openedAt: Millis;
  readonly trace?: TraceContext | undefined;
}

interface AnsweredRequest {
  readonly lease: LeaseId;
  readonly request: string;
  readonly operation: string;
  readonly status: number;
  readonly durationMs: Millis;
}

/** The contract's words for why a client is no longer there. */
const reasons = {
  left: "client_close",
  restart: "upstream_changed",
  browser: "upstream_error",
  cut: "context_cancelled",
} as const;

interface ConnectionCounts {
  messages: number;
  dropped: number;
  excluded: number;
  /** What the store had lost of its lease before. */
  readonly lostBefore: number;
  /** Absent from its first command on. */
  opening?: OpenedSpan | undefined;
}

const source: EventSource = { kind: "kernel_api" };
const sources: Readonly<Record<Client["protocol"], EventSource>> = {
  cdp: source,
  bidi: { ...source, metadata: { protocol: "webdriver_bidi" } },
};

/**
 * Makes events of what the clients of a browser do: who came and went, and their commands in order. A lease's
 * events are about its own clients alone.
 */
export class Connections {
  #capture: Capture | undefined;
  /** What a client did while nobody listened is not counted. */
  readonly #counts = new WeakMap<Client, ConnectionCounts>();

  /** Ends of clients that found no room and what they counted, which the next end counts. */
  #uncounted: { readonly lease: LeaseId; readonly events: number } | undefined;

  constructor(private readonly clock: Pick<Clock, "now" | "monotonic">) {}

  /** Goes on with what is captured now; undefined where that wants nothing of what clients do. */
  follow(capture: Capture | undefined): this | undefined {
    this.#capture = capture;
    const { categories } = capture?.settings ?? {};
    return categories?.has("control") || categories?.has("connection") ? this : undefined;
  }

  opened(client: Client): void {
    const { id, lease, protocol } = client;
    const data = { connection_id: id };
    this.#countsOf(client);
    const capture = this.#captureOf(lease);
    const opening = capture && tellConnected(client, capture.sink, this.clock);
    if (opening) this.#countsOf(client).opening = opening;
    const told = { type: "cdp_connect", category: "connection", source: sources[protocol], data } as const;
    if (!this.#emit(lease, told)) this.#countsOf(client).dropped += 1;
  }

  message(client: Client): void {
    this.#countsOf(client).messages += 1;
  }

  command(client: Client, { method, data }: ReportedCommand): void {
    const sink = this.#findSink(client.lease, "control");
    if (!sink) return;
    const counts = this.#countsOf(client);
    if (this.#capture?.settings.excludedMethods.has(method)) {
      counts.excluded += 1;
      return;
    }
    if (counts.opening) tellFirstCommand(counts.opening, method, { sink, clock: this.clock });
    counts.opening = undefined;
    if (!data || !this.#emitCommand(client, data)) counts.dropped += 1;
  }

  closed(client: Client, end: keyof typeof reasons): void {
    const { id, lease, protocol, openedAt } = client;
    const sink = this.#findSink(lease, "connection");
    if (!sink) return;
    const uncounted = this.#uncounted?.lease === lease ? this.#uncounted.events : 0;
    const { messages, dropped, excluded, lostBefore } = this.#countsOf(client);
    const duration_ms = Math.round(this.clock.monotonic() - openedAt);
    const recount = (lostInStore: number): SeenEvent["data"] => ({
      connection_id: id,
      duration_ms,
      message_count: messages,
      reason: reasons[end],
      telemetry_dropped: dropped + uncounted + lostInStore - lostBefore,
      telemetry_excluded: excluded,
    });
    const data = recount(sink.lostInStore);
    const told = { type: "cdp_disconnect", category: "connection", source: sources[protocol] } as const;
    const isTaken = sink.emit({ ...told, data, recount, countsLost: true });
    this.#uncounted = isTaken ? undefined : { lease, events: uncounted + dropped + 1 };
  }

  requested({ lease, request, operation, status, durationMs }: AnsweredRequest): void {
    const duration_ms = Math.round(durationMs);
    const data = { request_id: request, operation_id: operation, status, duration_ms };
    this.#emit(lease, { type: "api_call", category: "control", source, data });
  }

  #emitCommand({ id, lease, protocol }: Client, told: NonNullable<ReportedCommand["data"]>): boolean {
    const data = { ...told, connection_id: id };
    return this.#emit(lease, { type: "cdp_command", category: "control", source: sources[protocol], data });
  }

  /** False where the event is lost. */
  #emit(lease: LeaseId, event: SeenEvent): boolean {
    return this.#findSink(lease, event.category)?.emit(event) ?? true;
  }

  #findSink(lease: LeaseId, category: EventCategory): Capture["sink"] | undefined {
    const capture = this.#captureOf(lease);
    return capture?.sink.wants(category) ? capture.sink : undefined;
  }

  /** The store does not say whose events they were: they may be any of the lease's. */
  #lostInStore(lease: LeaseId): number {
    return this.#captureOf(lease)?.sink.lostInStore ?? 0;
  }

  #captureOf(lease: LeaseId): Capture | undefined {
    return this.#capture?.lease === lease ? this.#capture : undefined;
  }

  #countsOf(client: Client): ConnectionCounts {
    const known = this.#counts.get(client);
    if (known) return known;
    const counts = { messages: 0, dropped: 0, excluded: 0, lostBefore: this.#lostInStore(client.lease) };
    this.#counts.set(client, counts);
    return counts;
  }
}
