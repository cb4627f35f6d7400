import { setMaxListeners } from "node:events";
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

/** Waits for `work` until the signal aborts; then throws its reason and leaves the work to its own end. */
export async function untilAborted<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  let stop = (): void => {};
  const aborted = new Promise<never>((_, reject) => {
    stop = () => reject(signal.reason as Error);
    if (signal.aborted) stop();
    signal.addEventListener("abort", stop);
  });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener("abort", stop);
  }
}

/**
 * Aborts the controller with the first of the signals, for its reason, until the function that it gives is
 * called. Nothing stays with signals that live on then, unlike with `AbortSignal.any` (Node.js 20.20: 1.3 kB
 * for each that has a listener and never aborts).
 */
export function abortWith(controller: AbortController, signals: readonly AbortSignal[]): () => void {
  const unfollow = signals.map((signal) => {
    const abort = (): void => controller.abort(signal.reason);
    if (signal.aborted) abort();
    // Node.js warns of more than 10, and there are as many as what is under way.
    setMaxListeners(0, signal);
    signal.addEventListener("abort", abort, { once: true });
    return () => signal.removeEventListener("abort", abort);
  });
  return () => {
    for (const each of unfollow) each();
  };
}
