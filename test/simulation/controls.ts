import { launchFacts } from "../support/store/store-bed.js";
import {
  type ControlId,
  findBrowserId,
  type LeaseId,
  onDemandPartition,
  type PoolId,
  type RequestId,
} from "../../src/base/ids.js";
import type { LeasedBrowser } from "../../src/pool/browser.js";
import type { IdempotencyKey, Waiter } from "../../src/pool/ports/pool-store.js";
import type { AcquireReply, CreateReply } from "../../src/pool/ports/store-replies.js";
import { poolSpec, writeOf } from "../support/store/store-bed.js";
import { hold } from "./shadow.js";
import { type Ask, type Caller, type Control, isHeard } from "./model.js";
import type { World } from "./world.js";

export function startControl(world: World): Control {
  const control: Control = {
    id: world.random.id(12) as ControlId,
    isAlive: true,
    isPaused: false,
    isStopped: false,
    unheardUntil: 0,
    delivered: [],
    lost: [],
  };
  world.controls.push(control);
  world.ids.add(control.id);
  return control;
}

export function killControl(world: World): void {
  const control = world.random.take(world.controls);
  if (!control) return;
  world.note(`control ${control.id} dies`);
  control.isAlive = false;
  for (const caller of world.callers) if (caller.control === control) caller.phase = "over";
  startControl(world);
}

export async function pauseOrResume(world: World): Promise<void> {
  const control = world.random.pick(world.controls);
  if (!control) return;
  control.isPaused = !control.isPaused;
  control.unheardUntil = world.now + 1;
  world.note(`control ${control.id} ${control.isPaused ? "pauses" : "resumes"}`);
  if (!control.isPaused) await world.beat();
}

/** Sends a new request, or a retry of an earlier one under its key. */
export async function askAnything(world: World): Promise<void> {
  const { random } = world;
  const control = random.pick(world.controls.filter(({ isStopped }) => !isStopped));
  const partition = random.chance(0.1) ? onDemandPartition : world.pool?.partition;
  if (!control || !partition) return;
  const retried = random.chance(0.4)
    ? random.pick(world.asks.filter((one) => one.waiter.key).slice(-(random.chance(0.7) ? 4 : 40)))
    : undefined;
  const connection = world.request();
  const base = retried?.waiter ?? freshWaiter(world, connection);
  const waiter: Waiter = {
    ...base,
    id: connection,
    lease: random.id(24) as LeaseId,
    control: control.id,
    connection,
  };
  const body = retried && random.chance(0.95) ? retried.body : random.id(6);
  const one: Ask = retried ?? { waiter, partition, body, requests: 0 };
  one.requests += 1;
  if (!retried) world.asks = [...world.asks.slice(-40), one];
  await request(world, { ask: one, waiter, body, control });
}

function freshWaiter(world: World, id: RequestId): Omit<Waiter, "control" | "connection" | "lease"> {
  const { random } = world;
  return {
    id,
    ...(random.chance(0.4) ? { key: random.id(8) } : {}),
    ...(random.chance(0.3) ? { name: `name${random.below(6)}` } : {}),
    ...(random.chance(0.1) ? { startUrl: "https://example.com/" } : {}),
    timeoutSeconds: 20,
  };
}

interface Asking {
  readonly ask: Ask;
  readonly waiter: Waiter;
  readonly body: string;
  readonly control: Control;
}

/**
 * Does what lease/acquire.ts and lease/create-session.ts do: reserves the name, runs the script, and gives
 * the name back where it is not needed.
 */
