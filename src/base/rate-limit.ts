import type { Clock } from "./clock.js";

interface RateLimitParts {
  readonly clock: Clock;
  /** The limit of one key. */
  readonly perSecond: number;
  /** Called once a second for each key that came more often. */
  onSuppressed(key: string, count: number): void;
}

const windowMs = 1000;

/**
 * Admits so many events of each key in a second and counts the others. Keys are forgotten with their second.
 */
export class RateLimit {
  #counts = new Map<string, number>();
  #cancel: (() => void) | undefined;

  constructor(private readonly parts: RateLimitParts) {}

  admits(key: string): boolean {
    this.#cancel ??= this.parts.clock.after(windowMs, () => this.flush());
    const count = (this.#counts.get(key) ?? 0) + 1;
    this.#counts.set(key, count);
    return count <= this.parts.perSecond;
  }

  /** Tells what was suppressed; the next event begins a second of its own. */
  flush(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    const counts = this.#counts;
    this.#counts = new Map();
    const { perSecond, onSuppressed } = this.parts;
    for (const [key, count] of counts) {
      if (count > perSecond) onSuppressed(key, count - perSecond);
    }
  }
}
