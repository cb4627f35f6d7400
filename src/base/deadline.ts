import type { Clock, Millis } from "./clock.js";

export class TimeLimitReached extends Error {
  constructor(
    readonly what: string,
    readonly limitMs: Millis,
  ) {
    super(`${what} took longer than ${limitMs} ms`);
    this.name = "TimeLimitReached";
  }
}

/** Waits for `work` at most `limitMs`; then throws `TimeLimitReached` and leaves the work to its own end. */
export async function within<T>(
  clock: Clock,
  limit: { what: string; limitMs: Millis },
  work: Promise<T>,
): Promise<T> {
  let cancel = (): void => {};
  const late = new Promise<never>((_, reject) => {
    cancel = clock.after(limit.limitMs, () => reject(new TimeLimitReached(limit.what, limit.limitMs)));
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    cancel();
  }
}
