import { type Clock, type Millis, pause } from "../base/clock.js";
import { done, type Done, refusal, type Refusal } from "../base/errors.js";
import {
  type BrowserId,
  findBrowserIdIn,
  findPoolId,
  type LeaseId,
  newRequestId,
  type Partition,
  partitionOf,
} from "../base/ids.js";
import type { ReleaseBody } from "../spec/bodies.js";
import { findPool, findSessionId, findTombstone } from "../pool/lookup.js";
import type { LatePorts } from "../pool/late-creation.js";
import type { SessionReader } from "../pool/launch-templates.js";
import type { Granted, SessionOperations } from "../pool/operations.js";
import type { Caller, CapturingLease } from "../spec/caller.js";
import { telemetryOf } from "../spec/telemetry.js";
import type { CapturedEnd, PoolStore, ReleaseRequest } from "../pool/ports/pool-store.js";
import type { ProjectStore } from "../pool/ports/project-store.js";

interface ReleasePorts {
  readonly poolStore: PoolStore;
  readonly projects: ProjectStore;
  readonly sessionReader: Pick<SessionReader, "find">;
  /**
   * A retry of the official client after its session's lease has ended ends nothing within this time
   * (docs/api.md#release).
   */
  readonly retryWindowMs: Millis;
  readonly clock: Clock;
  /** The end of a session waits so long for its profile to be saved; the save itself goes on. */
  readonly saveWaitMs: Millis;
}

/** A save takes hundreds of milliseconds; a look costs a fraction of one. */
const lookMs = 50;

/**
 * POST /browser_pools/{x}/release: answers as soon as the lease has ended; where that saves a profile, once
 * it is saved.
 */
export const makeRelease =
  (ports: ReleasePorts) =>
  async (ref: string, body: ReleaseBody, caller: Caller): Promise<Done<null> | Refusal> => {
    const browser = findBrowserIdIn(ports.projects.project, body.session_id);
    if (!browser) return await notFound(ports, ref);
    const partition = partitionOf(browser);
    const reply = await ports.poolStore.release(partition, {
      browser,
      reuse: body.reuse ?? true,
      why: "released",
      ...askerOf(caller),
      ...nameIn(partition, ref),
    });
    if (reply.kind === "refused") return reply;
    const { kind: outcome, captured } = reply;
    if (captured) caller.concerns?.(capturedOf(ports, browser, captured));
    switch (outcome) {
      case "released":
        return done(null);
      case "saving":
        await saved(ports, browser, caller);
        return done(null);
      // Releasing what is already released is no error; the first attempt may have been given up on while it
      // saved.
      case "already":
        if (caller.retryCount > 0) await saved(ports, browser, caller);
        return done(null);
      case "superseded":
        return refusal("lease_superseded");
      case "elsewhere":
        return await notFound(ports, ref);
      case "unknown":
        return await releaseOver(ports, { ref, browser }, caller);
    }
  };

/** Found while the answer is on its way: whoever is told of the call does not keep its caller waiting. */
async function capturedOf(
  { sessionReader }: ReleasePorts,
  browser: BrowserId,
  { lease, templateKey, telemetry, trace }: CapturedEnd,
): Promise<CapturingLease> {
  const launch = await sessionReader.find(partitionOf(browser), templateKey);
  return { browser, lease, telemetry: telemetryOf(launch?.telemetry, { telemetry }), trace };
}

const notFound = async (ports: ReleasePorts, ref: string): Promise<Refusal> =>
  (await findPool(ports, ref)) ? refusal("browser_not_found") : refusal("pool_not_found");

/** The browser's id tells its partition, so a pool's name need not be looked up: the script compares it. */
function nameIn(partition: Partition, ref: string): { name?: string } {
  const id = findPoolId(ref);
  return id && partitionOf(id) === partition ? {} : { name: ref };
}

