import type { Partition } from "../base/ids.js";
import type { LaunchFacts } from "../pool/browser.js";
import type { SessionReader } from "../pool/launch-templates.js";
import type { Granted } from "../pool/operations.js";
import type { NodeStore } from "../pool/ports/node-store.js";
import type { CreateRequest, PoolStore } from "../pool/ports/pool-store.js";
import type { CreateReply } from "../pool/ports/store-replies.js";
import { profileOf } from "../pool/session-profile.js";
import { findShape, type StandbyShape } from "../pool/standby/shapes.js";
import { memoryBytes } from "../spec/bodies.js";
import type { LaunchTemplate } from "../spec/launch-template.js";
import type { LeaseRequest } from "./lease-request.js";

export interface StandbyPorts {
  readonly poolStore: PoolStore;
  readonly nodes: NodeStore;
  readonly sessionReader: SessionReader;
  /** The shapes that the setting names for this project. */
  readonly standbyShapes: readonly StandbyShape[];
  /** Counts requests of such a shape: one was lent, or none stood by. */
  readonly standbyMeter: { asked(outcome: "taken" | "missed"): void };
  /** Asks for others in the place of what was lent. */
  fillStandby(partition: Partition): void;
}

/** What a session that is reserved is to be launched with. */
export type ReservedSession = Pick<CreateRequest, "reservedUntil"> & { readonly template: LaunchTemplate };

/**
 * Lends a browser that stands by and was launched as this one would be; undefined where there is none. The
 * start page and telemetry begin as those of an acquire do.
 */
export async function lendStandby(
  { poolStore, nodes, sessionReader, standbyShapes, standbyMeter }: StandbyPorts,
  { partition, waiter, idempotencyKey }: LeaseRequest,
  reserved: ReservedSession,
): Promise<CreateReply | undefined> {
  const { template } = reserved;
  const shape = findShape(standbyShapes, template);
  if (!shape) return undefined;
  // What the key was given may be the place of a launch that has failed, which only another launch takes up.
  if (idempotencyKey && (await poolStore.findByKey(partition, idempotencyKey.key))) return undefined;
  const { start_url: startUrl } = template;
  const reply = await poolStore.createSession(partition, {
    ...reserved,
    waiter: { ...waiter, ...(startUrl !== undefined && { startUrl }) },
    standby: { key: shape.key, facts: JSON.stringify(sessionFactsOf(template)) },
    ...(idempotencyKey && { idempotencyKey }),
  });
  if (reply.kind === "none") {
    standbyMeter.asked("missed");
    return undefined;
  }
  if (reply.kind === "granted" && reply.browser.lease.id === waiter.lease) {
    standbyMeter.asked("taken");
    const { id, node, templateKey } = reply.browser;
    sessionReader.keep(partition, templateKey, template);
    // Whoever is given its room before that finds that it is a session, and gives it back.
    nodes.keepRoom(node, { id, bytes: memoryBytes(template.memory) }).catch(() => {});
  }
  return reply;
}

/** Another is launched in its place once its caller has the answer, which that would hold up. */
export const refilledAfter = (
  granted: Granted,
  { fillStandby }: Pick<StandbyPorts, "fillStandby">,
  partition: Partition,
): Granted => ({
  ...granted,
  settle(outcome) {
    granted.settle(outcome);
    fillStandby(partition);
  },
});

/** What the record of a session on demand repeats of its launch. */
export function sessionFactsOf(template: LaunchTemplate): LaunchFacts {
  const { headless, stealth, kiosk_mode, memory, telemetry, vault_ids } = template;
  const profile = profileOf(template, undefined);
  return {
    headless,
    stealth,
    kiosk_mode,
    memory,
    ...(profile && { profileId: profile.id }),
    ...(vault_ids?.length && { vaultIds: vault_ids }),
    ...(profile?.save && { saves: true }),
    ...(telemetry && { captures: true }),
  };
}
