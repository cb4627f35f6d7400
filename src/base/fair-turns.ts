import { type Clock, type Millis, systemClock } from "./clock.js";

/** A turn is short so that others are served within a few of them. */
const turnMs: Millis = 0.5;
/**
 * How long all who wait for their turn may work in one round of the event loop; whoever has just come is
 * served besides.
 */
const roundMs: Millis = 1;
/** How much somebody may use at once after a while of less; then a share of the event loop. */
const burstMs: Millis = 300;
/** One piece of work may use more than is left; no more than this is then paid back. */
const mostDebtMs: Millis = 250;
/** How much may be read at once after a while of less: two messages of the usual limit. */
const burstBytes = 32 * 1024 * 1024;

interface TurnLimits {
  /** The part of the event loop that is given where it is used all the time. */
  readonly share?: number;
  /**
   * What may be read in the long run; left out: no limit. The more buffers come and are held, the more often
   * V8 marks all of its heap, which stops everybody for 5 to 15 ms (Node.js 20.20, `PerformanceObserver` of
   * "gc"; heap-limits.ts says what it allows between).
   */
  readonly bytesPerSecond?: number | undefined;
}

interface CreditLimits {
  readonly most: number;
  readonly perMs: number;
  readonly mostDebt?: number;
}

/** What may be spent: so much at once, and more as time goes by. */
class Credit {
  #left: number;
  #at: Millis;

  constructor(
    private readonly clock: Pick<Clock, "monotonic">,
    private readonly limits: CreditLimits,
  ) {
    this.#left = limits.most;
    this.#at = clock.monotonic();
  }

  get readyInMs(): Millis {
    this.#refill();
    return this.#left >= 0 ? 0 : -this.#left / this.limits.perMs;
  }

  get isFull(): boolean {
    this.#refill();
    return this.#left === this.limits.most;
  }

  spend(amount: number): void {
    this.#refill();
    this.#left = Math.max(-(this.limits.mostDebt ?? Infinity), this.#left - amount);
  }

  #refill(): void {
    const now = this.clock.monotonic();
    this.#left = Math.min(this.limits.most, this.#left + (now - this.#at) * this.limits.perMs);
    this.#at = now;
  }
}

interface WaitingTurn {
  readonly next: () => void;
  readonly costMs: Millis;
}

/**
 * How much of one round of the event loop somebody has used: the clients of one lease, or one browser's pipe.
 * When that is enough the rest waits, in the order in which it came, until the turn comes again. Whoever uses
 * it all the time has a share of the event loop, so that it leaves processor time to others also where nobody
 * else waits.
 */
export class FairTurn {
  readonly #waiting: WaitingTurn[] = [];
  readonly #now: () => Millis;
  #usedMs: Millis = 0;
  readonly #time: Credit;
  readonly #bytes: Credit | undefined;

  constructor(
    private readonly turns: Pick<FairTurns, "used" | "queue">,
    clock: Pick<Clock, "monotonic">,
    { share = 0.125, bytesPerSecond }: TurnLimits = {},
  ) {
    this.#time = new Credit(clock, { most: burstMs, perMs: share, mostDebt: mostDebtMs });
    this.#bytes =
      bytesPerSecond === undefined
        ? undefined
        : new Credit(clock, { most: burstBytes, perMs: bytesPerSecond / 1000 });
    this.#now = () => clock.monotonic();
  }

  /** How much of the present round was used; it begins anew between two rounds. */
  get usedMs(): Millis {
    return this.#usedMs;
  }

  get isOver(): boolean {
    return this.#usedMs >= turnMs || this.isWaiting || this.readyInMs > 0;
  }

  /** How long `FairTurns` should leave it waiting; 0 where it may go on as soon as there is room. */
  get readyInMs(): Millis {
    return Math.max(this.#time.readyInMs, this.#bytes?.readyInMs ?? 0);
  }

  /** All that may be used at once is there, as in a turn that was just opened. */
  get isRested(): boolean {
    return this.#time.isFull && (this.#bytes?.isFull ?? true);
  }

  get isWaiting(): boolean {
    return this.#waiting.length > 0;
  }

  /** `leastMs` counts where the work takes less by itself than what follows from it. */
  run<Result>(
    work: () => Result,
    { leastMs = 0, bytes = 0 }: { leastMs?: Millis; bytes?: number } = {},
  ): Result {
    const startedAt = this.#now();
    try {
      return work();
    } finally {
      this.spend(Math.max(leastMs, this.#now() - startedAt), bytes);
    }
  }

  /** Counts what was done elsewhere, and what was read. */
  spend(tookMs: Millis, bytes = 0): void {
    this.#time.spend(tookMs);
    this.#bytes?.spend(bytes);
    this.#usedMs += tookMs;
    this.turns.used(this);
  }

  /**
   * Calls `next` once, when the turn has come again. `costMs` is what `next` starts that still runs after it
   * has returned.
   */
  wait(next: () => void, costMs: Millis = 0): void {
    this.#waiting.push({ next, costMs });
    this.turns.queue(this);
  }

  /** Resolves when something is left of the turn; undefined where the caller may go on at once. */
  come(): Promise<void> | undefined {
    return this.isOver ? new Promise((resolve) => this.wait(resolve)) : undefined;
  }

  /** `FairTurns` calls this when another round of the event loop has begun. */
  renew(): void {
    this.#usedMs = 0;
  }

  /** `FairTurns` calls this to run what waits, as far as one turn allows. Returns the milliseconds used. */
  proceed(): Millis {
    this.#usedMs = 0;
    for (let left = this.#waiting.length; left > 0 && this.#usedMs < turnMs; left -= 1) {
      const waiting = this.#waiting.shift();
      if (waiting && waiting.costMs > 0) this.spend(waiting.costMs);
      waiting?.next();
    }
    return this.#usedMs;
  }
}

/**
 * Lets those who wait go on one after the other: as many in a round of the event loop as it has room for, and
 * at least one.
 */
export class FairTurns {
  readonly #queue = new Set<FairTurn>();
  #used = new Set<FairTurn>();
  #isCounting = false;
  #timer: { readonly at: Millis; readonly cancel: () => void } | undefined;

  constructor(private readonly clock: Pick<Clock, "monotonic" | "after">) {}

  open(limits: TurnLimits = {}): FairTurn {
    return new FairTurn(this, this.clock, limits);
  }

  /** A turn calls this when it has used time of the round. */
  used(turn: FairTurn): void {
    this.#used.add(turn);
    this.#count();
  }

  /** A turn calls this to be put at the end of the line, unless it is in it already. */
  queue(turn: FairTurn): void {
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
    // A turn that comes back while this lasts belongs to the next round.
    for (const turn of [...this.#queue].filter(({ readyInMs }) => readyInMs === 0)) {
      if (usedMs >= roundMs) break;
      this.#queue.delete(turn);
      usedMs += turn.proceed();
      if (turn.isWaiting) this.#queue.add(turn);
    }
    if (this.#queue.size > 0) this.#goOn(Math.min(...[...this.#queue].map(({ readyInMs }) => readyInMs)));
  }

  #goOn(inMs: Millis): void {
    if (inMs === 0) return this.#count();
    const at = this.clock.monotonic() + inMs;
    if (this.#timer && this.#timer.at <= at) return;
    // One that came first may have to wait longer than one that came later.
    this.#timer?.cancel();
    const cancel = this.clock.after(Math.ceil(inMs), () => {
      this.#timer = undefined;
      this.#count();
    });
    this.#timer = { at, cancel };
  }
}

/** The turns of this process, which has one event loop. */
export const turns = new FairTurns(systemClock);
