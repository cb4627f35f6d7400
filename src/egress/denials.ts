import type { Clock, Millis } from "../base/clock.js";
import type { BrowserId } from "../base/ids.js";
import type { Log } from "../base/log.js";
import type { DeniedBy, TargetHost } from "./rules.js";

interface DenialParts {
  readonly browser: BrowserId;
  readonly clock: Clock;
  readonly log: Log;
}

const periodMs: Millis = 1000;

/**
 * What one browser was denied: the first at once, then at most one line a second, with how many by each rule
 * and one of their hosts.
 */
export class Denials {
  #counts: Partial<Record<DeniedBy, number>> = {};
  #sample: TargetHost | undefined;
  #cancel: (() => void) | undefined;

  constructor(private readonly parts: DenialParts) {}

  add(by: DeniedBy, target: TargetHost): void {
    this.#counts[by] = (this.#counts[by] ?? 0) + 1;
    this.#sample ??= target;
    if (!this.#cancel) this.#report();
  }

  /** Reports what was not reported yet. */
  close(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    if (this.#sample) this.#write(this.#sample);
  }

  #report(): void {
    this.#cancel = undefined;
    if (!this.#sample) return;
    this.#write(this.#sample);
    this.#cancel = this.parts.clock.after(periodMs, () => this.#report());
  }

  #write({ host, port }: TargetHost): void {
    const by = this.#counts;
    const count = Object.values(by).reduce((sum, more) => sum + more, 0);
    this.#counts = {};
    this.#sample = undefined;
    this.parts.log.info({ browser: this.parts.browser, count, by, host, port }, "egress denied");
  }
}
