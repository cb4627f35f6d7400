import { setTimeout as sleep } from "node:timers/promises";
import { systemClock } from "../../../src/base/clock.js";
import { TimeLimitReached, within } from "../../../src/base/deadline.js";

/** The error that a command of CDP was answered with. Where a page is just going it is another one soon. */
export class CdpFailure extends Error {}

/**
 * Polls until `holds` gives something truthy; throws after the limit, and at once what is no `CdpFailure`.
 * A look that is not answered is followed by another.
 */
export async function until<T>(
  what: string,
  holds: () => Promise<T> | T,
  limitMs = 60_000,
): Promise<NonNullable<T>> {
  const start = performance.now();
  for (;;) {
    const found = await look(holds, lookLimitMs(limitMs));
    if (found.value) return found.value;
    const waitedMs = performance.now() - start;
    if (waitedMs > limitMs) throw new Error(`${what}: not within ${limitMs} ms${found.why}`);
    await sleep(pauseMs(waitedMs));
  }
}

/** A look at a daemon takes 5 ms of a processor, so what lasts is looked at less often. */
const pauseMs = (waitedMs: number): number => Math.min(50, Math.max(10, waitedMs / 20));

/** Shorter than a test may take, so that one which hangs tells for what it has waited. */
const answerLimitMs = 100_000;

/**
 * Says so where an answer takes too long that may still come. It goes on waiting: some are asked for that
 * nobody waits for.
 */
export async function heard<T>(
  what: string,
  answer: Promise<T>,
  mayCome: () => boolean = () => true,
): Promise<T> {
  const tell = (): void => {
    if (mayCome()) console.error(`no answer in ${answerLimitMs} ms: ${what}`);
  };
  const late = setTimeout(tell, answerLimitMs);
  late.unref();
  try {
    return await answer;
  } finally {
    clearTimeout(late);
  }
}

/** Chromium 156 leaves a command without an answer now and then whose document goes meanwhile. */
const lookLimitMs = (limitMs: number): number => Math.max(5000, limitMs / 3);

async function look<T>(
  holds: () => Promise<T> | T,
  limitMs: number,
): Promise<{ readonly value?: T; readonly why: string }> {
  try {
    const limit = { what: "a look", limitMs };
    return { value: await within(systemClock, limit, Promise.resolve(holds())), why: "" };
  } catch (error) {
    if (error instanceof CdpFailure || error instanceof TimeLimitReached)
      return { why: `: ${error.message}` };
    throw error;
  }
}
