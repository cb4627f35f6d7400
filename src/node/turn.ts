import type { Clock, Millis } from "../base/clock.js";

/** So that the clients of some other browsers are served within a few of these. */
const turnMs: Millis = 0.5;

/**
 * How much of one round of the event loop the clients of one browser have used. When that is enough the rest waits for the
 * next round, in the order in which it came, while other browsers are served.
 */
export class Turn {
  readonly #waiting: { readonly next: () => void; readonly costMs: Millis }[] = [];
  #usedMs: Millis = 0;
  #isCounting = false;

  constructor(private readonly clock: Pick<Clock, "monotonic">) {}

  get isOver(): boolean {
    return this.#usedMs >= turnMs || this.#waiting.length > 0;
  }

  run(work: () => void): void {
    const startedAt = this.clock.monotonic();
    try {
      work();
    } finally {
      this.#usedMs += this.clock.monotonic() - startedAt;
      this.#count();
    }
  }

  /** Once, when the browser's turn has come again. `costMs`: what it will take of the turn after it has returned. */
  wait(next: () => void, costMs: Millis = 0): void {
    this.#waiting.push({ next, costMs });
    this.#count();
  }

  #count(): void {
    if (this.#isCounting) return;
    this.#isCounting = true;
    setImmediate(() => {
      this.#isCounting = false;
      this.#usedMs = 0;
      this.#proceed();
    });
  }

  #proceed(): void {
    for (let left = this.#waiting.length; left > 0 && this.#usedMs < turnMs; left -= 1) {
      const waiting = this.#waiting.shift();
      this.#usedMs += waiting?.costMs ?? 0;
      waiting?.next();
    }
    if (this.#waiting.length > 0) this.#count();
  }
}
