import type { LeaseId } from "../../src/base/ids.js";
import type { Job } from "../../src/pool/ports/pool-store.js";
import { ageKeys } from "../support/store/age.js";
import { type Detached, detachReplica } from "../support/store/lost-writes.js";
import { request } from "../support/store/store-bed.js";
import type { ClosedNodes } from "./closed-nodes.js";
import { expectRegistrations, promote } from "./epochs.js";
import { hold, type ShadowState } from "./shadow.js";
import { picturesOf, type Watch } from "./watch.js";
import type { Control, PoolModel } from "./model.js";
import type { World } from "./world.js";

/** What a replica knows that was cut off from its primary, and what was true at that time. */
export interface Snapshot {
  readonly replica: Detached;
  readonly shadow: ShadowState;
  readonly watches: readonly (readonly [Watch, string])[];
  readonly pool: PoolModel | undefined;
  readonly closed: ClosedNodes;
  readonly jobs: readonly Job[];
  /** The control that each lease's record names. */
  readonly speakers: ReadonlyMap<LeaseId, Control>;
  readonly aged: number;
}

/**
 * Detaches the replica, or lets a detached one take the primary's place, so that what was acknowledged in
 * between is lost.
 */
export async function detachOrFailOver(world: World): Promise<void> {
  if (world.snapshot) await failOver(world, world.snapshot);
  else await detach(world);
  world.lendingSteps = 40;
}

async function detach(world: World): Promise<void> {
  const { redis, effects, jobs } = world.bed;
  await effects.idle();
  world.note("the replica is detached");
  world.snapshot = {
    replica: await detachReplica(redis, "*"),
    jobs: [...jobs],
    speakers: new Map(world.speakers),
    aged: world.aged,
    shadow: world.shadow.copy(),
    pool: world.pool && { ...world.pool },
    closed: world.closed.copy(),
    watches: world.watches().map((watch) => [watch, watch.at()]),
  };
}

async function failOver(
  world: World,
  { replica, shadow, watches, pool, closed, jobs, speakers, aged }: Snapshot,
): Promise<void> {
  const { redis, effects } = world.bed;
  await effects.idle();
  world.note("the replica takes over");
  world.isDisturbed = true;
  world.snapshot = undefined;
  await replica.takeOver();
  await ageKeys(redis, replica.keys, world.aged - aged);
  for (const lease of world.shadow.known())
    if (!shadow.leases.has(lease) && !shadow.over.has(lease)) world.lost.add(lease);
  // A lease that the replica still knows may have had clients of which it knows nothing.
  const slots = world.nodes.flatMap((node) => [...node.slots.values()]);
  const clients = [
    ...slots.flatMap(({ sockets }) => [...sockets.keys()]),
    ...world.openings.map(({ lease }) => lease),
  ];
  for (const lease of clients) world.lost.add(lease);
  world.shadow.restore(shadow);
  world.watchAgain(watches);
  for (const [lease, control] of speakers) world.speakers.set(lease, control);
  world.pool = pool;
  world.closed = closed;
  world.bed.jobs.splice(0, world.bed.jobs.length, ...jobs);
  forget(world);
  await promote(world);
  await expectRegistrations(world);
  await world.beat();
}

/**
 * Drops what was under way and was safe only by what Redis knew: reservations, what a node had just read, the
 * time within which an ended lease is remembered.
 */
function forget(world: World): void {
  world.plans = [];
  world.expiries = [];
  world.releases = world.releases.filter(({ isNamed }) => isNamed);
}

/**
 * Has Redis refuse writes for a while. A command that would write fails as `store_unavailable`, and nothing
 * changes.
 */
export async function demote(world: World): Promise<void> {
  const { redis, project, poolStore, reports } = world.bed;
  const [holder, pool] = [world.random.pick(world.holders), world.pool];
  if (!holder || !pool) return;
  await world.bed.effects.idle();
  world.note("Redis is demoted");
  world.isDisturbed = true;
  const before = await picturesOf(redis, project, world.partitions());
  const { lease, browser, partition } = holder;
  const id = request();
  const waiter = {
    id,
    lease: world.random.id(24) as typeof lease,
    control: world.controls[0]?.id ?? ("none" as never),
    connection: id,
  };
  const operator = world.at.server.client();
  await operator.replicaof("127.0.0.1", 1);
  const asked = [
    () => poolStore.acquire(pool.partition, { pool: pool.id, waiter, mayWait: true }),
    () =>
      poolStore.release(partition, {
        browser,
        lease,
        reuse: true,
        why: "released",
        isRetry: false,
        request: id,
      }),
    () =>
      poolStore.touch(partition, {
        browser,
        lease,
        change: { set: {}, clear: [], touched: true },
        request: id,
      }),
    () => reports.connect(browser, lease),
    () => poolStore.flush(pool.partition, id),
    () => poolStore.reap(pool.partition),
  ];
  for (const ask of asked) {
    // A command that turns out to write nothing is answered.
    const fault = await ask().then(
      () => undefined,
      (error: unknown) => error as { readonly code?: string },
    );
    hold(
      fault === undefined || fault.code === "store_unavailable",
      () => `a demoted Redis was told as ${String(fault)}`,
    );
  }
  operator.disconnect();
  await promote(world);
  const after = await picturesOf(redis, project, world.partitions());
  hold(
    [...after].every(([key, picture]) => before.get(key) === picture),
    () => "a demoted Redis was changed",
  );
  await expectRegistrations(world);
}
