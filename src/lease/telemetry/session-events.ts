import { abortWith } from "../../base/deadline.js";
import type { Clock } from "../../base/clock.js";
import { done, refusal, type Refusal } from "../../base/errors.js";
import { type BrowserId, findBrowserIdIn, type LeaseId, partitionOf } from "../../base/ids.js";
import { findSession, findTombstone } from "../../pool/lookup.js";
import type { PoolStore } from "../../pool/ports/pool-store.js";
import type { ProjectStore } from "../../pool/ports/project-store.js";
import type { EventStore } from "../../telemetry/ports.js";
import { type EventOperations, followStream, readHistory } from "../../telemetry/read-events.js";
import type { ReaderSeats } from "../../telemetry/reader-seats.js";

interface SessionEventsPorts {
  readonly poolStore: PoolStore;
  readonly projects: ProjectStore;
  readonly events: EventStore;
  /** The same, for readers, who take turns. */
  readonly reads: Pick<EventStore, "read" | "last">;
  /** How many may read the events of one session at once. */
  readonly streams: ReaderSeats;
  readonly pages: ReaderSeats;
  readonly clock: Clock;
  /** Aborts when the daemon stops: streams end then. */
  readonly stopping: AbortSignal;
}

/** The events of a session; the lease that a caller names may be over, if they are to be read as history. */
export const makeEventOperations = (ports: SessionEventsPorts): EventOperations => ({
  async history(ref, query, caller) {
    const found = await findStored(ports, ref, caller.lease);
    if (found.kind === "refused") return found;
    const releaseSeat = ports.pages.take(found.value.browser);
    if (!releaseSeat) return refusal("too_many_requests", { retryAfterSeconds: 1 });
    try {
      const { lease, browser } = found.value;
      if (lease === undefined) return done({ events: [], next: 0, hasMore: false });
      return done(await readHistory(ports.reads, { browser, lease }, query));
    } finally {
      releaseSeat();
    }
  },

  async stream(ref, ask, caller) {
    const session = await findSession(ports, ref);
    if (!session) return refusal("browser_not_found");
    const { id: browser, lease } = session.browser;
    if (caller.lease && caller.lease !== lease.id) return refusal("lease_superseded");
    const releaseSeat = ports.streams.take(browser);
    if (!releaseSeat)
      return refusal("too_many_requests", {
        retryAfterSeconds: 1,
        message: "As many streams of this session, or at this daemon, are open as may be",
      });
    const over = new AbortController();
    const unfollow = abortWith(over, [caller.gone, ports.stopping]);
    const end = (): void => {
      unfollow();
      releaseSeat();
    };
    over.signal.addEventListener("abort", end, { once: true });
    // A caller who left while the session was looked for never asks for the first event.
    if (over.signal.aborted) end();
    const isHeld = async (): Promise<boolean> =>
      (await ports.poolStore.heldAmong(partitionOf(browser), [lease.id])).length > 0;
    const parts = { store: ports.reads, clock: ports.clock, isHeld, until: over.signal };
    return done(seated(followStream(parts, { browser, lease: lease.id }, ask), end));
  },
});

/** Passes the items on, and calls `end` when they end, however that happens. */
async function* seated<Item>(items: AsyncGenerator<Item, void>, end: () => void): AsyncGenerator<Item, void> {
  try {
    yield* items;
  } finally {
    end();
  }
}

interface FoundLease {
  readonly browser: BrowserId;
  /** Absent where it has stored nothing. */
  readonly lease: LeaseId | undefined;
}

/**
 * The events of a session are those of the lease that holds it, else of the last that did. A holder that
 * names its own, earlier lease reads that one's, also while others have the browser.
 */
async function findStored(
  ports: SessionEventsPorts,
  ref: string,
  named: LeaseId | undefined,
): Promise<ReturnType<typeof done<FoundLease>> | Refusal> {
  const { events, projects } = ports;
  const session = await findSession(ports, ref);
  const tombstone = session ? undefined : await findTombstone(projects, ref);
  const browser = session?.browser.id ?? tombstone?.id ?? findBrowserIdIn(projects.project, ref);
  if (!browser) return refusal("browser_not_found");
  const present = session?.browser.lease.id ?? tombstone?.lease;
  if (named !== undefined && named !== present)
    return (await events.has({ browser, lease: named }))
      ? done({ browser, lease: named })
      : refusal(present ? "lease_superseded" : "browser_not_found");
  const lease = present ?? (await events.findLatest(browser));
  return lease ? done({ browser, lease }) : refusal("browser_not_found");
}
