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

/** Node.js runs a timer at once that is set for longer (Node.js 20.20, `setTimeout`). */
const longestTimerMs: Millis = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after(delayMs, task) {
    let timer: NodeJS.Timeout;
    const arm = (leftMs: Millis): void => {
      const more = leftMs - longestTimerMs;
      timer = more > 0 ? setTimeout(() => arm(more), longestTimerMs) : setTimeout(task, leftMs);
    };
    arm(delayMs);
    return () => clearTimeout(timer);
  },
  every(periodMs, task) {
    if (periodMs > longestTimerMs) return repeat(periodMs, task);
    const timer = setInterval(task, periodMs);
    return () => clearInterval(timer);
  },
};

/** The same for periods that no timer of Node.js has. */
function repeat(periodMs: Millis, task: () => void): () => void {
  const arm = (): (() => void) =>
    systemClock.after(periodMs, () => {
      cancel = arm();
      task();
    });
  let cancel = arm();
  return () => cancel();
}

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
