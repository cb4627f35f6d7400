import { systemClock } from "../../../src/base/clock.js";
import { within } from "../../../src/base/deadline.js";

const limitMs = 120_000;
const stopping = new AbortController();
const stopped = new Promise<never>((_, reject) => {
  stopping.signal.addEventListener("abort", () => reject(new Error("stopped")));
});
stopped.catch(() => {});

/** Whatever is being measured fails at once, so that whoever has started something stops it. */
export const stopRuns = (): void => stopping.abort();

const watched = <Found>(work: Promise<Found>): Promise<Found> =>
  Promise.race([within(systemClock, { what: "one measurement", limitMs }, work), stopped]);

/**
 * What each of so many runs has found. One more goes before them, which warms everything up and is not
 * counted.
 */
export async function inRuns<Found>(
  runs: number,
  measure: (run: number) => Promise<Found>,
): Promise<Found[]> {
  await watched(measure(0));
  const found: Found[] = [];
  for (let run = 1; run <= runs; run += 1) found.push(await watched(measure(run)));
  return found;
}

/** One after the other. */
export async function inTurn<Item, Found>(
  items: readonly Item[],
  measure: (item: Item) => Promise<Found>,
): Promise<Found[]> {
  const found: Found[] = [];
  for (const item of items) found.push(await watched(measure(item)));
  return found;
}

export const times = (count: number): readonly number[] => Array.from({ length: count }, (_, place) => place);
