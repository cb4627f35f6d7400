import { readFileSync } from "node:fs";

/**
 * Time on a processor of the thread that the event loop runs in, which a busy machine does not make longer.
 */
const usedMs = (): number =>
  Number(readFileSync(`/proc/self/task/${process.pid}/schedstat`, "utf8").split(" ")[0]) / 1e6;

/** How long the event loop, which is the gateway's too, stood still at most while the work was done. */
async function longestStallMs(work: () => Promise<unknown>): Promise<number> {
  let [longest, last, isOver] = [0, usedMs(), false];
  const look = (): void => {
    const now = usedMs();
    longest = Math.max(longest, now - last);
    last = now;
    // As soon as the loop is free again, but not all the time: looking without a pause would use a processor.
    if (!isOver) setTimeout(look, 1);
  };
  look();
  await work();
  isOver = true;
  return longest;
}

/** JSON of 8 MiB that is more work than most: so many empty objects. */
const reference = `[${"{},".repeat(2 ** 23 / 3)}{}]`;

function parsingMs(): number {
  const startedMs = usedMs();
  JSON.parse(reference);
  return usedMs() - startedMs;
}
let unitMs: number | undefined;

/**
 * How long the event loop stood still at most, as a share of what `JSON.parse` takes here for 8 MiB of
 * empty objects, which is 0.25 s of a fast machine and 1.5 s of a slow one. The least of a few: garbage
 * collection, or a machine whose processors others use as well, may fall into one.
 */
export async function usualStall(work: () => Promise<unknown>, bearable: number): Promise<number> {
  unitMs ??= Math.min(...Array.from({ length: 3 }, parsingMs));
  let least = Infinity;
  for (let tried = 0; tried < 5 && least >= bearable; tried += 1)
    least = Math.min(least, (await longestStallMs(work)) / unitMs);
  return least;
}
