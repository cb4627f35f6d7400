import type { WaitingEvent } from "./lease-export.js";

interface LeaseQueueParts {
  /** What waits of one lease; what comes beyond it is lost. */
  readonly queueBytes: number;
  /** What a lease's events that count lost ones may have whatever else waits, here and in the daemon. */
  readonly lossCountBytes: number;
  /** Takes bytes of what all leases may have, or gives some back; false where the daemon may hold no more. */
  hold(bytes: number, isBeyond?: boolean): boolean;
}

/** A batch that has as much is stored at once. */
const batchBytes = 512 * 1024;
const batchEvents = 1000;
/** What an event costs beside its text. */
const eventOverhead = 100;

/** The events of one lease that are to be stored, in the order in which they came. */
export class LeaseQueue {
  #waiting: WaitingEvent[] = [];
  /** Those included that were taken to be stored and are not yet. */
  #bytes = 0;
  #lossCountBytes = 0;

  constructor(private readonly parts: LeaseQueueParts) {}

  get isEmpty(): boolean {
    return this.#waiting.length === 0;
  }

  get hasBatch(): boolean {
    return this.#bytes >= batchBytes || this.#waiting.length >= batchEvents;
  }

  /** False where there is no room for it. */
  add(event: WaitingEvent): boolean {
    const bytes = bytesOf(event);
    if (!this.#hold(bytes, event.countsLost)) return false;
    this.#waiting.push(event);
    this.#bytes += bytes;
    if (event.countsLost) this.#lossCountBytes += bytes;
    return true;
  }

  /** Takes the oldest, which are to be released once they are stored or lost. */
  takeBatch(): readonly WaitingEvent[] {
    let [count, bytes] = [0, 0];
    for (const event of this.#waiting) {
      if (count === batchEvents || (count > 0 && bytes >= batchBytes)) break;
      bytes += bytesOf(event);
      count += 1;
    }
    return this.#waiting.splice(0, count);
  }

  takeAll(): readonly WaitingEvent[] {
    return this.#waiting.splice(0);
  }

  release(events: readonly WaitingEvent[]): void {
    const bytes = sumOf(events);
    this.#bytes -= bytes;
    this.#lossCountBytes -= sumOf(events.filter(({ countsLost }) => countsLost));
    this.parts.hold(-bytes);
  }

  /** What fills the queue is what such an event counts, so that it has room of its own. */
  #hold(bytes: number, countsLost: boolean): boolean {
    const { queueBytes, lossCountBytes, hold } = this.parts;
    if (countsLost && this.#lossCountBytes + bytes <= lossCountBytes) return hold(bytes, true);
    return this.#bytes + bytes <= queueBytes && hold(bytes);
  }
}

/** As memory holds it, roughly: what is counted is never less than its bytes in Redis by much. */
const bytesOf = ({ text }: WaitingEvent): number => text.length + eventOverhead;
const sumOf = (events: readonly WaitingEvent[]): number =>
  events.reduce((sum, event) => sum + bytesOf(event), 0);
