import { launchFacts } from "../support/store/store-bed.js";
import {
  type BrowserId,
  onDemandPartition,
  type Partition,
  partitionOf,
  newRequestId,
  type PoolId,
} from "../../src/base/ids.js";
import type { PoolSpec } from "../../src/spec/launch-template.js";
import { launchJob } from "../../src/pool/fill.js";
import { NodeCapacities, Placement } from "../../src/pool/placement.js";
import type { LaunchCandidate } from "../../src/pool/ports/pool-store.js";
import { poolSpec, writeOf } from "../support/store/store-bed.js";
import { isDeleted } from "./judge.js";
import { hold, type ShadowBrowser } from "./shadow.js";
import type { PoolModel } from "./model.js";
import type { World } from "./world.js";

const anyNumber = { pooledSessions: null, maxPools: 1000 };

export async function createPool(world: World): Promise<void> {
  if (world.pool) return;
  const { bed, random } = world;
  const id = random.id(24) as PoolId;
  const spec = poolSpec({
    size: random.between(2, 8),
    name: "pool",
    fill_rate_per_minute: random.pick([6000, 300, 100]) ?? 6000,
    timeout_seconds: random.between(10, 60),
    reset_on_release: random.pick(["none", "none", "none", "state", "relaunch"] as const) ?? "none",
  });
  const pool: PoolModel = { id, partition: partitionOf(id), name: "pool", spec, revision: 1 };
  world.pool = pool;
  world.watch(pool.partition);
  world.note(`create pool ${id} of ${spec.size}, ${spec.reset_on_release}`);
  await bed.projects.addPool(id);
  const isNamed =
    (await bed.projects.reserveName({ kind: "pool", name: "pool", owner: id, partition: pool.partition })) !==
    undefined;
  hold(isNamed, () => "a deleted pool's name was not free");
  await bed.projects.reserveSize(id, spec.size, anyNumber);
  const request = newRequestId();
  await world.repeatably(
    () => bed.poolStore.createPool(pool.partition, { id, write: writeOf(spec), request }),
    () => "created",
  );
  await bed.projects.openPool(id);
}

export async function deletePool(world: World): Promise<void> {
  const { bed, random, pool } = world;
  if (!pool) return;
  const force = random.chance(0.5);
  world.cause = { kind: "delete", partition: pool.partition };
  const request = newRequestId();
  const reply = await world.repeatably(
    () => bed.poolStore.deletePool(pool.partition, { force, request }),
    (kind) => {
      world.isRefused = kind !== "deleted";
      return kind;
    },
  );
  world.note(`delete pool${force ? " by force" : ""}: ${reply}`);
  if (reply !== "deleted") return hold(!force, () => `a deletion by force was answered ${reply}`);
  await bed.projects.dropPool(pool.id);
  await bed.projects.freeName({ kind: "pool", name: pool.name, owner: pool.id });
  world.pool = undefined;
}

export async function updatePool(world: World): Promise<void> {
  const { bed, random, pool } = world;
  if (!pool) return;
  const isNewNetwork = random.chance(0.06);
  const isNewLaunch = random.chance(0.2);
  const discard = random.chance(0.1);
  const spec: PoolSpec = {
    ...pool.spec,
    ...(random.chance(0.5) ? { size: random.between(1, 8) } : {}),
    ...(random.chance(0.1) ? { fill_rate_per_minute: random.pick([6000, 300, 100, 0]) ?? 6000 } : {}),
    ...(random.chance(0.1)
      ? { reset_on_release: random.pick(["none", "state", "relaunch"] as const) ?? "none" }
      : {}),
    ...(isNewNetwork ? { network: { allowed_hosts: [`${random.id(4)}.example.com`] } } : {}),
    ...(isNewLaunch ? { stealth: !pool.spec.stealth } : {}),
  };
  const revision = random.chance(0.1) ? pool.revision - 1 : pool.revision;
  const request = newRequestId();
  const ask = { revision, write: writeOf(spec), isNewLaunch, isNewNetwork, discard, request };
  const idle = idleOf(world, pool);
  const reply = await world.repeatably(
    () => bed.poolStore.updatePool(pool.partition, ask),
    (kind) => {
      world.isRefused = kind !== "updated";
      return kind;
    },
  );
  world.note(
    `update to ${spec.size}${isNewNetwork ? " network" : ""}${isNewLaunch ? " launch" : ""}${discard ? " discard" : ""}: ${reply}`,
  );
  hold(
    reply === "busy" ? discard || isNewNetwork : (reply === "updated") === (revision === pool.revision),
    () => `an update over ${revision} of ${pool.revision} was ${reply}`,
  );
  if (reply !== "updated") return;
  if (spec.size < pool.spec.size) pool.mayExceed = true;
  if (discard || isNewNetwork) for (const browser of idle) browser.isDiscarded = true;
  pool.spec = spec;
  pool.revision = (await bed.poolStore.findPool(pool.partition))?.revision ?? 0;
}

export async function flush(world: World): Promise<void> {
  const { pool } = world;
  if (!pool) return;
  const request = newRequestId();
  const idle = idleOf(world, pool);
  const reply = await world.repeatably(
    () => world.bed.poolStore.flush(pool.partition, request),
    (kind) => kind,
  );
  world.note(`flush: ${reply}`);
  if (reply === "flushed") for (const browser of idle) browser.isDiscarded = true;
}

