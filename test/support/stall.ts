import { readFileSync } from "node:fs";

/**
 * Time on a processor of the thread that the event loop runs in, which a busy machine does not make longer.
 */
const usedMs = (): number =>
  Number(readFileSync(`/proc/self/task/${process.pid}/schedstat`, "utf8").split(" ")[0]) / 1e6;

/** How long the event loop, which is the gateway's too, stood still at most while the work was done. */
export async function longestStallMs(work: () => Promise<unknown>): Promise<number> {
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

/**
 * The least of a few: garbage collection, or a machine whose processors others use as well, may fall into
 * one.
 */
export async function usualStallMs(work: () => Promise<unknown>, bearableMs: number): Promise<number> {
  let least = await longestStallMs(work);
  for (let more = 0; more < 4 && least >= bearableMs; more += 1)
    least = Math.min(least, await longestStallMs(work));
  return least;
}
