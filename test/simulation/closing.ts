import { type Partition, newRequestId, onDemandPartition } from "../../src/base/ids.js";
import { hasAny, mark } from "./marks.js";
import { hold, type ShadowLease } from "./shadow.js";
import { startNode } from "./nodes.js";
import type { FakeNode } from "./model.js";
import type { World } from "./world.js";

/** A silence ends after this time unless it is reported again. */
const silentMs = 15_000;
/** Idle browsers of a draining node wait this long for their replacements (node/drain/drain.ts). */
const handOverMs = 30_000;

const poolPartitions = (world: World): readonly Partition[] =>
  world.partitions().filter((partition) => partition !== onDemandPartition);

/** A control finds that a node does not answer; it may die before it has told every pool. */
export async function silence(world: World): Promise<void> {
  const node = world.random.pick(world.nodes);
  if (!node) return;
  world.note(`${node.id} is silent`);
  for (const partition of poolPartitions(world)) {
    if (world.fails(0.1)) continue;
    const isThere = hasAny(world, partition, node);
    const until = world.now + silentMs;
    await world.bed.poolStore.silenceNode(partition, node.id, silentMs);
    // Nothing is noted for a pool that is deleted or has no browser on this node.
    if (isThere && partition === world.pool?.partition) world.closed.silence(partition, node.id, until);
  }
}

export async function answerAgain(world: World): Promise<void> {
  const node = world.random.pick(world.nodes);
  if (!node) return;
  world.note(`${node.id} answers again`);
  for (const partition of poolPartitions(world)) await endSilence(world, partition, node);
}

export async function endSilence(world: World, partition: Partition, { id }: FakeNode): Promise<void> {
  world.closed.endSilence(partition, id);
  await world.bed.poolStore.silenceNode(partition, id, 0);
}

/** Sends SIGTERM to a node, as a roll-out does: sometimes to all nodes at once. */
export async function drain(world: World): Promise<void> {
  const node = world.random.pick(world.nodes.filter((one) => !one.drain && !one.isFrozen));
  const goOn = world.nodes.filter((one) => !one.drain);
  if (!node || (goOn.length < 2 && world.random.chance(0.7))) return;
  node.drain = { since: world.now, until: world.now + world.random.between(20_000, 200_000) };
  world.note(`${node.id} drains until ${node.drain.until}`);
  await world.beat();
  await lookAfterDrain(world, node);
}

/** Does what node/drain/drain.ts does each second, and at the end of the drain. */
export async function lookAfterDrain(world: World, node: FakeNode | undefined): Promise<void> {
  if (!node?.drain || node.isFrozen) return;
  const { since, until } = node.drain;
  world.note(`${node.id} looks after its drain`);
  for (const partition of world.partitions()) await mark(world, partition, node);
  const isAlone = world.nodes.every((one) => one.drain);
  const isHandedOver = isAlone || world.now - since >= handOverMs;
  if (isHandedOver) await clear(world, node, "idle");
  const left = [...world.shadow.browsers.values()].filter((browser) => browser.node === node.id);
  await world.look();
  const isEmpty = isHandedOver ? left.every(({ state }) => state !== "leased") : left.length === 0;
  if (isEmpty || world.now >= until) await finishDrain(world, node);
}

async function clear(world: World, { id }: FakeNode, which: "idle" | "all" | "lost"): Promise<void> {
  world.cause = { kind: "clear", node: id };
  for (const partition of world.partitions())
    await world.bed.poolStore.clearNode(partition, {
      node: id,
      why: "drained",
      which,
      request: newRequestId(),
    });
}

/** Ends the node's records, then its browsers, then forgets it; another node takes its place. */
async function finishDrain(world: World, node: FakeNode): Promise<void> {
  world.note(`${node.id} stops`);
  await clear(world, node, "all");
  node.slots.clear();
  node.launching.clear();
  await clear(world, node, "lost");
  for (const partition of world.partitions()) world.closed.clear(partition, node.id);
  world.remove(node);
  await world.bed.nodes.forget(node.id);
  await startNode(world);
}

/**
 * A node that does not answer lends nothing. One that drains lends only where no other browser exists, and
 * only for leases that can live their whole time.
 */
export function judgeLending(
  world: World,
  { partition, id, browser, grantedAt }: ShadowLease,
  before: number,
): void {
  if (partition === onDemandPartition) return;
  const node = world.shadow.browsers.get(browser)?.node;
  if (!node) return;
  const { silentUntil, drainsUntil } = world.closed.of(partition, node);
  hold(
    silentUntil === undefined || silentUntil <= grantedAt,
    () => `${id} went to ${browser} on ${node}, which does not answer`,
  );
  // What is a minute over is void in Redis, which may have counted from a little earlier.
  if (drainsUntil === undefined || grantedAt >= drainsUntil + 55_000) return;
  const elsewhere = [...world.shadow.browsers.values()].find(
    (other) =>
      other.partition === partition && world.closed.of(partition, other.node).drainsUntil === undefined,
  );
  hold(
    elsewhere === undefined,
    () =>
      `${id} went to ${browser} on ${node}, which drains, though ${elsewhere?.id} is on ${elsewhere?.node}`,
  );
  const timeoutMs = (world.pool?.spec.timeout_seconds ?? 0) * 1000;
  hold(
    drainsUntil - before >= timeoutMs,
    () => `${id} went to ${browser} on ${node}, whose drain ends before its time`,
  );
}
