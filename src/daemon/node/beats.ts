import type { Clock, Millis } from "../../base/clock.js";
import { within } from "../../base/deadline.js";
import { shareRuns } from "../../base/concurrently.js";

const lastBeatMs: Millis = 2000;

/** The beats of a node, in turn and out of it. While one waits for Redis at most one more is to follow. */
export class Beats {
  #isClosed = false;
  #stop = (): void => {};
  #last: Promise<void> = Promise.resolve();
  readonly #beat: () => Promise<void>;

  constructor(
    private readonly clock: Clock,
    /** Never rejects. */
    beat: () => Promise<void>,
  ) {
    this.#beat = shareRuns(async () => {
      if (!this.#isClosed) await beat();
    });
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  start(periodMs: Millis): void {
    this.#stop = this.clock.every(periodMs, () => this.soon());
  }

  soon(): void {
    if (!this.#isClosed) this.#last = this.#beat();
  }

  /** Waits for what has been sent, which would bring back a node that is forgotten; a sick Redis for 2 s. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#stop();
    const limit = { what: "the last beat", limitMs: lastBeatMs };
    await within(this.clock, limit, this.#last).catch(() => {});
  }
}