async function request(world: World, asking: Asking): Promise<void> {
  const { bed } = world;
  const {
    waiter,
    ask: { partition },
  } = asking;
  const { name } = waiter;
  const idempotencyKey = waiter.key === undefined ? undefined : { key: waiter.key, body: asking.body };
  const isOurs =
    name === undefined ||
    (await bed.projects.reserveName({ kind: "session", name, owner: waiter.lease, partition }));
  if (!isOurs) {
    const held = await bed.projects.findName("session", name);
    const earlier = idempotencyKey && (await bed.poolStore.findByKey(partition, idempotencyKey.key));
    if (!held || earlier?.lease !== held.owner) return void (world.isRefused = true);
  }
  const call = await prepare(world, asking, idempotencyKey);
  const reply = await world.repeatably(call, (one) => one.kind);
  world.isRefused =
    reply.kind === "mismatch" ||
    reply.kind === "over" ||
    reply.kind === "missing" ||
    reply.kind === "unsupported";
  const lease = seat(world, asking, reply);
  if (lease) world.speakers.set(lease, asking.control);
  if (isOurs && name !== undefined && lease !== waiter.lease)
    await bed.projects.freeName({ kind: "session", name, owner: waiter.lease });
}

type Call = () => Promise<AcquireReply | CreateReply>;

async function prepare(
  world: World,
  { waiter, control, ask: { partition } }: Asking,
  idempotencyKey: IdempotencyKey | undefined,
): Promise<Call> {
  const { bed, random, pool } = world;
  if (partition === onDemandPartition) return await prepareSession(world, waiter, { idempotencyKey });
  const id = pool?.partition === partition ? pool.id : ((partition + random.id(12)) as PoolId);
  const mayWait = random.chance(0.8);
  world.note(`acquire ${waiter.connection} by ${control.id} key ${waiter.key ?? ""}`);
  return () =>
    bed.poolStore.acquire(partition, {
      pool: id,
      waiter,
      mayWait,
      ...(idempotencyKey ? { idempotencyKey } : {}),
    });
}

async function prepareSession(
  world: World,
  waiter: Waiter,
  { idempotencyKey, isAgain = false }: { idempotencyKey?: IdempotencyKey | undefined; isAgain?: boolean },
): Promise<Call> {
  const { bed, random } = world;
  const id = findBrowserId(onDemandPartition + random.id(12));
  const node = random.pick(world.nodes.filter((one) => !one.drain && isHeard(one)));
  if (!id || !node || !(await bed.nodes.reserveRoom(world.factsOf(node), { id, bytes: 1 })))
    return () => Promise.resolve({ kind: "full" });
  world.nodeOf.set(id, node.id);
  const candidate = { id, node: node.id, facts: JSON.stringify(launchFacts) };
  world.note(`create ${id} on ${node.id} for ${waiter.connection}`);
  const ask = {
    candidate,
    waiter,
    template: writeOf(poolSpec()).template,
    ...(idempotencyKey ? { idempotencyKey } : {}),
    ...(isAgain ? { relaunch: world.request() } : {}),
  };
  return async () => {
    const reply = await bed.poolStore.createSession(onDemandPartition, ask);
    if (reply.kind !== "claimed") await bed.nodes.freeRoom(node.id, id);
    else if (reply.browser.claim)
      bed.jobs.push({ kind: "launch", node: node.id, browser: id, claim: reply.browser.claim });
    return reply;
  };
}

/** A launch for a caller has failed: another node tries it, or the caller is told. */
export async function launchAgain(world: World, caller: Caller): Promise<void> {
  const { waiter: id, lease, connection } = caller;
  if (world.random.chance(0.3)) return await withdraw(world, caller, false);
  const call = await prepareSession(
    world,
    { ...caller.ask.waiter, id, lease, connection, control: caller.control.id },
    { isAgain: true },
  );
  const { kind } = await world.repeatably(call, (reply) => reply.kind);
  world.note(`${connection} has it launched again: ${kind}`);
  if (kind !== "claimed") await withdraw(world, caller, false);
}

/** Records what the caller was answered. Gives the lease it has, or will have. */
function seat(
  world: World,
  { ask: one, waiter, control }: Asking,
  reply: AcquireReply | CreateReply,
): LeaseId | undefined {
  const place = { connection: waiter.connection, control, partition: one.partition, ask: one };
  if (reply.kind === "granted") {
    const lease = reply.browser.lease.id;
    hold(lease !== undefined, () => "a grant without a lease");
    const shadow = world.shadow.leases.get(lease);
    if (shadow) shadow.isDoubtful = false;
    world.told.set(lease, reply.browser.id);
    world.callers.push({ ...place, waiter: waiter.id, lease, phase: "granted" });
    return lease;
  }
  if (reply.kind !== "waiting" && reply.kind !== "claimed") return undefined;
  const { waiter: id, lease } = reply;
  world.callers.push({
    ...place,
    waiter: id,
    lease,
    phase: "waiting",
    ...(reply.kind === "waiting" && { stored: reply.stored }),
  });
  return lease;
}

