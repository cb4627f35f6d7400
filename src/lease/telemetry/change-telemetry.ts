import { newRequestId, partitionOf } from "../../base/ids.js";
import { refusal, type Refusal } from "../../base/errors.js";
import type { LeasedBrowser } from "../../pool/browser.js";
import type { SessionReader } from "../../pool/launch-templates.js";
import type { NodeReply, NodeRequest } from "../../pool/ports/messages.js";
import type { LeaseChange, PoolStore } from "../../pool/ports/pool-store.js";
import type { Session } from "../../pool/session.js";
import type { SessionPatch } from "../../spec/bodies.js";
import { lastingTelemetry, mergeTelemetry } from "../../spec/telemetry.js";

interface ChangeTelemetryPorts {
  readonly poolStore: PoolStore;
  readonly sessionReader: SessionReader;
  askNode(browser: LeasedBrowser, what: NodeRequest): Promise<NodeReply>;
}

/** How often a change is merged anew, because another PATCH has come first. */
const mostMerges = 5;

/**
 * Changes what a lease captures: the record first, so that a node which the question does not reach finds it
 * there. It is in force when the node says so.
 */
export async function changeTelemetry(
  ports: ChangeTelemetryPorts,
  session: Session,
  patch: SessionPatch["telemetry"],
): Promise<Refusal | undefined> {
  if (!patch || Object.keys(patch).length === 0) return undefined;
  let found: Session | undefined = session;
  for (let merges = 0; found && merges < mostMerges; merges += 1) {
    const { browser } = found;
    const reply = await ports.poolStore.touch(partitionOf(browser.id), {
      browser: browser.id,
      lease: browser.lease.id,
      change: { set: {}, clear: [], touched: false, telemetry: mergedInto(found, patch) },
      request: newRequestId(),
    });
    if (reply.kind === "touched") return await askTelemetry(ports, reply.browser);
    if (reply.kind !== "changed")
      return refusal(reply.kind === "superseded" ? "lease_superseded" : "browser_not_found");
    found = await again(ports, browser);
  }
  return found ? refusal("conflict") : refusal("browser_not_found");
}

const mergedInto = (
  { telemetry, browser: { lease } }: Session,
  patch: SessionPatch["telemetry"],
): NonNullable<LeaseChange["telemetry"]> => ({
  text: JSON.stringify(lastingTelemetry(mergeTelemetry(telemetry, patch))),
  over: lease.telemetryRevision ?? 0,
});

async function again(
  { poolStore, sessionReader }: ChangeTelemetryPorts,
  { id, lease }: LeasedBrowser,
): Promise<Session | undefined> {
  const held = await poolStore.findHeld(partitionOf(id), lease.id);
  return held && (await sessionReader.findSession(held.browser, held.at));
}

async function askTelemetry(
  ports: ChangeTelemetryPorts,
  browser: LeasedBrowser,
): Promise<Refusal | undefined> {
  const { telemetry = "{}", telemetryRevision: revision = 0 } = browser.lease;
  const answer = await ports.askNode(browser, { kind: "telemetry", revision, telemetry });
  if (answer.kind === "done") return undefined;
  // The lease was over when its node heard of it.
  if (answer.kind === "failed") return refusal("browser_not_found");
  return refusal("node_silent", {
    retryAfterSeconds: 1,
    message:
      "The telemetry is not in force yet: the browser's node did not answer in time, and will put it in force " +
      "when it hears of it",
  });
}
