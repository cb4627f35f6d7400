import type { Clock, Millis } from "../base/clock.js";

/** A process that is merely busy is late by less. */
const looksPerLimit = 8;

/**
 * Tells whether this process stood still for so long that the node may have been taken for lost: its browsers
 * may be others' then, whatever it remembers. What clients and browsers say to each other waits until that is
 * settled.
 */
export class Standstill {
  #ranAt: Millis;
  #doubt: { readonly over: Promise<void>; readonly settle: () => void } | undefined;

  constructor(
    private readonly clock: Clock,
    private readonly limitMs: Millis,
  ) {
    this.#ranAt = clock.monotonic();
  }

  /** Watches from now on; the result stops that. */
  start(): () => void {
    this.#ranAt = this.clock.monotonic();
    return this.clock.every(this.limitMs / looksPerLimit, () => this.#look());
  }

  /** Settles when it is known what this node has still; undefined where nothing is in doubt. */
  get doubt(): Promise<void> | undefined {
    // Sockets may be read before the timer has told how late it is.
    if (this.clock.monotonic() - this.#ranAt > this.limitMs) this.#look();
    return this.#doubt?.over;
  }

  /** Redis has said what this node has still, and what it has no more is ended. */
  settle(): void {
    this.#doubt?.settle();
    this.#doubt = undefined;
  }

  #look(): void {
    const now = this.clock.monotonic();
    if (now - this.#ranAt > this.limitMs && !this.#doubt) {
      let settle = (): void => {};
      const over = new Promise<void>((resolve) => (settle = resolve));
      this.#doubt = { over, settle };
    }
    this.#ranAt = now;
  }
}