export const isServed = (caller: Caller): boolean => caller.phase === "granted";

/** Sends a grant's reply, which reaches its caller or is lost. */
export function flushReply(world: World, caller: Caller | undefined, isLost: boolean): void {
  if (caller?.phase !== "granted") return;
  caller.phase = "over";
  const { partition, lease, control } = caller;
  world.note(`reply ${lease} ${isLost ? "lost" : "delivered"}`);
  (isLost ? control.lost : control.delivered).push({ partition, lease });
  const held = world.shadow.leases.get(lease);
  if (isLost || !held) return;
  if (!world.holders.some((holder) => holder.lease === lease)) {
    world.holders.push({
      lease,
      browser: held.browser,
      partition,
      ...(caller.ask.waiter.name ? { name: caller.ask.waiter.name } : {}),
    });
  }
}

export async function confirm(world: World, control: Control | undefined): Promise<void> {
  const all = control?.delivered.splice(0) ?? [];
  for (const partition of new Set(all.map((one) => one.partition))) {
    const leases = all.filter((one) => one.partition === partition).map((one) => one.lease);
    world.note(`confirm ${leases.join(" ")}`);
    await world.bed.poolStore.confirm(partition, leases);
    for (const held of leases.flatMap((lease) => world.shadow.leases.get(lease) ?? []))
      held.isConfirmed = true;
  }
}

export async function undo(world: World, control: Control | undefined): Promise<void> {
  const lost = control && world.random.take(control.lost);
  if (!lost) return;
  world.cause = { kind: "undo", lease: lost.lease };
  const id = world.request();
  const reply = await world.repeatably(
    () => world.bed.poolStore.undo(lost.partition, lost.lease, id),
    (kind) => {
      world.isRefused = kind === "over" || kind === "opened";
      return kind;
    },
  );
  world.note(`undo ${lost.lease}: ${reply}`);
  const held = world.shadow.leases.get(lost.lease);
  if (reply === "kept" && held) held.isDoubtful = true;
}

/** Takes back a request whose time is over or whose caller has hung up. */
export async function withdraw(world: World, caller: Caller | undefined, isGone: boolean): Promise<void> {
  if (caller?.phase !== "waiting") return;
  const { partition, waiter, connection, lease } = caller;
  const reply = await world.bed.poolStore.withdraw(partition, { waiter, connection, lease });
  world.note(`withdraw ${connection}: ${reply.kind}`);
  if (reply.kind === "kept") displace(world, lease);
  if (reply.kind !== "granted") return void (caller.phase = "over");
  world.told.set(lease, reply.browser.id);
  caller.phase = "granted";
  if (isGone) flushReply(world, caller, true);
}

/** A retry has taken the place of whoever else waits for this lease, and has gone. */
function displace(world: World, lease: LeaseId): void {
  for (const caller of world.callers.filter((one) => one.lease === lease)) caller.isDisplaced = true;
}

/** Does what a control's tick does for one waiter: its message may have been lost, so the record is read. */
export async function lookAfter(world: World, caller: Caller | undefined): Promise<void> {
  if (caller?.phase !== "waiting") return;
  const held = await world.bed.poolStore.findHeld(caller.partition, caller.lease);
  if (held) served(world, caller, held.browser);
}

export function served(world: World, caller: Caller, browser: LeasedBrowser): void {
  hold(browser.lease.id === caller.lease, () => `${caller.connection} was served with ${browser.lease.id}`);
  world.told.set(caller.lease, browser.id);
  caller.phase = "granted";
  caller.isDisplaced = false;
  world.note(`${caller.connection} learns of ${caller.lease}`);
}
