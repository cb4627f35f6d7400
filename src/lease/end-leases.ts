import type { Millis } from "../base/clock.js";
import { attemptEach } from "../base/concurrently.js";
import { newRequestId, type Partition } from "../base/ids.js";
import type { EndedKeys } from "../pool/ports/ended-keys.js";
import type { PoolStore } from "../pool/ports/pool-store.js";
import type { Projects } from "../pool/ports/project-store.js";

interface EndLeasesPorts {
  readonly keys: EndedKeys;
  readonly poolStore: Pick<PoolStore, "browsers" | "release">;
  readonly projects: Pick<Projects, "partitions">;
  /** False: leases outlive the keys that they were taken with. */
  readonly isWanted: boolean;
}

const partitionsAtOnce = 16;
/**
 * A key is looked for so long after its end: a request that was let in just before may be granted a lease
 * until its connection is cut, and one under an idempotency key is kept a while longer.
 */
const lateMs: Millis = 30_000;

/**
 * Ends the leases of API keys that have ended, as if their holders had released them. Nothing is read of
 * partitions while no key has ended lately; what fails is done by the next look, also by another control.
 */
export function makeEndLeases({ keys, poolStore, projects, isWanted }: EndLeasesPorts): () => Promise<void> {
  const endIn = async (partition: Partition, ids: ReadonlySet<string>): Promise<void> => {
    const { browsers } = await poolStore.browsers(partition);
    for (const browser of browsers) {
      if (browser.state !== "leased" || !ids.has(browser.lease.holder ?? "")) continue;
      await poolStore.release(partition, {
        browser: browser.id,
        lease: browser.lease.id,
        reuse: true,
        why: "released",
        isRetry: false,
        request: newRequestId(),
      });
    }
  };
  return async () => {
    const { ids, at } = await keys.ended();
    if (ids.size === 0) return;
    if (isWanted) {
      const partitions = await projects.partitions();
      await attemptEach(partitions, partitionsAtOnce, (partition) => endIn(partition, ids));
    }
    await keys.forget(isWanted ? at - lateMs : at);
  };
}
