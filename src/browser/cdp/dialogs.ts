import type { Clock, Millis } from "../../base/clock.js";

/** While a dialog is open, whether a client is connected is looked up so often. */
const lookMs: Millis = 500;

interface DialogParts {
  readonly clock: Pick<Clock, "every">;
  /** Whether a client is connected, who may answer. */
  hasClients(): boolean;
  /** Answers in the place of whoever has left. */
  answer(): void;
}

/**
 * Dialogs of one page that open because somebody of the daemon's own listens: the page waits until they are
 * answered, and a client that was not told of one may leave without an answer.
 */
export class Dialogs {
  #stopLooking: (() => void) | undefined;

  constructor(private readonly parts: DialogParts) {}

  opened(): void {
    this.over();
    this.#stopLooking = this.parts.clock.every(lookMs, () => this.#look());
    this.#look();
  }

  /** It was answered, or its page has gone. */
  over(): void {
    this.#stopLooking?.();
    this.#stopLooking = undefined;
  }

  #look(): void {
    if (this.parts.hasClients()) return;
    this.over();
    this.parts.answer();
  }
}
