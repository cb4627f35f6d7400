import { type Clock, type Millis, systemClock } from "./clock.js";

/** So that others are served within a few of these. */
const turnMs: Millis = 0.5;
/** Of one round of the event loop, all whose turn was over together; whoever has just come is served besides. */
const roundMs: Millis = 1;

interface Waiting {
  readonly next: () => void;
  readonly costMs: Millis;
}

/**
 * How much of one round of the event loop somebody has used: the clients of one lease, or one browser's pipe. When that is
 * enough the rest waits, in the order in which it came, until the turn comes again.
 */
export class Turn {
  readonly #waiting: Waiting[] = [];
  #usedMs: Millis = 0;

  constructor(private readonly turns: Pick<Turns, "used" | "queue">, private readonly clock: Pick<Clock, "monotonic">) {}

  get isOver(): boolean {
    return this.#usedMs >= turnMs || this.isWaiting;
  }

  get isWaiting(): boolean {
    return this.#waiting.length > 0;
  }

  /** `leastMs` counts where the work takes less by itself than what follows from it. */
  run(work: () => void, leastMs: Millis = 0): void {
    const startedAt = this.clock.monotonic();
    try {
      work();
    } finally {
      this.#usedMs += Math.max(leastMs, this.clock.monotonic() - startedAt);
      this.turns.used(this);
    }
  }

  /** Once, when the turn has come again. `costMs`: what it will take of the turn after it has returned. */
  wait(next: () => void, costMs: Millis = 0): void {
    this.#waiting.push({ next, costMs });
    this.turns.queue(this);
  }

  /** For `Turns`: another round has begun. */
  renew(): void {
    this.#usedMs = 0;
  }

  /** For `Turns`: what waits, as far as one turn goes; gives what it took. */
  proceed(): Millis {
    this.#usedMs = 0;
    for (let left = this.#waiting.length; left > 0 && this.#usedMs < turnMs; left -= 1) {
      const waiting = this.#waiting.shift();
      this.#usedMs += waiting?.costMs ?? 0;
      waiting?.next();
    }
    return this.#usedMs;
  }
}

/** Whoever waits is served one after the other, as many in a round of the event loop as it has room for, and one at least. */
export class Turns {
  readonly #queue = new Set<Turn>();
  #used = new Set<Turn>();
  #isCounting = false;

  constructor(private readonly clock: Pick<Clock, "monotonic">) {}

  open(): Turn {
    return new Turn(this, this.clock);
  }

  /** For its turns. */
  used(turn: Turn): void {
    this.#used.add(turn);
    this.#count();
  }

  /** For its turns: at its end, unless it waits there already. */
  queue(turn: Turn): void {
    this.#queue.add(turn);
    this.#count();
  }

  #count(): void {
    if (this.#isCounting) return;
    this.#isCounting = true;
    setImmediate(() => {
      this.#isCounting = false;
      const used = this.#used;
      this.#used = new Set();
      for (const turn of used) turn.renew();
      this.#proceed();
    });
  }

  #proceed(): void {
    let usedMs = 0;
    // Those that come back while this lasts are for the next round.
    let left = this.#queue.size;
    for (const turn of this.#queue) {
      if (left === 0 || usedMs >= roundMs) break;
      left -= 1;
      this.#queue.delete(turn);
      usedMs += turn.proceed();
      if (turn.isWaiting) this.#queue.add(turn);
    }
    if (this.#queue.size > 0) this.#count();
  }
}

/** Of this process, which has one event loop. */
export const turns = new Turns(systemClock);