const askerOf = ({
  retryCount,
  request,
  lease,
  admission,
}: Caller): Pick<ReleaseRequest, "isRetry" | "request" | "lease" | "admission"> => ({
  isRetry: retryCount > 0,
  request,
  ...(lease ? { lease } : {}),
  admission,
});

/** The browser has gone with its lease. */
async function releaseOver(
  ports: ReleasePorts,
  { ref, browser }: { ref: string; browser: BrowserId },
  { lease }: Caller,
): Promise<Done<null> | Refusal> {
  const over = await findTombstone(ports.projects, browser);
  if (over?.pool?.id !== ref && over?.pool?.name !== ref) return await notFound(ports, ref);
  return lease && lease !== over.lease ? refusal("lease_superseded") : done(null);
}

/**
 * DELETE /browsers/{id_or_name}: ends the session, its browser with it; its profile is saved then, where that
 * was asked for.
 */
export const makeRemoveSession =
  (ports: ReleasePorts) =>
  async (ref: string, caller: Caller): Promise<Done<null> | Refusal> => {
    const isRetry = caller.retryCount > 0;
    const browser = await findSessionId(ports, ref);
    const reply = browser
      ? await ports.poolStore.release(partitionOf(browser), {
          browser,
          reuse: false,
          why: "deleted",
          ...askerOf(caller),
        })
      : { kind: "unknown" as const };
    if (reply.kind === "refused") return reply;
    const { kind: outcome, captured } = { captured: undefined, ...reply };
    if (browser && captured) caller.concerns?.(capturedOf(ports, browser, captured));
    if (outcome === "superseded") return refusal("lease_superseded");
    const isOver =
      outcome === "released" ||
      outcome === "saving" ||
      (isRetry && (await endedLately(ports, ref, caller.lease)));
    if (!isOver) return refusal("browser_not_found");
    // What a retry repeats may have been given up on while it saved.
    if (browser && outcome !== "released") await saved(ports, browser, caller);
    return done(null);
  };

/** What becomes of a session on demand whose project is closed by the time that it is granted. */
export const lateSessionPorts = (
  remove: SessionOperations["remove"],
): Omit<LatePorts<Parameters<SessionOperations["create"]>, Granted>, "isActive"> => ({
  async undo(granted, _body, { principal, retryCount, gone }) {
    await remove(granted.session.browser.id, { request: newRequestId(), principal, retryCount, gone });
    granted.settle("lost");
  },
  lost: (granted) => granted.settle("lost"),
});

/**
 * Waits until the browser is gone, its profile saved before: whoever starts from that profile then starts
 * from this state.
 */
async function saved(
  { poolStore, clock, saveWaitMs }: ReleasePorts,
  browser: BrowserId,
  { gone }: Caller,
): Promise<void> {
  const until = clock.monotonic() + saveWaitMs;
  while (!gone.aborted && clock.monotonic() < until) {
    const record = (await poolStore.findBrowser(browser))?.browser;
    if (record?.state !== "retiring" || !record.saving) return;
    await pause(clock, Math.min(lookMs, until - clock.monotonic()), gone);
  }
}

/** Whether the session has just ended; where a lease is named, by the end of that. */
async function endedLately(
  { poolStore, projects, retryWindowMs }: ReleasePorts,
  ref: string,
  lease: Caller["lease"],
): Promise<boolean> {
  const isMeant = (ended: LeaseId | undefined): boolean => !lease || lease === ended;
  const id = findBrowserIdIn(projects.project, ref);
  const found = id && (await poolStore.findBrowser(id));
  if (found)
    return (
      found.browser.lastLeaseEndedAt !== undefined &&
      isMeant(found.browser.lastLease) &&
      found.at - found.browser.lastLeaseEndedAt <= retryWindowMs
    );
  const [tombstone, at] = await Promise.all([findTombstone(projects, ref), poolStore.now()]);
  return tombstone !== undefined && isMeant(tombstone.lease) && at - tombstone.deletedAt <= retryWindowMs;
}
