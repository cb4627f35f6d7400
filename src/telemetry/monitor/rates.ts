import type { Clock, Millis } from "../../base/clock.js";

/**
 * What of a browser's messages is read of each kind: so much at once, and so much a second in the long run.
 */
const usualRates = {
  messages: { most: 3000, perSecond: 750 },
  bytes: { most: 4 * 1024 * 1024, perSecond: 1024 * 1024 },
};
export type Rates = typeof usualRates;

const periodMs: Millis = 1000;

/** What was left out within a second. */
export interface DroppedMessages {
  readonly count: number;
  readonly byMethod: Readonly<Record<string, number>>;
}

interface RatesParts {
  readonly clock: Pick<Clock, "monotonic" | "after">;
  readonly rates?: Rates | undefined;
  /**
   * Called at most once a second, where something was lost. Where it gives false that was not told, and is
   * told with what is lost next; `isLast`: there will be no next.
   */
  told(lost: DroppedMessages, isLast: boolean): boolean;
}

/**
 * Decides before a message is read whether it is. Each kind has an allowance of its own, so that a page whose
 * console is flooded does not hide its navigations.
 */
export class MessageRates {
  readonly #allowances = new Map<string, Allowance>();
  #lost = new Map<string, number>();
  #cancel: (() => void) | undefined;

  constructor(private readonly parts: RatesParts) {}

  takes(kind: string, bytes: number): boolean {
    const { clock, rates = usualRates } = this.parts;
    let allowance = this.#allowances.get(kind);
    if (!allowance) this.#allowances.set(kind, (allowance = new Allowance(clock, rates)));
    return allowance.take(bytes);
  }

  lose(method: string): void {
    this.#lost.set(method, (this.#lost.get(method) ?? 0) + 1);
    this.#cancel ??= this.parts.clock.after(periodMs, () => this.#tell());
  }

  /** Tells what was not told yet. */
  close(): void {
    this.#cancel?.();
    if (this.#cancel) this.#tell(true);
  }

  #tell(isLast = false): void {
    this.#cancel = undefined;
    const byMethod = Object.fromEntries(this.#lost);
    const count = [...this.#lost.values()].reduce((sum, each) => sum + each, 0);
    if (this.parts.told({ count, byMethod }, isLast) || isLast) this.#lost = new Map();
    else this.#cancel = this.parts.clock.after(periodMs, () => this.#tell());
  }
}

class Allowance {
  #messages: number;
  #bytes: number;
  #at: Millis;

  constructor(
    private readonly clock: Pick<Clock, "monotonic">,
    private readonly rates: Rates,
  ) {
    this.#messages = rates.messages.most;
    this.#bytes = rates.bytes.most;
    this.#at = clock.monotonic();
  }

  take(bytes: number): boolean {
    this.#refill();
    if (this.#messages < 1 || this.#bytes < bytes) return false;
    this.#messages -= 1;
    this.#bytes -= bytes;
    return true;
  }

  #refill(): void {
    const { messages, bytes } = this.rates;
    const now = this.clock.monotonic();
    const seconds = (now - this.#at) / 1000;
    this.#at = now;
    this.#messages = Math.min(messages.most, this.#messages + seconds * messages.perSecond);
    this.#bytes = Math.min(bytes.most, this.#bytes + seconds * bytes.perSecond);
  }
}
