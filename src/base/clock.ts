/**
 * Milliseconds since the epoch as Redis tells them, or of a monotonic clock; the name of the field says
 * which.
 */
export type Millis = number;

/** An instant as replies and records tell it (RFC 3339): `2026-01-31T08:15:30.000Z`. */
export const timestampOf = (at: Millis): string => new Date(at).toISOString();

/** Where all code reads the time. Code that waits is given one, so that a test can drive it. */
export interface Clock {
  /** Wall clock, ms since the epoch. Never decides who gets a browser: Redis's `TIME` does. */
  now(): Millis;
  /** Monotonic, ms from an arbitrary start: for measuring how long something lasted. */
  monotonic(): Millis;
  /** Runs `task` once after `delayMs`; the result cancels it. */
  after(delayMs: Millis, task: () => void): () => void;
  /** Runs `task` every `periodMs`; the result stops it. */
  every(periodMs: Millis, task: () => void): () => void;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after(delayMs, task) {
    const timer = setTimeout(task, delayMs);
    return () => clearTimeout(timer);
  },
  every(periodMs, task) {
    const timer = setInterval(task, periodMs);
    return () => clearInterval(timer);
  },
};

/** Resolves after `delayMs`, or at once when `signal` aborts. */
export const pause = (clock: Clock, delayMs: Millis, signal?: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const finish = (): void => {
      cancel();
      signal?.removeEventListener("abort", finish);
      resolve();
    };
    const cancel = clock.after(delayMs, finish);
    if (signal?.aborted) finish();
    else signal?.addEventListener("abort", finish);
  });
