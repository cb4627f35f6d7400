import type { Clock, Millis } from "../base/clock.js";
import { within } from "../base/deadline.js";
import { RemudaError } from "../base/errors.js";
import { type Log, textOf } from "../base/log.js";
import type { AuditStore } from "./audit-store.js";
import { longestMs, type NewEntry } from "./entry.js";

/** Takes what requests leave in the log. */
export interface AuditRecorder {
  /** Returns at once; the entry is in the log within `flushMs`, or lost and counted. */
  record(entry: NewEntry): void;
  /** Resolves when the entry is in the log; throws `audit_unavailable` where it could not be put there. */
  recordNow(entry: NewEntry): Promise<void>;
  /**
   * Puts on record that a change is about to be made, as the entry that it leaves if nothing more is heard of
   * it. Its entry is to name the intent, also where this throws: it may be on record then, since an answer of
   * Redis can be lost. Throws `audit_unavailable` where the log takes nothing more.
   */
  begin(intent: string, entry: NewEntry): Promise<void>;
}

/** Stands in the place of the log where the configuration wants none. */
export const noRecorder: AuditRecorder = { record() {}, async recordNow() {}, async begin() {} };

/** Why entries are not in the log: too many at once, the log full, Redis away for too long. */
type LossReason = "too_many" | "log_full" | "store_away";
interface AuditMeter {
  recorded(count: number): void;
  lost(reason: LossReason, count: number): void;
}

interface WriterParts {
  readonly store: Pick<AuditStore, "append" | "noteIntent">;
  readonly clock: Clock;
  readonly log: Log;
  readonly meter: AuditMeter;
  /** Names this writer among all daemons', in one life of the process. */
  readonly id: string;
}

interface WaitingEntry {
  readonly entry: NewEntry;
  settle?(isRecorded: boolean): void;
}

/** Entries are written so long after the first of them came; a write takes a few ms more. */
const flushMs: Millis = 20;
const retryMs: Millis = 200;
/** A daemon that stops waits no longer for a store that does not answer. */
const closeMs: Millis = 2000;
/** Redis serves nobody else while it takes a batch: this many cost it about a millisecond. */
const mostPerBatch = 100;
/** About 10 MB. More come only while Redis is slow or away. */
const mostWaiting = 20_000;

interface WriterBatch {
  readonly number: number;
  readonly waiting: readonly WaitingEntry[];
}

/**
 * Writes entries in batches, one batch at a time and in their order, off the way of whoever asked. A batch
 * whose fate is not known is sent again under its number, which the store takes once.
 */
export class AuditWriter implements AuditRecorder {
  #waiting: WaitingEntry[] = [];
  #batch: WriterBatch | undefined;
  #batches = 0;
  #cancel: (() => void) | undefined;
  #writing: Promise<void> | undefined;
  #isClosed = false;

  constructor(private readonly parts: WriterParts) {}

  record(entry: NewEntry): void {
    if (this.#take({ entry })) this.#writeIn(flushMs);
  }

  recordNow(entry: NewEntry): Promise<void> {
    return new Promise((resolve, reject) => {
      const settle = (isRecorded: boolean): void =>
        isRecorded ? resolve() : reject(new RemudaError("audit_unavailable"));
      this.#take({ entry, settle });
      this.#write();
    });
  }

  async begin(intent: string, entry: NewEntry): Promise<void> {
    const { store, clock } = this.parts;
    const noted = await store.noteIntent({ id: intent, entry, sentAt: clock.monotonic() });
    if (noted === "full") throw new RemudaError("audit_unavailable");
  }

  /** Writes what waits; what cannot be written by then is lost. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const limit = { what: "writing the last audit entries", limitMs: closeMs };
    await within(this.parts.clock, limit, this.#writeLast()).catch(() => {});
    const left = [...(this.#batch?.waiting ?? []), ...this.#waiting.splice(0)];
    if (left.length > 0) this.#lose("store_away", left);
  }

  async #writeLast(): Promise<void> {
    await this.#writing;
    this.#write();
    await this.#writing;
  }

  /** A change that was made is always taken: those are no more than there are requests. */
  #take(waiting: WaitingEntry): boolean {
    const hasRoom = waiting.settle !== undefined || this.#waiting.length < mostWaiting;
    if (hasRoom) this.#waiting.push(waiting);
    else this.parts.meter.lost("too_many", 1);
    return hasRoom;
  }

  #writeIn(delayMs: Millis): void {
    if (!this.#writing) this.#cancel ??= this.parts.clock.after(delayMs, () => this.#write());
  }

  #write(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    this.#writing ??= this.#writeAll().then((isDone) => {
      this.#writing = undefined;
      if (this.#isClosed) return;
      if (!isDone) this.#writeIn(retryMs);
      // What came after the last look found a write under way, and left it to that.
      else if (this.#waiting.length > 0) this.#write();
    });
  }

  /** Whether everything that waited was written, or is lost. */
  async #writeAll(): Promise<boolean> {
    while ((this.#batch ??= this.#nextBatch())) {
      if (!(await this.#send(this.#batch))) return false;
      this.#batch = undefined;
    }
    return true;
  }

  #nextBatch(): WriterBatch | undefined {
    if (this.#waiting.length === 0) return undefined;
    return { number: (this.#batches += 1), waiting: this.#waiting.splice(0, mostPerBatch) };
  }

  /** False where it has to be sent again. */
  async #send({ number, waiting }: WriterBatch): Promise<boolean> {
    const { store, clock, log, meter, id } = this.parts;
    const now = clock.monotonic();
    const isOld = ({ entry }: WaitingEntry): boolean => now - entry.receivedAt > longestMs;
    const sent = waiting.filter((one) => !isOld(one));
    try {
      const batch = { writer: id, number, entries: sent.map(({ entry }) => entry), sentAt: now };
      const isTaken = (await store.append(batch)) === "appended";
      if (isTaken) meter.recorded(sent.length);
      else this.#lose("log_full", sent);
      for (const { settle } of sent) settle?.(isTaken);
      this.#lose("store_away", waiting.filter(isOld));
      return true;
    } catch (error) {
      log.debug({ error: textOf(error) }, "audit entries wait for the store");
      // Whoever waits for an entry is told at once, also of those that come after; the entries stay.
      for (const { settle } of [...waiting, ...this.#waiting]) settle?.(false);
      return false;
    }
  }

  #lose(reason: LossReason, lost: readonly WaitingEntry[]): void {
    if (lost.length === 0) return;
    this.parts.meter.lost(reason, lost.length);
    for (const { settle } of lost) settle?.(false);
  }
}
