import type { Clock, Millis } from "../base/clock.js";
import type { FairTurn } from "../base/fair-turns.js";

const longBytes = 16 * 1024;
/** What it takes to read 64 KiB, which is as much as comes at once, and to unmask them. */
const chunkMs: Millis = 0.15;

interface Parts {
  readonly turn: FairTurn;
  readonly clock: Pick<Clock, "monotonic">;
  /** Every `wait` is followed by one `proceed`. */
  wait(): void;
  proceed(): void;
}

/**
 * Lets a client send long messages no faster than its browser's turn allows. Node.js reads two megabytes at
 * once where they are there, before it looks at any other socket.
 */
export class ReadPace {
  #chunk: { readonly bytes: number; readonly since: Millis } | undefined;
  /** The part of the next long chunk that the turn has counted already. */
  #paidMs: Millis = 0;

  constructor(private readonly parts: Parts) {}

  /** Has to be called before a chunk is read. */
  begin({ length }: Buffer): void {
    this.#chunk = length < longBytes ? undefined : { bytes: length, since: this.parts.clock.monotonic() };
  }

  /** Has to be called when it was read; after it the client may have to wait. */
  end(): void {
    if (!this.#chunk) return;
    const { turn, clock } = this.parts;
    const { bytes, since } = this.#chunk;
    this.#chunk = undefined;
    turn.spend(Math.max(0, clock.monotonic() - since - this.#paidMs), bytes);
    this.#paidMs = 0;
    if (turn.isOver) this.#waitForTurn();
  }

  #waitForTurn(): void {
    this.parts.wait();
    this.parts.turn.wait(() => {
      this.#paidMs = chunkMs;
      this.parts.proceed();
    }, chunkMs);
  }
}
