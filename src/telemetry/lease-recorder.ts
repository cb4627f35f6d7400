import type { Clock, Millis } from "../base/clock.js";
import { type LeaseId, newRequestId, type OtlpDestinationId } from "../base/ids.js";
import { type Log, textOf } from "../base/log.js";
import type { TraceContext } from "../base/trace-context.js";
import type { EventCategory, LeaseSink, SeenEvent, TelemetryEvent } from "./event.js";
import type {
  AppendResult,
  EventBatch,
  EventLoss,
  EventMeter,
  EventStore,
  Exports,
  StreamRef,
} from "./ports.js";
import type { CaptureSettings } from "./settings.js";
import { LeaseExport, recounted, type WaitingEvent } from "./lease-export.js";
import { LeaseQueue } from "./lease-queue.js";
import type { StoreLosses } from "./store-losses.js";
import { truncateData } from "./truncate.js";

export interface RecorderLimits {
  /** How much one event's JSON may have; what is larger is cut. Screenshots have a limit of their own. */
  readonly eventBytes: number;
  readonly screenshotBytes: number;
  /** What waits of one lease, and of all in this daemon; what comes beyond it is lost. */
  readonly queueBytes: number;
  readonly daemonBytes: number;
  /** What each lease may have beyond both of events that count lost ones. */
  readonly lossCountBytes: number;
}

export interface RecorderParts {
  readonly store: Pick<EventStore, "append">;
  readonly clock: Clock;
  readonly log: Log;
  readonly meter: EventMeter;
  readonly limits: RecorderLimits;
  readonly exports?: Exports;
}

/** Events wait so long for others, so that they are stored together. */
const batchMs: Millis = 100;
/** A store that is away is tried again, more and more seldom. */
const firstRetryMs: Millis = 100;
const lastRetryMs: Millis = 2000;
/** What a lease has left at its end waits so long for a store that is away. */
const closeLimitMs: Millis = 10_000;
/** A store that loses more each time it is asked is away. */
const mostRecounts = 5;

/** What all recorders of a daemon share. */
export interface RecorderShared extends RecorderParts {
  /** False where the daemon may hold no more, unless it is to be held beyond that. */
  hold(bytes: number, isBeyond?: boolean): boolean;
  /** Its lease's next recorder waits for it. */
  closing(lease: LeaseId, ending: Promise<void>): void;
  closed(recorder: LeaseRecorder, ending: Promise<void> | undefined): void;
}

/** A batch on its way, and how many events its lease has lost in the store as far as that has said. */
interface Sending {
  readonly batch: Omit<EventBatch, "events" | "countedLost" | "silentMs">;
  readonly events: readonly WaitingEvent[];
  lost: number;
}

interface LeaseShared extends RecorderShared {
  /** Ends when the lease's recorder before this one has stored what it had. */
  readonly before: Promise<void> | undefined;
  readonly losses: StoreLosses;
}

/** The events of one lease on their way into the store. */
export class LeaseRecorder implements LeaseSink {
  /** Names those of one opening, so that a batch which is sent twice is stored once. */
  readonly #writer = newRequestId();
  trace: TraceContext | undefined;
  readonly #queue: LeaseQueue;
  #batches = 0;
  #lost = 0;
  #isClosed = false;
  /** The instant from which a store that is away is tried no more. */
  #endsAt = Infinity;
  #closing: Promise<void> | undefined;
  #storing: Promise<void> | undefined;
  #cancelTimer: (() => void) | undefined;
  #exported: LeaseExport | undefined;

  constructor(
    readonly stream: StreamRef,
    private settings: CaptureSettings,
    private readonly shared: LeaseShared,
  ) {
    const { limits, hold } = shared;
    this.#queue = new LeaseQueue({ ...limits, hold });
    this.#exportTo(settings.destination);
  }

  get lost(): number {
    return this.#lost;
  }

  get lostInStore(): number {
    return this.shared.losses.count;
  }

  /** What is captured from now on. */
  apply(settings: CaptureSettings): void {
    this.settings = settings;
    this.#exportTo(settings.destination);
  }

  wants(category: EventCategory): boolean {
    return this.settings.categories.has(category) && !this.#isClosed;
  }

