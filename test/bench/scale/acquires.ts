import { pause, systemClock } from "../../../src/base/clock.js";
import {
  type BrowserId,
  type ClaimId,
  type ControlId,
  newLeaseId,
  type Partition,
  type PoolId,
} from "../../../src/base/ids.js";
import type { TestRedis } from "../../support/store/redis.js";
import { request, type StoreBed } from "../../support/store/store-bed.js";

const control = "controlscale" as ControlId;

/** Does what nodes do whose browsers were given back: says that nobody uses them any more. */
export async function servedFences(
  server: TestRedis,
  { reports }: StoreBed,
): Promise<{ close(): Promise<void> }> {
  const listener = server.client();
  await listener.psubscribe("remuda:node:*");
  listener.on("pmessage", (_, __, text: string) => {
    const { kind, browser, claim } = JSON.parse(text) as { kind: string; browser: BrowserId; claim: ClaimId };
    if (kind === "fence") void reports.freed(browser, claim).catch(() => {});
  });
  return {
    async close() {
      listener.disconnect();
    },
  };
}

/** So that it is the fleet that keeps Redis busy, and not this. */
const restMs = 2;

/** Lends of the first pool and of the second in turn, and gives back; how long each acquire took, in ms. */
export async function lendOften(
  bed: StoreBed,
  [large, small]: readonly Partition[],
  most: { readonly count: number; readonly over?: AbortSignal },
): Promise<{ large: readonly number[]; small: readonly number[] }> {
  const took: { large: number[]; small: number[] } = { large: [], small: [] };
  if (large === undefined || small === undefined) return took;
  for (let done = 0; done < most.count && !most.over?.aborted; done += 1) {
    const [largeMs, smallMs] = [await lendOnce(bed, large), await lendOnce(bed, small)];
    if (largeMs !== undefined && smallMs !== undefined) {
      took.large.push(largeMs);
      took.small.push(smallMs);
    }
    await pause(systemClock, restMs);
  }
  return took;
}

async function lendOnce({ poolStore }: StoreBed, partition: Partition): Promise<number | undefined> {
  const id = request();
  const lease = newLeaseId();
  const waiter = { id, lease, control, connection: id };
  const pool = (await poolStore.findTerms(partition))?.id as PoolId;
  const began = systemClock.monotonic();
  const reply = await poolStore.acquire(partition, { pool, waiter, mayWait: false });
  const tookMs = systemClock.monotonic() - began;
  if (reply.kind !== "granted") return undefined;
  await poolStore.confirm(partition, [lease]);
  await poolStore.release(partition, {
    browser: reply.browser.id,
    lease,
    reuse: true,
    why: "released",
    isRetry: false,
    request: request(),
  });
  return tookMs;
}
