import type { OtlpDestinationId } from "../base/ids.js";
import type { TraceContext } from "../base/trace-context.js";
import type { ExportStream, WrittenEvent } from "./ports.js";
import type { Span } from "./traces/span.js";

export interface WaitingEvent extends WrittenEvent {
  /** Sends its text on to the lease's destination, with its number if it got one. */
  readonly pass: ((text: string, seq?: number) => void) | undefined;
  /** It waits beyond what others may have, since it counts those that had no room. */
  readonly countsLost: boolean;
  /** Its text, where that tells how many events of its lease the store has lost. */
  readonly recount: ((lostInStore: number) => string) | undefined;
}

export const recounted = (event: WaitingEvent, lostInStore: number): WaitingEvent =>
  event.recount ? { ...event, text: event.recount(lostInStore) } : event;

/**
 * Exports the events of one lease. An event is sent once the store has numbered it, so the export ends after
 * the last event that waits for its number.
 */
export class LeaseExport {
  #expected = 0;
  #isEnding = false;

  constructor(
    readonly to: OtlpDestinationId,
    private readonly stream: ExportStream,
  ) {}

  /**
   * What is returned is to be called once: with the event's number, or without one where it gets none, and
   * without a text where it is not to be sent.
   */
  expect(trace: TraceContext | undefined): (text: string | undefined, seq?: number) => void {
    this.#expected += 1;
    return (text, seq) => {
      if (text !== undefined) this.stream.add(text, { seq, trace });
      this.#expected -= 1;
      this.#closeIfOver();
    };
  }

  addSpan(span: Span): void {
    this.stream.addSpan(span);
  }

  end(): void {
    this.#isEnding = true;
    this.#closeIfOver();
  }

  #closeIfOver(): void {
    if (this.#isEnding && this.#expected === 0) this.stream.close();
  }
}
