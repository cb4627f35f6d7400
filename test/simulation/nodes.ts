import type { AnyRecord } from "../support/store/store-bed.js";
import { type BrowserId, type ClaimId, type LeaseId, newRequestId, type NodeId } from "../../src/base/ids.js";
import type { Job } from "../../src/pool/ports/pool-store.js";
import { type Browser, leaseOf } from "../../src/pool/browser.js";
import { begin, clear, cut, newSlot, type Slot } from "./begin.js";
import { markLaunch } from "./marks.js";
import { hold } from "./shadow.js";
import { type FakeNode, isHeard } from "./model.js";
import type { World } from "./world.js";

/** A simulated node does its jobs in steps, so that anything may happen between two of them. */

export async function startNode(world: World): Promise<FakeNode> {
  const id = `node-${world.random.id(6)}` as NodeId;
  const node: FakeNode = {
    id,
    run: world.random.id(6),
    isAlive: true,
    isFrozen: false,
    isNamed: false,
    isSick: false,
    failures: 0,
    drain: undefined,
    maxBrowsers: world.isAtRest ? 100 : 6,
    slots: new Map(),
    launching: new Map(),
  };
  world.nodes.push(node);
  world.ids.add(node.id);
  await world.bed.nodes.beat(world.factsOf(node));
  return node;
}

/** A node's machine dies with its browsers, and nobody reports it. */
export async function killNode(world: World): Promise<void> {
  const node = world.random.pick(world.nodes);
  if (!node) return;
  world.note(`node ${node.id} dies`);
  world.remove(node);
  node.slots.clear();
  node.launching.clear();
  if (world.nodes.length < 2) await startNode(world);
}

/** A node's daemon restarts: whatever its earlier run held is gone (`Drain.forgetEarlierRun`). */
export async function restartNode(world: World): Promise<void> {
  const node = world.random.pick(world.nodes.filter(isHeard));
  if (node) await startAnew(world, node);
}

export async function startAnew(world: World, node: FakeNode): Promise<void> {
  const { bed } = world;
  world.note(`node ${node.id} restarts`);
  Object.assign(node, { run: world.random.id(6), isFrozen: false, drain: undefined });
  node.slots.clear();
  node.launching.clear();
  bed.jobs.splice(0, bed.jobs.length, ...bed.jobs.filter((job) => job.node !== node.id));
  world.cause = { kind: "clear", node: node.id };
  for (const partition of world.partitions()) {
    await bed.poolStore.clearNode(partition, {
      node: node.id,
      why: "node_lost",
      which: "lost",
      request: newRequestId(),
    });
    world.closed.clear(partition, node.id);
  }
  await bed.nodes.forget(node.id);
  world.dropPlans(node.id);
  await bed.nodes.beat(world.factsOf(node));
}

export const receiveAsNode = (world: World, id: NodeId): FakeNode | undefined =>
  world.nodes.filter(isHeard).find((node) => node.id === id);

/** Runs any one job of the queues, so they run out of order; a job may also be lost, or run twice. */
export async function runJob(world: World): Promise<void> {
  const { bed, random } = world;
  const job = random.take(bed.jobs);
  if (!job || world.fails(0.05)) return;
  // A node that does not reach Redis leaves the job in its queue.
  if (world.nodes.some(({ id, isFrozen }) => id === job.node && isFrozen)) return void bed.jobs.push(job);
  if (random.chance(0.1)) bed.jobs.push(job);
  await carryOut(world, job);
}

export async function carryOut(world: World, job: Job): Promise<void> {
  const node = receiveAsNode(world, job.node);
  if (!node) return;
  const record = (await world.bed.poolStore.findBrowser(job.browser))?.browser;
  if (!record || !("claim" in record) || record.claim !== job.claim) return;
  world.note(`job ${job.kind} ${job.browser} ${job.claim}`);
  if (job.kind === "launch" && record.state === "launching" && !node.slots.has(job.browser))
    node.launching.set(job.browser, job.claim);
  const slot = node.slots.get(job.browser);
  if (job.kind === "launch" && record.state === "launching" && slot)
    await reportLaunched(world, { node, slot }, job.claim);
  if (job.kind === "retire" && record.state === "retiring") await retire(world, node, job);
  if (job.kind === "reset" && record.state === "resetting") await reset(world, node, record);
}

