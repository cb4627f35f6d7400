import type { Clock, Millis } from "../../src/base/clock.js";

/** A clock that stands still until a test moves it. */
export class DrivenClock implements Clock {
  #now: Millis = 0;
  #timers: { at: Millis; task: () => void }[] = [];

  now = (): Millis => this.#now;
  monotonic = (): Millis => this.#now;

  /** How many tasks are still to come. */
  get pending(): number {
    return this.#timers.length;
  }

  after(delayMs: Millis, task: () => void): () => void {
    const timer = { at: this.#now + delayMs, task };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((other) => other !== timer);
    };
  }

  every(periodMs: Millis, task: () => void): () => void {
    let cancel = (): void => {};
    const again = (): void => {
      cancel = this.after(periodMs, again);
      task();
    };
    cancel = this.after(periodMs, again);
    return () => cancel();
  }

  /**
   * Time goes by and nothing runs, as while a process stands still: what has fallen due meanwhile runs
   * afterwards.
   */
  stand(byMs: Millis): void {
    this.#now += byMs;
    for (const timer of this.#timers) timer.at = Math.max(timer.at, this.#now);
  }

  /** Moves time on and runs what falls due, in its order; what that sets off has run when this resolves. */
  async advance(byMs: Millis): Promise<void> {
    const until = this.#now + byMs;
    await settled();
    for (let due = this.#next(until); due; due = this.#next(until)) {
      this.#now = due.at;
      due.task();
      await settled();
    }
    this.#now = until;
    await settled();
  }

  #next(until: Millis): { at: Millis; task: () => void } | undefined {
    const due = this.#timers.filter(({ at }) => at <= until).toSorted((one, other) => one.at - other.at)[0];
    this.#timers = this.#timers.filter((timer) => timer !== due);
    return due;
  }
}

/** Lets promises that can go on do so. */
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
