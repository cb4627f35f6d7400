import type { Clock, Millis } from "../../base/clock.js";
import { within } from "../../base/deadline.js";
import type { LeaseId } from "../../base/ids.js";
import { type Log, textOf } from "../../base/log.js";
import { PipeClosed } from "../../browser/cdp/cdp.js";
import type { Pipe } from "../../browser/cdp/pipe.js";
import type { EventCategory, EventSink, SeenEvent } from "../event.js";
import { isMonitored } from "../settings.js";
import { BrowserWatch } from "./browser-watch.js";
import type { Rates } from "./rates.js";

interface MonitorParts {
  readonly clock: Clock;
  readonly log: Log;
  /** Whether another Chromium is about to take the place of one that ends. */
  isRestarting(): boolean;
  /** Whether a client is connected, who may answer dialogs. */
  hasClients(): boolean;
  /** A page has reported an error on its console. */
  consoleError?(event: SeenEvent): void;
  /** How much is read; the usual where it is left out. */
  readonly rates?: Rates;
}

/** Takes what happens in a browser's targets. */
export interface WatchSink extends EventSink {
  /** Nothing more is seen of a target, until it is seen anew. */
  left(targetId: string): void;
}

/** What is watched, for whom. */
interface WatchedLease {
  readonly pipe: Pipe;
  readonly lease: LeaseId;
  readonly sink: WatchSink;
  readonly categories: ReadonlySet<EventCategory>;
}

/**
 * Tells what happens in the pages of one browser, as its holder has asked (docs/telemetry.md). It costs
 * nothing while no category of its own is on. It is no client: it has sessions of its own on the browser's
 * pipe, which no client may use. Nothing of it ever rejects.
 */
export class Monitor {
  #watch: BrowserWatch | undefined;
  #watched: WatchedLease | undefined;
  /** When a Chromium went that is being replaced, and whose events end there. */
  #lost: { readonly at: Millis; readonly lease: LeaseId } | undefined;
  #work: Promise<void> = Promise.resolve();

  constructor(private readonly parts: MonitorParts) {}

  /**
   * Resolves when the categories are in force on every page that answers within a second, or after
   * `inForceLimitMs`. To be called again for another Chromium that has taken the place of the first.
   */
  start(watched: WatchedLease): Promise<void> {
    return this.#soon(async () => {
      await this.#close();
      const lost = this.#lost?.lease === watched.lease ? this.#lost : undefined;
      this.#lost = undefined;
      this.#watched = watched;
      await this.#carryOut();
      if (lost) this.#tellReconnected(this.parts.clock.monotonic() - lost.at);
    });
  }

  /** Other categories from now on; resolves as `start` does. */
  apply(categories: ReadonlySet<EventCategory>): Promise<void> {
    return this.#soon(async () => {
      if (!this.#watched) return;
      this.#watched = { ...this.#watched, categories };
      if (this.#watch && this.#isWanted) await this.#watch.apply();
      else await this.#carryOut();
    });
  }

  /** Resolves when nothing of it is left in the browser; nothing is told once the call has returned. */
  stop(): Promise<void> {
    this.#watch?.tellRest();
    this.#watched = undefined;
    return this.#inTurn(async () => {
      this.#watched = undefined;
      await this.#close();
    });
  }

  get #isWanted(): boolean {
    return this.#watched !== undefined && isMonitored(this.#watched);
  }

  /** Begins or ends the watch, as the categories want. */
  async #carryOut(): Promise<void> {
    const now = this.#watched;
    if (!now || !this.#isWanted) return await this.#close();
    if (this.#watch) return;
    const watch = new BrowserWatch({
      pipe: now.pipe,
      clock: this.parts.clock,
      rates: this.parts.rates,
      categories: () => this.#watched?.categories ?? none,
      hasClients: () => this.parts.hasClients(),
      emit: (event) => this.#emit(event),
      left: (targetId) => this.#watched?.sink.left(targetId),
      onClosed: () => this.#closed(watch),
    });
    this.#watch = watch;
    try {
      await watch.open();
    } catch (error) {
      this.parts.log.warn({ error: textOf(error) }, "browser could not be watched");
      if (this.#watch === watch) await this.#close();
    }
  }

  #emit(event: SeenEvent): boolean {
    if (!this.#watched) return true;
    if (event.type === "console_error") this.parts.consoleError?.(event);
    return this.#watched.sink.emit(event);
  }

  #closed(watch: BrowserWatch): void {
    if (this.#watch !== watch) return;
    this.#watch = undefined;
    if (this.parts.isRestarting() && this.#watched) {
      this.#lost = { at: this.parts.clock.monotonic(), lease: this.#watched.lease };
      this.#tell("monitor_disconnected", { reason: "chrome_restarted" });
    }
    this.#watched = undefined;
  }

  #tellReconnected(tookMs: Millis): void {
    if (this.#watch) this.#tell("monitor_reconnected", { reconnect_duration_ms: Math.round(tookMs) });
    else if (this.#isWanted) this.#tell("monitor_reconnect_failed", { reason: "reconnect_exhausted" });
  }

  async #close(): Promise<void> {
    const watch = this.#watch;
    this.#watch = undefined;
    await watch?.close().catch((error: unknown) => {
      // Nothing of it is left in a browser that has ended, as one does whose session is deleted.
      if (error instanceof PipeClosed) return;
      this.parts.log.warn({ error: textOf(error) }, "browser's watch not ended in order");
    });
  }

  #tell(type: string, data: SeenEvent["data"]): void {
    this.#watched?.sink.emit({ type, category: "monitor", source: { kind: "local_process" }, data });
  }

  /** Whoever waits does not wait longer than a limit; the work goes on. */
  async #soon(work: () => Promise<void>): Promise<void> {
    const limit = { what: "the watch over a browser's pages", limitMs: inForceLimitMs };
    await within(this.parts.clock, limit, this.#inTurn(work)).catch((error: unknown) =>
      this.parts.log.warn({ error: textOf(error) }, "browser is not watched yet"),
    );
  }

  #inTurn(work: () => Promise<void>): Promise<void> {
    this.#work = this.#work.then(work, work);
    return this.#work;
  }
}

/** Clients and calls wait at most so long for a Chromium that does not answer. */
const inForceLimitMs: Millis = 5000;
const none: ReadonlySet<EventCategory> = new Set();
