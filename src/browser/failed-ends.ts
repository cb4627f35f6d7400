import type { Clock, Millis } from "../base/clock.js";
import { type Log, textOf } from "../base/log.js";

const againMs: Millis = 5_000;

/** Ends of browsers that have failed, tried again every 5 s until they succeed or the host is closed. */
export class FailedEnds {
  readonly #ends = new Set<() => Promise<void>>();
  #stop: (() => void) | undefined;
  #trying: Promise<void> | undefined;

  constructor(private readonly around: { readonly clock: Clock; readonly log: Log }) {}

  /** `end` may be called any number of times. */
  add(end: () => Promise<void>): void {
    this.#ends.add(end);
    this.#stop ??= this.around.clock.every(againMs, () => void this.#tryAll());
  }

  /** Tries once more; throws where something is left. */
  async close(): Promise<void> {
    await this.#tryAll();
    this.#stop?.();
    if (this.#ends.size > 0) throw new Error(`${this.#ends.size} browsers could not be ended`);
  }

  #tryAll(): Promise<void> {
    this.#trying ??= Promise.all([...this.#ends].map((end) => this.#try(end))).then(() => {
      this.#trying = undefined;
      if (this.#ends.size > 0) return;
      this.#stop?.();
      this.#stop = undefined;
    });
    return this.#trying;
  }

  async #try(end: () => Promise<void>): Promise<void> {
    try {
      await end();
      this.#ends.delete(end);
    } catch (error) {
      this.around.log.warn({ error: textOf(error) }, "browser not ended yet");
    }
  }
}
