import type { BrowserId, ClaimId, LeaseId } from "../../src/base/ids.js";
import type { Log } from "../../src/base/log.js";
import { Activity, type Visit } from "../../src/gateway/activity.js";
import type { Slot as RealSlot } from "../../src/node/slot.js";
import { LeaseHandover } from "../../src/node/lease-handover.js";
import { register } from "./epochs.js";
import { hold } from "./shadow.js";
import type { FakeNode } from "./model.js";
import type { World } from "./world.js";

const silent: Log = { debug() {}, info() {}, warn() {}, error() {}, child: () => silent };

/**
 * The part of a slot that the real lease handover uses (node/lease-handover.ts), beside simulated sockets.
 */
export interface Slot extends Pick<
  RealSlot,
  "id" | "activity" | "record" | "unknownLease" | "uploads" | "inTurn" | "restoreViewport"
> {
  readonly sockets: Map<LeaseId, Visit>;
  readonly template: Pick<RealSlot["template"], "profile_id">;
  readonly egress: Pick<RealSlot["egress"], "isClosed">;
  lastActiveAt: number;
}

/** Makes the slot of a simulated browser; the real `Activity` notes who uses it. */
export function newSlot(world: World, browser: BrowserId): Slot {
  const clock = {
    now: () => world.now,
    monotonic: () => world.now,
    after: () => () => {},
    every: () => () => {},
  };
  return {
    id: browser,
    sockets: new Map(),
    activity: new Activity(clock),
    lastActiveAt: world.now,
    record: undefined,
    unknownLease: undefined,
    uploads: [],
    // Redis is always within reach of these.
    egress: { isClosed: false },
    template: {},
    inTurn: (work) => work(),
    restoreViewport: async () => {},
  };
}

export async function cut(slot: Slot, lease: LeaseId): Promise<void> {
  await slot.activity.cutLease(lease, "released");
}

/** Builds the real `LeaseHandover` of node/lease-handover.ts around a simulated node. */
function successionOf(world: World, node: FakeNode): LeaseHandover {
  const end = async (slot: { id: BrowserId }, claim?: ClaimId): Promise<void> => {
    world.note(`${slot.id} was used by a lease that its record forgot`);
    hold(world.lost.size > 0, () => `${slot.id} was used by two, and nothing was lost`);
    node.slots.delete(slot.id);
    if (claim) await world.bed.reports.gone(slot.id, claim);
  };
  return new LeaseHandover({
    slots: { endUnder: end, retireNow: (slot) => end(slot) },
    poolStore: world.bed.poolStore,
    reports: world.bed.reports,
    log: silent,
    registration: { register: (partition) => register(world, node, partition) },
    networkSync: { restore: async () => {}, sync: async () => true },
  });
}

/** Takes over a browser for a lease. False where the lease or the browser is over. */
export async function begin(
  world: World,
  { node, slot }: { node: FakeNode; slot: Slot },
  lease: LeaseId,
): Promise<boolean> {
  world.cause = { kind: "end", browser: slot.id };
  return await successionOf(world, node).begin(slot as unknown as RealSlot, lease);
}

export async function clear(world: World, { node, slot }: { node: FakeNode; slot: Slot }): Promise<void> {
  world.cause = { kind: "end", browser: slot.id };
  await successionOf(world, node).clear(slot as unknown as RealSlot);
}
