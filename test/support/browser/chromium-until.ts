import { setTimeout as sleep } from "node:timers/promises";

/** Polls until `holds` gives something truthy; throws after the limit. */
export async function until<T>(
  what: string,
  holds: () => Promise<T> | T,
  limitMs = 20_000,
): Promise<NonNullable<T>> {
  const deadline = performance.now() + limitMs;
  for (;;) {
    const value = await holds();
    if (value) return value;
    if (performance.now() > deadline) throw new Error(`${what}: not within ${limitMs} ms`);
    await sleep(10);
  }
}