  emit(seen: SeenEvent): boolean {
    if (!this.wants(seen.category)) return true;
    const ts = seen.ts ?? Math.round(this.shared.clock.now() * 1000);
    const text = this.#textOf(seen, ts);
    // A picture is no record of a log, and longer than collectors take.
    const pass = seen.category === "screenshot" ? undefined : this.#exported?.expect(this.trace);
    const { type, category, recount: dataOf, countsLost = false } = seen;
    const recount = dataOf && ((lost: number) => this.#textOf({ ...seen, data: dataOf(lost) }, ts));
    if (!this.#queue.add({ type, category, text, pass, recount, countsLost })) {
      pass?.(seen.isToldAgain ? undefined : text);
      if (!seen.isToldAgain) this.#lose("too_many", 1);
      return false;
    }
    this.#storeSoon();
    return true;
  }

  span: LeaseSink["span"] = (span) => void this.#exported?.addSpan(span);

  /** Stores what waits; resolves when it is stored, or lost because the store is away for too long. */
  close(): Promise<void> {
    if (this.#closing) return this.#closing;
    this.#closing = this.#close();
    this.shared.closing(this.stream.lease, this.#closing);
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#isClosed = true;
    this.#endsAt = this.shared.clock.monotonic() + closeLimitMs;
    this.#exportTo(undefined);
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    // What waits after a batch that is under way is the last of it.
    await this.#storing;
    if (!this.#queue.isEmpty) await this.#storeAll();
    this.shared.closed(this, this.#closing);
  }

  #exportTo(to: OtlpDestinationId | undefined): void {
    if (this.#exported?.to === to) return;
    this.#exported?.end();
    const stream = to && this.shared.exports?.open(this.stream, to);
    this.#exported = to && stream && new LeaseExport(to, stream);
  }

  #textOf(seen: SeenEvent, ts: number): string {
    const { limits } = this.shared;
    const { type, category, source, data, truncated = false } = seen;
    const event: TelemetryEvent = { ts, type, category, source, data, truncated };
    const text = JSON.stringify(event);
    const most = category === "screenshot" ? limits.screenshotBytes : limits.eventBytes;
    // A character of text in memory is at least one byte, and at most three.
    if (text.length * 3 <= most || Buffer.byteLength(text) <= most) return text;
    const room = most - Buffer.byteLength(JSON.stringify({ ...event, data: {} }));
    return JSON.stringify({ ...event, data: truncateData(data, Math.max(0, room)), truncated: true });
  }

  #storeSoon(): void {
    if (this.#storing || this.#isClosed) return;
    const { clock } = this.shared;
    if (this.#queue.hasBatch) {
      this.#cancelTimer?.();
      this.#cancelTimer = undefined;
      void this.#storeAll();
    } else
      this.#cancelTimer ??= clock.after(batchMs, () => {
        this.#cancelTimer = undefined;
        void this.#storeAll();
      });
  }

  /** One batch after the other, since their order is that of the events. Never rejects. */
  #storeAll(): Promise<void> {
    this.#storing = this.#storeBatches().finally(() => {
      this.#storing = undefined;
      if (!this.#queue.isEmpty && !this.#isClosed) this.#storeSoon();
    });
    return this.#storing;
  }

  async #storeBatches(): Promise<void> {
    await this.shared.before;
    while (!this.#queue.isEmpty) {
      const events = this.#queue.takeBatch();
      if (await this.#store(events)) this.shared.meter.recorded(events.length);
      else this.#loseAll(events);
      this.#queue.release(events);
      if (!this.#isClosed && !this.#queue.hasBatch) return;
    }
  }

  /** The store is away, and the lease over: what waits beside these is not tried either. */
  #loseAll(events: readonly WaitingEvent[]): void {
    const rest = this.#queue.takeAll();
    const { losses } = this.shared;
    for (const event of [...events, ...rest]) {
      event.pass?.(recounted(event, losses.count).text);
      losses.count += 1;
    }
    this.#lose("store_away", events.length + rest.length);
    this.#queue.release(rest);
  }

  /** False where the store was away for longer than the lease lasted. */
  async #store(events: readonly WaitingEvent[]): Promise<boolean> {
    const { clock, log } = this.shared;
    const { stream, settings } = this;
    this.#batches += 1;
    const numbers = { writer: this.#writer, number: this.#batches, after: this.shared.losses.last };
    const sending = { batch: { stream, ...numbers, isStored: settings.isStored }, events, lost: 0 };
    for (let waitMs = firstRetryMs; ; waitMs = Math.min(waitMs * 2, lastRetryMs)) {
      try {
        await this.#send(sending);
        return true;
      } catch (error) {
        const { browser } = stream;
        log.warn({ browser, events: events.length, error: textOf(error) }, "events could not be stored yet");
      }
      if (clock.monotonic() + waitMs > this.#endsAt) return false;
      await new Promise<void>((resolve) => void clock.after(waitMs, resolve));
    }
  }

  /** Where the store has lost what an event is to count, it says so before it takes that event. */
  async #send(sending: Sending): Promise<void> {
    const { store, losses, clock } = this.shared;
    const { events } = sending;
    const sentAt = clock.monotonic();
    const batch = { ...sending.batch, silentMs: sentAt - (losses.lastAt ?? sentAt) };
    if (!events.some(({ recount }) => recount))
      return this.#appended(await store.append({ ...batch, events }), { events, sentAt });
    for (let tries = 0; tries < mostRecounts; tries += 1) {
      const { lost } = sending;
      const told = events.map((event) => recounted(event, losses.count + lost));
      const appended = await store.append({ ...batch, events: told, countedLost: lost });
      // What is counted is what the events tell.
      if (!appended.isMiscounted) return this.#appended({ ...appended, lost }, { events: told, sentAt });
      sending.lost = appended.lost;
    }
    throw new Error("more was lost each time that it was counted");
  }

  #appended(
    { last, lost }: AppendResult,
    { events, sentAt }: { readonly events: readonly WaitingEvent[]; readonly sentAt: Millis },
  ): void {
    const { losses, meter } = this.shared;
    losses.last = Math.max(losses.last, last);
    losses.lastAt = sentAt;
    for (const [at, { pass, text }] of events.entries()) pass?.(text, last - events.length + 1 + at);
    if (lost === 0) return;
    losses.count += lost;
    meter.lost("store_lost", lost);
  }

  #lose(why: EventLoss, count: number): void {
    this.#lost += count;
    this.shared.meter.lost(why, count);
  }
}
