import { setTimeout as sleep } from "node:timers/promises";

/** The error that a command of CDP was answered with. Where a page is just going it is another one soon. */
export class CdpFailure extends Error {}

/**
 * Polls until `holds` gives something truthy; throws after the limit, and at once what is no `CdpFailure`.
 */
export async function until<T>(
  what: string,
  holds: () => Promise<T> | T,
  limitMs = 60_000,
): Promise<NonNullable<T>> {
  const deadline = performance.now() + limitMs;
  for (;;) {
    const found = await look(holds);
    if (found.value) return found.value;
    if (performance.now() > deadline) throw new Error(`${what}: not within ${limitMs} ms${found.why}`);
    await sleep(10);
  }
}

async function look<T>(holds: () => Promise<T> | T): Promise<{ readonly value?: T; readonly why: string }> {
  try {
    return { value: await holds(), why: "" };
  } catch (error) {
    if (error instanceof CdpFailure) return { why: `: ${error.message}` };
    throw error;
  }
}
