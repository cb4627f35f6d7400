import type { Clock, Millis } from "../../base/clock.js";
import { RemudaError } from "../../base/errors.js";
import type { OtlpDestinationId } from "../../base/ids.js";
import { type Log, textOf } from "../../base/log.js";
import type { Collector, Collectors } from "./collectors.js";
import { type Compression, Delivery } from "./delivery.js";
import type { Exported, Signal } from "./exported.js";

export interface ExportLimits {
  /** Events are collected for so long before they are sent. */
  readonly delayMs: Millis;
  /** How long one request may take, its repeats included. */
  readonly limitMs: Millis;
  readonly batchEvents: number;
  readonly batchBytes: number;
  /** What waits for one destination, and for all of them in this daemon; more is lost. */
  readonly queueBytes: number;
  readonly totalQueueBytes: number;
}

/**
 * Why events were not exported: too many waited, the request failed, the collector threw some away, or there
 * is no such destination any more.
 */
type ExportLoss = "queue_full" | "failed" | "rejected" | "no_destination";
interface TelemetryExportMeter {
  exported(count: number): void;
  exportLost(why: ExportLoss, count: number): void;
}

export interface QueueParts {
  readonly collectors: Collectors;
  readonly clock: Clock;
  readonly log: Log;
  readonly meter: TelemetryExportMeter;
  readonly limits: ExportLimits;
  readonly compression: Compression;
}

interface QueueShared extends QueueParts {
  /** Takes bytes for a queue that has `own` already, or gives some back; false where there is no room. */
  hold(bytes: number, own: number): boolean;
}

/** What an event costs beside its text. */
const eventOverhead = 100;
const bytesOf = ({ text }: Exported): number => text.length + eventOverhead;
/** A destination is read anew so often while events go there. */
const readEveryMs: Millis = 1000;
/** Redis is asked again so long after it was away. */
const retryMs: Millis = 1000;
/** That a destination goes on well is noted so often. */
const noteEveryMs: Millis = 30_000;

/** What waits of one signal to be sent to one destination, in the order in which it came. */
export class DestinationQueue {
  #waiting: Exported[] = [];
  #bytes = 0;
  #sending: Promise<void> | undefined;
  #cancelTimer: (() => void) | undefined;
  #isClosed = false;
  #known: { readonly collector: Collector; readonly delivery: Delivery } | undefined;
  #readAt = -Infinity;
  #noted: { readonly at: Millis; readonly hasFailed: boolean } | undefined;

  constructor(
    readonly id: OtlpDestinationId,
    readonly signal: Signal,
    private readonly parts: QueueShared,
  ) {}

  /** False where it is lost, because too much waits already. */
  add(exported: Exported): boolean {
    const bytes = bytesOf(exported);
    const { limits, hold, meter } = this.parts;
    const isFull = this.#isClosed || this.#bytes + bytes > limits.queueBytes;
    if (isFull || !hold(bytes, this.#bytes)) {
      meter.exportLost("queue_full", 1);
      return false;
    }
    this.#waiting.push(exported);
    this.#bytes += bytes;
    this.#sendSoon();
    return true;
  }

  /** Resolves when nothing waits. */
  async drain(): Promise<void> {
    while (this.#waiting.length > 0 || this.#sending) await (this.#sending ?? this.#sendAll());
  }

  /** What still waits is lost. */
  close(): void {
    this.#isClosed = true;
    this.#stopTimer();
    this.#lose("failed", this.#waiting.splice(0));
    this.#known?.delivery.close();
  }

  #sendSoon(): void {
    if (this.#sending) return;
    const { limits, clock } = this.parts;
    if (this.#bytes >= limits.batchBytes || this.#waiting.length >= limits.batchEvents) void this.#sendAll();
    else this.#cancelTimer ??= clock.after(limits.delayMs, () => void this.#sendAll());
  }

  /** One batch after the other. Never rejects. */
  #sendAll(): Promise<void> {
    this.#stopTimer();
    this.#sending ??= this.#sendBatches().finally(() => {
      this.#sending = undefined;
      if (this.#waiting.length > 0) this.#sendSoon();
    });
    return this.#sending;
  }

  async #sendBatches(): Promise<void> {
    const { batchBytes, batchEvents } = this.parts.limits;
    do {
      const found = await this.#findCollector();
      if (found === "unknown") {
        await new Promise<void>((resolve) => void this.parts.clock.after(retryMs, resolve));
        continue;
      }
      if (found === "none") return this.#lose("no_destination", this.#waiting.splice(0));
      await this.#send(this.#take(), found);
    } while (this.#bytes >= batchBytes || this.#waiting.length >= batchEvents);
  }

  async #send(batch: readonly Exported[], delivery: Delivery): Promise<void> {
    if (batch.length === 0) return;
    const { meter, log } = this.parts;
    const sent = await delivery.send(batch);
    if (sent.kind === "failed") {
      this.#lose("failed", batch);
      log.warn(
        { destination: this.id, signal: this.signal, records: batch.length, why: sent.why },
        "telemetry was not delivered",
      );
      return this.#note(sent.why);
    }
    this.#release(batch);
    meter.exported(batch.length - sent.rejected);
    if (sent.rejected > 0) meter.exportLost("rejected", sent.rejected);
    this.#note(undefined);
  }

  #take(): readonly Exported[] {
    const { batchEvents, batchBytes } = this.parts.limits;
    let [count, bytes] = [0, 0];
    for (const event of this.#waiting) {
      bytes += bytesOf(event);
      if (count === batchEvents || (count > 0 && bytes > batchBytes)) break;
      count += 1;
    }
    return this.#waiting.splice(0, count);
  }

  /** `unknown`: Redis cannot be asked now, and was never before. */
  async #findCollector(): Promise<Delivery | "none" | "unknown"> {
    const { collectors, clock, log, limits, compression } = this.parts;
    if (this.#known && clock.monotonic() - this.#readAt < readEveryMs) return this.#known.delivery;
    try {
      const collector = await collectors.open(this.id);
      this.#readAt = clock.monotonic();
      if (collector?.revision === this.#known?.collector.revision && this.#known) return this.#known.delivery;
      this.#known?.delivery.close();
      this.#known = collector && {
        collector,
        delivery: new Delivery(collector, {
          signal: this.signal,
          collectors,
          clock,
          compression,
          limitMs: limits.limitMs,
        }),
      };
      return this.#known?.delivery ?? "none";
    } catch (error) {
      log.warn({ destination: this.id, error: textOf(error) }, "a destination could not be read");
      if (error instanceof RemudaError && error.code === "secret_unreadable") return "none";
      return this.#known?.delivery ?? "unknown";
    }
  }

  #lose(why: ExportLoss, events: readonly Exported[]): void {
    this.#release(events);
    if (events.length > 0) this.parts.meter.exportLost(why, events.length);
  }

  #release(events: readonly Exported[]): void {
    const bytes = sumOf(events);
    this.#bytes -= bytes;
    this.parts.hold(-bytes, this.#bytes);
  }

  /** Nobody waits for it, and a note that is lost is followed by another. */
  #note(why: string | undefined): void {
    const at = this.parts.clock.monotonic();
    const hasFailed = why !== undefined;
    const isNews = !this.#noted || hasFailed || this.#noted.hasFailed || at - this.#noted.at >= noteEveryMs;
    if (!isNews) return;
    this.#noted = { at, hasFailed };
    this.parts.collectors.noteDelivery(this.id, why).catch(() => {});
  }

  #stopTimer(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
  }
}

const sumOf = (events: readonly Exported[]): number => events.reduce((sum, event) => sum + bytesOf(event), 0);
