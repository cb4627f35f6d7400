import { type NodeId, type Partition, onDemandPartition, partitionOf } from "../../src/base/ids.js";
import { EpochRegistration } from "../../src/node/lease-handover.js";
import type { Slot as RealSlot } from "../../src/node/slot.js";
import { partitionKey } from "../../src/store/redis/keys.js";
import { silentLog } from "../support/browser/chromium-host.js";
import { until } from "../support/browser/chromium-until.js";
import type { FakeNode } from "./model.js";
import { hold, type ShadowLease } from "./shadow.js";
import type { World } from "./world.js";

/** A node that has not registered for so long counts as one of an earlier release (lua/pool/reap.lua). */
const registerMs = 60_000;

/** Redis has the ids of a replica that was made the primary. */
export async function promote(world: World): Promise<void> {
  const { redis } = world.bed;
  const operator = world.at.server.client();
  await operator.replicaof("127.0.0.1", 1);
  await operator.replicaof("NO", "ONE");
  operator.disconnect();
  const answers = async (): Promise<boolean> =>
    await redis.ping().then(
      () => true,
      () => false,
    );
  // Whoever was told that Redis is read-only has closed its connection and opens another.
  await until("the connection", answers);
}

/** Each node is to register before anything of it is lent. A failover takes longer than a simulated one. */
export async function expectRegistrations(world: World): Promise<void> {
  const { bed, now, shadow, unregistered } = world;
  for (const id of shadow.browsers.keys()) unregistered.set(id, now);
  for (const partition of world.partitions()) {
    const pool = partitionKey(bed.project, partition, "pool");
    if ((await bed.redis.exists(pool)) === 1) await bed.redis.hset(pool, "serverCheckedAt", 0);
  }
}

/** Does what node/lease-handover.ts does. */
export async function register(world: World, node: FakeNode, partition: Partition): Promise<void> {
  const { cause } = world;
  world.cause = { kind: "register", node: node.id };
  const registration = new EpochRegistration({
    node: node.id,
    slots: { all: () => [...node.slots.values()] as unknown as readonly RealSlot[] },
    log: silentLog,
    reports: {
      register: async (...asked) => {
        const told = await world.bed.reports.register(...asked);
        for (const id of world.unregistered.keys())
          if (partitionOf(id) === partition && world.nodeOf.get(id) === node.id)
            world.unregistered.delete(id);
        // The same script has lent what was waited for.
        await world.look();
        if (told) world.note(`${node.id} registers: ${JSON.stringify(told)}`);
        for (const id of told?.resumed ?? []) {
          world.lost.delete(id);
          const lease = world.shadow.leases.get(id);
          if (lease) lease.isOpened = true;
        }
        return told;
      },
    },
  });
  await registration.register(partition);
  world.cause = cause;
}

/** Checks that a lease that its node has declared void or superseded was not in use there, or is gone. */
export function mayVoid(
  world: World,
  lease: ShadowLease,
  { node, why }: { node: NodeId; why: string },
): boolean {
  const activity = world.slotOf(lease.browser)?.slot.activity;
  if (why === "missing") return activity === undefined;
  const isInUse = activity?.lease === lease.id && activity.registrations > 0;
  return world.nodeOf.get(lease.browser) === node && !isInUse && (why === "registered" || !lease.isOpened);
}

/** Nothing of a node is lent before it has registered in this epoch. */
export function judgeEpoch(world: World, { id, partition, browser, grantedAt }: ShadowLease): void {
  if (partition === onDemandPartition) return;
  const since = world.unregistered.get(browser);
  hold(
    since === undefined || since + registerMs <= grantedAt,
    () => `${id} went to ${browser}, whose node has not registered in this epoch`,
  );
}
