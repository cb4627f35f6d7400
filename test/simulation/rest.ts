import { leaseOf } from "../../src/pool/browser.js";
import { type BrowserId, type Partition, onDemandPartition } from "../../src/base/ids.js";
import type { Waiter } from "../../src/pool/ports/pool-store.js";
import { nodeKey, organizationKey, partitionKey, projectKey } from "../../src/store/redis/keys.js";
import { confirm, flushReply, lookAfter, undo, withdraw } from "./controls.js";
import { checkAll } from "./full-check.js";
import { endSilence, lookAfterDrain } from "./closing.js";
import { deliver } from "./messages.js";
import { carryOut, expire, findInactiveAt, finishLaunch, keep } from "./nodes.js";
import { hold } from "./shadow.js";
import { lookForLost, thaw } from "./standing-still.js";
import { claimPlanned, planFill, reapPartition, reapNode, sweep } from "./upkeep.js";
import type { FakeNode } from "./model.js";
import type { World } from "./world.js";

/**
 * So many rounds of ticks follow each other, each longer than any claim's deadline; after them nothing may be
 * under way.
 */
const rounds = 16;

/**
 * Brings a world to rest: no more requests, no more losses. Everything must settle within its limits and
 * leave nothing behind.
 */
export async function rest(world: World): Promise<void> {
  world.isAtRest = true;
  world.snapshot = undefined;
  world.plans = [];
  for (const control of world.controls) Object.assign(control, { isPaused: false, isStopped: false });
  for (const node of world.nodes) node.maxBrowsers = 100;
  for (const node of world.nodes.filter((one) => one.isFrozen)) await step(world, () => thaw(world, node));
  // Without a healthy node nothing can be launched; a node that was frozen may have ended.
  const goesOn = world.nodes.filter((node) => node.isAlive && !node.drain);
  if (goesOn.every((node) => node.isSick)) for (const node of goesOn) node.isSick = false;
  await world.pass(100);
  for (const control of world.controls) await step(world, () => lookForLost(world, control));
  await settleCallers(world);
  for (const partition of world.partitions())
    for (const node of world.nodes) await step(world, () => endSilence(world, partition, node));
  for (const partition of world.partitions()) await withdrawForgotten(world, partition);
  for (let round = 0; round < rounds; round += 1) {
    await world.pass(round === 0 ? 130_000 : 16_000);
    await tick(world);
  }
  await step(world, () => sweep(world));
  await world.bed.effects.idle();
  await world.look();
  await checkAll(world);
  await checkRest(world);
  for (const node of world.nodes) node.maxBrowsers = 6;
  world.isAtRest = false;
}

const step = (world: World, act: () => Promise<void> | void): Promise<void> => world.step(async () => act());

async function settleCallers(world: World): Promise<void> {
  for (const caller of world.callers) {
    await step(world, () => lookAfter(world, caller));
    await step(world, () => withdraw(world, caller, true));
    await step(world, () => flushReply(world, caller, false));
  }
  await settleGrants(world);
  while (world.openings.length > 0) world.openings.pop();
}

/** Each control confirms what was delivered, and gives back what nobody waited for. */
async function settleGrants(world: World): Promise<void> {
  for (const control of world.controls) {
    await step(world, () => confirm(world, control));
    while (control.lost.length > 0) await step(world, () => undo(world, control));
  }
}

/**
 * Withdraws waiters that a failover has brought back and that no caller has any more. Each would stay in line
 * until it is granted a browser and that is given back, and at rest none may become free for long.
 */
async function withdrawForgotten(world: World, partition: Partition): Promise<void> {
  const { redis, project, poolStore } = world.bed;
  const standing = (await redis.hvals(partitionKey(project, partition, "waiterRecords"))).map(
    (text) => JSON.parse(text) as Waiter,
  );
  const forgotten = standing.filter(
    ({ id }) => !world.callers.some((caller) => caller.phase === "waiting" && caller.waiter === id),
  );
  for (const { id: waiter, connection, lease } of forgotten) {
    await step(world, async () =>
      world.note(
        `${waiter} stands for nobody: ${(await poolStore.withdraw(partition, { waiter, connection, lease })).kind}`,
      ),
    );
  }
}

async function tick(world: World): Promise<void> {
  const { bed } = world;
  while ((await bed.nodes.lost()).length > 0) await step(world, () => reapNode(world));
  for (const node of world.nodes.filter((one) => one.drain))
    await step(world, () => lookAfterDrain(world, node));
  await fill(world);
  for (const partition of world.partitions()) await step(world, () => reapPartition(world, partition));
  await step(world, () => deliver(world));
  while (world.inbox.length > 0) await step(world, () => deliver(world));
  await settleGrants(world);
  for (let job = bed.jobs.shift(); job; job = bed.jobs.shift()) {
    const one = job;
    await step(world, () => carryOut(world, one));
  }
  while (world.nodes.some(({ launching }) => launching.size > 0))
    await step(world, () => finishLaunch(world));
  // A launch that one node failed is given to another one at the next tick.
  await fill(world);
  for (const node of world.nodes)
    for (const browser of node.slots.keys()) await findAbandoned(world, node, browser);
  while (world.expiries.length > 0) await step(world, () => expire(world));
  for (const node of world.nodes) {
    for (let i = 0; i < 3; i += 1) await step(world, () => keep(world, node));
  }
}

async function fill(world: World): Promise<void> {
  await step(world, () => planFill(world, world.pool?.partition));
  while (world.plans.length > 0) await step(world, () => claimPlanned(world));
}