const idleOf = ({ shadow }: World, pool: PoolModel): readonly ShadowBrowser[] =>
  [...shadow.browsers.values()].filter(
    ({ partition, state }) => partition === pool.partition && state === "idle",
  );

/** Does a piece of what `retireLeft` of pool/pool-operations.ts does, which may come much later, or never. */
export async function retireLeft(world: World, partition: Partition | undefined): Promise<void> {
  if (!partition || partition === onDemandPartition) return;
  const { poolStore } = world.bed;
  const isOver = isDeleted(world, partition);
  if (isOver) world.cause = { kind: "delete", partition };
  const request = newRequestId();
  const left = await world.repeatably(
    () => poolStore.retireLeft(partition, { isToSize: world.pool?.mayExceed === true, request }),
    (kind) => kind,
  );
  world.note(`retire what is left: ${left}`);
  if (left === "more") return;
  if (world.pool && !isOver) world.pool.mayExceed = false;
  if (!isOver) return;
  const { launching, idle, leased, resetting, waiting } = await poolStore.counts(partition);
  hold(launching + idle + leased + resetting + waiting === 0, () => `a deleted pool has browsers or waiters`);
}

/**
 * Does what pool/fill.ts does: reserves room, claims the launches, and gives back the room of those that were
 * not claimed. Two ticks may overlap.
 */
export async function planFill(world: World, partition: Partition | undefined): Promise<void> {
  if (!partition) return;
  const { bed } = world;
  const wanted = await bed.poolStore.wanted(partition, 100);
  if (wanted.count === 0) return;
  const [capacities, { ofNode: ofPool }] = [
    await NodeCapacities.read(bed.nodes),
    await bed.poolStore.spread(partition),
  ];
  const placement = new Placement(capacities, { engine: "chromium", ofPool, ...wanted });
  const candidates: LaunchCandidate[] = [];
  for (let i = 0; i < wanted.count; i += 1) {
    const candidate = await place(world, partition, placement);
    if (candidate) candidates.push(candidate);
  }
  world.plans.push({ partition, candidates });
}

export async function claimPlanned(world: World): Promise<void> {
  const { bed } = world;
  const plan = world.random.take(world.plans);
  if (!plan) return;
  const { partition, candidates } = plan;
  const request = newRequestId();
  const claimed = await world.repeatably(
    () => bed.poolStore.claimLaunches(partition, { candidates, request }),
    (all) => String(all.length),
  );
  world.note(`fill claims ${claimed.length} of ${candidates.length}`);
  for (const { id, node } of candidates)
    if (!claimed.some((browser) => browser.id === id)) await bed.nodes.freeRoom(node, id);
  if (!world.fails(0.05)) bed.jobs.push(...claimed.map(launchJob));
}

async function place(
  world: World,
  partition: Partition,
  placement: Placement,
): Promise<LaunchCandidate | undefined> {
  const { random } = world;
  const id = (partition + random.id(12)) as BrowserId;
  const node = await placement.reserve(id, 1);
  if (!node) return undefined;
  world.nodeOf.set(id, node);
  const recycleAt = random.chance(0.2)
    ? { recycleAt: world.now - world.aged + random.between(0, 100_000) }
    : {};
  return { id, node, facts: JSON.stringify({ ...launchFacts, poolId: world.pool?.id }), ...recycleAt };
}

/** Does the part of the reap tick that concerns one partition (pool/maintenance.ts). */
export async function reapPartition(world: World, partition: Partition | undefined): Promise<void> {
  if (!partition) return;
  world.cause = { kind: "reap" };
  const { launch, isMore } = await world.bed.poolStore.reap(partition);
  world.note("reap");
  if (!world.fails(0.05)) world.bed.jobs.push(...launch.map(launchJob));
  if (isMore && world.isAtRest) await reapPartition(world, partition);
}

/**
 * Ends the records of a lost node at once; the node is forgotten when a later look has found none of its
 * records any more.
 */
export async function reapNode(world: World): Promise<void> {
  const { bed } = world;
  const [node] = await bed.nodes.lost();
  if (!node) return;
  world.cause = { kind: "clear", node };
  let found = 0;
  for (const partition of world.partitions()) {
    found += await bed.poolStore.clearNode(partition, {
      node,
      why: "node_lost",
      which: "lost",
      request: newRequestId(),
    });
    world.closed.clear(partition, node);
  }
  world.note(`node ${node} was lost with ${found}`);
  if (found > 0) return;
  await bed.nodes.forgetLost(node);
  world.dropPlans(node);
  for (const one of world.nodes.filter(({ id }) => id === node)) one.isNamed = false;
  bed.jobs.splice(0, bed.jobs.length, ...bed.jobs.filter((job) => job.node !== node));
}

export async function sweep(world: World): Promise<void> {
  const { projects, nodes } = world.bed;
  await projects.sweepPendingTombstones();
  await projects.sweepNames();
  await projects.sweepTombstones();
  await projects.sweepPools();
  await projects.sweepReservations();
  for (const { id } of world.nodes) await nodes.sweepRooms(id);
}

export async function recycle(world: World): Promise<void> {
  const { pool, random } = world;
  if (!pool) return;
  const request = newRequestId();
  const marked = await world.repeatably(
    () => world.bed.poolStore.recycle(pool.partition, { maxLeases: random.between(4, 12), request }),
    String,
  );
  world.note(`recycle marks ${marked}`);
}