async function retire(world: World, node: FakeNode, { browser, claim }: Job): Promise<void> {
  node.launching.delete(browser);
  node.slots.delete(browser);
  await world.bed.reports.gone(browser, claim);
}

async function reset(
  world: World,
  node: FakeNode,
  { id: browser, claim, fence }: Extract<Browser, { state: "resetting" }>,
): Promise<void> {
  const slot = node.slots.get(browser);
  if (!slot) return;
  await cut(slot, fence);
  if (world.fails(0.05)) return await endHere(world, node, { browser, why: "not_clean" });
  await world.bed.reports.freed(browser, claim);
}

/** Ends a launch that is under way, in success or failure. */
export async function finishLaunch(world: World): Promise<void> {
  const node = world.random.pick(world.nodes.filter(isHeard).filter(({ launching }) => launching.size > 0));
  const [browser, claim] = world.random.pick([...(node?.launching ?? [])]) ?? [];
  if (!node || !browser || !claim) return;
  node.launching.delete(browser);
  if (node.isSick || world.fails(0.04)) return await failLaunch(world, node, { browser, claim });
  if (node.failures > 0) await world.bed.nodes.wake(node.id);
  node.failures = 0;
  node.slots.set(browser, newSlot(world, browser));
  await markLaunch(world, node, browser);
  const outcome = await world.bed.reports.launched(browser, claim, "{}");
  world.note(`launched ${browser}: ${outcome}`);
  if (outcome === "stale") node.slots.delete(browser);
}

/** Reports a failed launch, and rests the node as node/launch-health.ts does. */
async function failLaunch(
  world: World,
  node: FakeNode,
  { browser, claim }: { browser: BrowserId; claim: ClaimId },
): Promise<void> {
  node.failures += 1;
  await world.bed.nodes.rest(node.id, Math.min(3000, 200 * 2 ** (node.failures - 1)));
  world.note(
    `launch of ${browser} failed: ${await world.bed.reports.launchFailed(browser, claim, "no display")}`,
  );
}

/** A Chromium dies; its node's report may be lost with the connection to Redis. */
export async function crash(world: World): Promise<void> {
  const node = world.random.pick(world.nodes.filter(({ slots }) => slots.size > 0));
  const browser = world.random.pick([...(node?.slots.keys() ?? [])]);
  if (!node || !browser) return;
  if (!node.isFrozen && !world.random.chance(0.2))
    return await endHere(world, node, { browser, why: "crashed" });
  world.note(`${browser} crashed unheard`);
  node.slots.delete(browser);
}

async function endHere(
  world: World,
  node: FakeNode,
  { browser, why }: { browser: BrowserId; why: "crashed" | "not_clean" | "missing" },
): Promise<void> {
  world.cause = { kind: "end", browser };
  node.slots.delete(browser);
  const told = await world.bed.reports.end(browser, why, "it is over");
  world.note(`end ${browser} ${why}: ${told.kind}`);
  if (told.kind !== "unknown" && !world.fails(0.1)) await world.bed.reports.gone(browser, told.claim);
}