/** A lease that a failover has brought back, but whose holder is gone, ends by inactivity. */
async function findAbandoned(world: World, node: FakeNode, browser: BrowserId): Promise<void> {
  const lease = world.shadow.browsers.get(browser)?.lease;
  const isHeld = world.holders.some((holder) => holder.lease === lease);
  if (lease && !isHeld) await findInactiveAt(world, node, browser);
}

async function checkRest(world: World): Promise<void> {
  for (const partition of world.partitions()) await checkPartitionAtRest(world, partition);
  await checkLeases(world);
  await checkNames(world);
  await checkPlaces(world);
  await checkReservations(world);
  await checkLeftovers(world);
}

async function checkPartitionAtRest(world: World, partition: Partition): Promise<void> {
  const { browsers } = await world.bed.poolStore.browsers(partition);
  for (const { id, state } of browsers)
    hold(state === "idle" || state === "leased", () => `at rest ${id} is ${state}`);
  if (partition === onDemandPartition) return;
  hold(partition === world.pool?.partition, () => `the deleted pool ${partition} is still there`);
  const found = await world.bed.poolStore.findPool(partition);
  const { size, fill_rate_per_minute: rate } = world.pool.spec;
  const { idle = 0, leased = 0, waiting = 0 } = found?.counts ?? {};
  hold(waiting === 0, () => `at rest ${waiting} wait`);
  if (rate > 0)
    hold(
      idle + leased >= size,
      () => `at rest ${idle} idle and ${leased} leased are not ${size}: ${JSON.stringify(found?.fill)}`,
    );
}

/**
 * Checks that no acquire whose caller has gone keeps a browser: each lease has a holder, or was opened or
 * confirmed and waits for its expiry.
 */
async function checkLeases(world: World): Promise<void> {
  for (const lease of world.shadow.leases.values()) {
    const isHeld = world.holders.some((holder) => holder.lease === lease.id);
    hold(
      isHeld || lease.isOpened || lease.isConfirmed,
      () => `nobody has ${lease.id}, and it was not taken back`,
    );
  }
  for (const partition of world.partitions()) {
    const provisional = await world.bed.redis.zrange(
      partitionKey(world.bed.project, partition, "provisional"),
      "0",
      "-1",
    );
    hold(provisional.length === 0, () => `at rest ${provisional.join()} are provisional`);
  }
}

async function checkNames(world: World): Promise<void> {
  const { redis, project, poolStore } = world.bed;
  const names = (await redis.hkeys(projectKey(project, "names"))).toSorted();
  const records = (
    await Promise.all(world.partitions().map((partition) => poolStore.browsers(partition)))
  ).flatMap(({ browsers }) => browsers);
  const borne = records.flatMap((browser) => leaseOf(browser)?.name ?? []).map((name) => `session:${name}`);
  if (world.pool) borne.push(`pool:${world.pool.name}`);
  hold(new Set(borne).size === borne.length, () => `a name is borne twice: ${borne.join()}`);
  hold(
    names.join() === borne.toSorted().join(),
    () => `names ${names.join()} are reserved, ${borne.join()} are borne`,
  );
}

async function checkPlaces(world: World): Promise<void> {
  const { redis, poolStore } = world.bed;
  const records = (
    await Promise.all(world.partitions().map((partition) => poolStore.browsers(partition)))
  ).flatMap(({ browsers }) => browsers);
  for (const { id, slots } of world.nodes) {
    const here = records
      .filter((browser) => browser.node === id)
      .map((browser) => browser.id)
      .toSorted()
      .join();
    hold(
      (await redis.hkeys(nodeKey(id, "room"))).toSorted().join() === here,
      () => `the room of ${id} is not what is there`,
    );
    hold(
      [...slots.keys()].toSorted().join() === here,
      () => `the slots of ${id} are not what is there: ${[...slots.keys()].join()} and ${here}`,
    );
  }
  for (const { id } of world.deadNodes)
    hold((await redis.exists(nodeKey(id, "room"))) === 0, () => `the dead node ${id} still has a room`);
}

/** Checks that what is held of the organization's limits is what there is: here nothing limits sessions. */
async function checkReservations({ bed, pool }: World): Promise<void> {
  const held = await bed.redis.hgetall(organizationKey("reservations"));
  const sizes = Object.entries(held).map(([owner, text]) => `${owner} ${text.split(" ")[2]}`);
  hold(
    sizes.join() === (pool ? `${pool.id} ${pool.spec.size}` : ""),
    () => `reserved are ${sizes.join()}, there is ${pool?.id ?? "no pool"} of ${pool?.spec.size ?? 0}`,
  );
}

/** Checks that what is over leaves nothing but tombstones, answers, and results of idempotency keys. */
async function checkLeftovers(world: World): Promise<void> {
  const { redis, project, projects } = world.bed;
  const live = world.partitions();
  const keys = await redis.keys("remuda:*");
  const known = (key: string): boolean =>
    live.some((partition) => key.includes(`{${partition}}`)) ||
    /:answer:|:idempotency:|\{project-|\{nodes\}|\{organization\}/.test(key) ||
    world.nodes.some(({ id }) => key.includes(`{node-${id}}`));
  const left = keys.filter((key) => !known(key));
  hold(left.length === 0, () => `left behind: ${left.join(" ")}`);
  for (const partition of live)
    hold(
      (await redis.exists(partitionKey(project, partition, "pendingTombstones"))) === 0,
      () => `${partition} has unburied tombstones`,
    );
  const pools = await redis.hkeys(projectKey(project, "pools"));
  hold(pools.join() === (world.pool?.id ?? ""), () => `pools ${pools.join()} are noted`);
  hold(
    (await projects.tombstones(0, 1000)).every(({ id }) => !world.shadow.browsers.has(id)),
    () => "a live browser has a tombstone",
  );
}
