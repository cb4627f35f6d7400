import { onDemandPartition, type Partition } from "../../src/base/ids.js";
import { judgeLending } from "./closing.js";
import { judgeEpoch, mayVoid } from "./epochs.js";
import { hold, type ShadowLease } from "./shadow.js";
import type { World } from "./world.js";

/**
 * Checks that no socket of an old lease reaches a new holder. Leases that Redis has forgotten are excepted
 * here: their sockets have to be closed before the new holder opens its own (`openSocket`).
 */
export function judgeGrant(world: World, lease: ShadowLease, why: string): void {
  const sockets = [...(world.slotOf(lease.browser)?.slot.sockets.keys() ?? [])].filter(
    (other) => other !== lease.id && !world.lost.has(other),
  );
  hold(sockets.length === 0, () => `${lease.browser} went to ${lease.id} with sockets of ${sockets.join()}`);
  // One that its node has brought back is not lent anew.
  const browser = world.shadow.browsers.get(lease.browser);
  if (why === "registered") return void (browser && (browser.isDiscarded = false));
  hold(browser?.isDiscarded !== true, () => `${lease.browser} was discarded and went to ${lease.id}`);
  judgeLending(world, lease, world.now);
  judgeEpoch(world, lease);
}

export const isDeleted = ({ pool }: World, partition: Partition): boolean =>
  partition !== onDemandPartition && partition !== pool?.partition;

export function mayEnd(world: World, lease: ShadowLease, why: string): boolean {
  const { cause } = world;
  switch (cause.kind) {
    case "none":
      return false;
    case "release":
      return cause.lease === lease.id;
    case "undo":
      return cause.lease === lease.id && !lease.isOpened && !lease.isConfirmed;
    case "expire":
      return cause.lease === lease.id && (world.slotOf(lease.browser)?.slot.sockets.size ?? 0) === 0;
    case "end":
      return cause.browser === lease.browser;
    case "clear":
      return cause.node === world.nodeOf.get(lease.browser);
    case "register":
      return mayVoid(world, lease, { node: cause.node, why });
    case "delete":
      return cause.partition === lease.partition && why === "pool_deleted";
    case "reap":
      if (why === "pool_deleted") return isDeleted(world, lease.partition);
      return !lease.isOpened && !lease.isConfirmed && (lease.isDoubtful || !isClaimed(world, lease));
  }
}

/**
 * True where the control that last spoke for a lease has been heard of ever since the grant, and has not said
 * yet how its reply fared.
 */
function isClaimed(world: World, { id, grantedAt }: ShadowLease): boolean {
  const control = world.speakers.get(id);
  if (!control?.isAlive || control.isPaused || control.isStopped || control.unheardUntil >= grantedAt)
    return false;
  return (
    control.delivered.some(({ lease }) => lease === id) ||
    world.callers.some(
      (caller) =>
        caller.lease === id && caller.control === control && caller.phase !== "over" && !caller.isDisplaced,
    )
  );
}