/** A node compares its records with its slots, and ends a browser that has only one of the two. */
export async function keep(world: World, node: FakeNode | undefined): Promise<void> {
  if (!node || node.isFrozen) return;
  const records = new Map<BrowserId, Browser>();
  for (const partition of world.partitions()) {
    const { browsers } = await world.bed.poolStore.browsers(partition);
    for (const browser of browsers.filter((one) => one.node === node.id)) records.set(browser.id, browser);
  }
  for (const id of node.slots.keys()) if (!records.has(id)) node.slots.delete(id);
  const widow = [...records.values()].find(
    ({ id, state }) => ["idle", "leased", "resetting"].includes(state) && !node.slots.has(id),
  );
  if (widow) return await endHere(world, node, { browser: widow.id, why: "missing" });
  for (const [id, slot] of node.slots) {
    const record = records.get(id);
    if (record && (await keepSlot(world, { node, slot }, record))) return;
  }
}

/** Does what node/reconciler.ts does for one slot. True where it did anything. */
async function keepSlot(
  world: World,
  at: { node: FakeNode; slot: Slot },
  { id, state, lease, claim }: AnyRecord,
): Promise<boolean> {
  const { node, slot } = at;
  const { activity } = slot;
  if (state === "leased" && lease && activity.isOver(lease.id)) {
    await endHere(world, node, { browser: id, why: "not_clean" });
    return true;
  }
  if (state === "launching" && claim) {
    await reportLaunched(world, at, claim);
    return true;
  }
  const isClear = slot.unknownLease === undefined && activity.rivalsOf(lease?.id).length === 0;
  if (state === "idle" && !isClear) await clear(world, at);
  if (state === "leased" && lease) await begin(world, at, lease.id);
  return !isClear;
}

/** Reports again a browser that was launched under an earlier claim, which Redis has forgotten. */
async function reportLaunched(
  world: World,
  { node, slot }: { node: FakeNode; slot: Slot },
  claim: ClaimId,
): Promise<void> {
  if (slot.activity.lease || slot.activity.rivalsOf(undefined).length > 0)
    return await endHere(world, node, { browser: slot.id, why: "not_clean" });
  await markLaunch(world, node, slot.id);
  world.note(`launched ${slot.id} again: ${await world.bed.reports.launched(slot.id, claim, "{}")}`);
}

/** A node finds a lease inactive; it asks the script to end it in a later step. */
export async function findInactive(world: World): Promise<void> {
  const node = world.random.pick(world.nodes.filter(isHeard));
  const browser = world.random.pick([...(node?.slots.keys() ?? [])]);
  if (node && browser) await findInactiveAt(world, node, browser);
}

export async function findInactiveAt(world: World, node: FakeNode, browser: BrowserId): Promise<void> {
  const slot = node.slots.get(browser);
  if (!slot) return;
  const record = (await world.bed.poolStore.findBrowser(browser))?.browser;
  const lease = leaseOf(record);
  // A client whose upgrade is under way counts as active: it is registered before the upgrade is accepted.
  if (!lease || slot.sockets.size > 0 || isOpening(world, lease.id)) return;
  const since = Math.max(slot.lastActiveAt, world.shadow.leases.get(lease.id)?.grantedAt ?? world.now);
  if (world.now - since < lease.timeoutSeconds * 1000) return;
  world.expiries.push({ browser, lease: lease.id, registrations: lease.registrations });
}

const isOpening = (world: World, lease: LeaseId): boolean =>
  world.openings.some((opening) => opening.lease === lease);

export async function expire(world: World): Promise<void> {
  const ask = world.random.take(world.expiries);
  const at = ask && world.slotOf(ask.browser);
  if (!ask || !at) return;
  // A node without a connection asks once it has one again.
  if (at.node.isFrozen) return void world.expiries.push(ask);
  world.cause = { kind: "expire", lease: ask.lease };
  const isExpired = await world.bed.reports.expire(ask);
  world.note(`expire ${ask.lease}: ${isExpired}`);
  world.isRefused = !isExpired;
  const grantedAt = world.shadow.leases.get(ask.lease)?.grantedAt ?? 0;
  if (isExpired) hold(world.now - grantedAt >= 9000, () => `${ask.lease} expired early`);
  if (isExpired)
    hold(!isOpening(world, ask.lease), () => `${ask.lease} expired while a client was on its way in`);
}
