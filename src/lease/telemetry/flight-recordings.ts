import { done, type Done, refusal, type Refusal } from "../../base/errors.js";
import { findBrowserIdIn, partitionOf } from "../../base/ids.js";
import type { LeasedBrowser } from "../../pool/browser.js";
import { findPool, findSession, findTombstone } from "../../pool/lookup.js";
import type { NodeReply, NodeRequest } from "../../pool/ports/messages.js";
import type { PoolStore } from "../../pool/ports/pool-store.js";
import type { ProjectStore } from "../../pool/ports/project-store.js";
import { type FlightRecording, flightRecordingParser } from "../../spec/flight-recording.js";
import type { Caller } from "../../spec/caller.js";

interface FlightRecordingsPorts {
  readonly poolStore: PoolStore;
  readonly projects: ProjectStore;
}

interface AskingPorts extends FlightRecordingsPorts {
  askNode(browser: LeasedBrowser, what: NodeRequest): Promise<NodeReply>;
}

const mostOfPool = 20;

/**
 * GET /browsers/{id_or_name}/flight_recording: of a session that runs its node tells; of one that is over,
 * what was kept where it ended by a fault.
 */
export const makeReadRecording =
  (ports: AskingPorts) =>
  async (ref: string, caller: Caller): Promise<Done<FlightRecording> | Refusal> => {
    const found = await findSession(ports, ref);
    if (!found) return await findKept(ports, ref, caller);
    if (caller.lease && caller.lease !== found.browser.lease.id) return refusal("lease_superseded");
    const answer = await ports.askNode(found.browser, { kind: "recording" });
    if (answer.kind === "silent") return refusal("node_silent", { retryAfterSeconds: 1 });
    if (answer.kind === "failed" || answer.payload === undefined) return refusal("browser_gone");
    return done(flightRecordingParser.json(answer.payload));
  };

/**
 * A browser whose launch has failed has no tombstone, and a holder's commands are shown to nobody but that
 * holder.
 */
async function findKept(
  { projects }: FlightRecordingsPorts,
  ref: string,
  caller: Pick<Caller, "lease">,
): Promise<Done<FlightRecording> | Refusal> {
  const tombstone = await findTombstone(projects, ref);
  if (tombstone && caller.lease && caller.lease !== tombstone.lease) return refusal("lease_superseded");
  const id = tombstone?.id ?? findBrowserIdIn(projects.project, ref);
  const kept = id && (await projects.findRecording(id));
  if (kept && (kept.lease === undefined || kept.lease === tombstone?.lease)) return done(kept.recording);
  return tombstone
    ? refusal("not_found", { message: "The session did not end by a fault: it left no flight recording" })
    : refusal("browser_not_found");
}

/** GET /browser_pools/{id_or_name}/flight_recordings: the newest of a pool's browsers, newest first. */
export const makePoolRecordings =
  (ports: FlightRecordingsPorts) =>
  async (ref: string): Promise<Done<readonly FlightRecording[]> | Refusal> => {
    const pool = await findPool(ports, ref);
    if (!pool) return refusal("pool_not_found");
    const kept = await ports.projects.recordings(partitionOf(pool.id), mostOfPool);
    return done(kept.map(({ recording }) => recording));
  };
