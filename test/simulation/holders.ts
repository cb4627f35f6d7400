import { findLeaseId, type LeaseId } from "../../src/base/ids.js";
import { begin, type Slot } from "./begin.js";
import { hold, type ShadowLease } from "./shadow.js";
import type { Holder, Release } from "./model.js";
import type { World } from "./world.js";

/** For this long after the lease's end a retry that names no lease is safe (docs/api.md#release). */
const retryWindowMs = 110_000;

/**
 * The holder's lease, if it is still of the same browser: after a failover a waiter may be served a second
 * time, with another browser.
 */
function liveOf({ shadow }: World, { lease, browser }: Holder): ShadowLease | undefined {
  const live = shadow.leases.get(lease);
  return live?.browser === browser ? live : undefined;
}

const drop = (world: World, holder: Holder): void => {
  world.holders = world.holders.filter((one) => one !== holder);
};

/** A holder is done. Its release may be lost on the way and be tried again, late or twice. */
export async function release(world: World): Promise<void> {
  const { random } = world;
  const holder = random.pick(world.holders);
  if (!holder) return;
  drop(world, holder);
  // A release that names no lease means whoever holds the session when it arrives, so only a holder may be
  // the first to send one.
  const isNamed = !liveOf(world, holder) || random.chance(0.6);
  const first: Release = { holder, isNamed, isRetry: false, since: world.now };
  if (random.chance(0.2)) return void world.releases.push({ ...first, isRetry: true });
  await send(world, first);
  if (random.chance(0.3)) world.releases.push({ ...first, isRetry: true });
}

export async function releaseLate(world: World): Promise<void> {
  const late = world.random.take(world.releases);
  if (!late) return;
  if (!late.isNamed && world.now - late.since > retryWindowMs) return;
  await send(world, late);
  if (world.random.chance(0.3)) world.releases.push(late);
}

async function send(world: World, { holder, isNamed, isRetry }: Release): Promise<void> {
  const { lease, browser, partition } = holder;
  const wasHeld = liveOf(world, holder) !== undefined;
  world.cause = { kind: "release", lease };
  const request = world.request();
  const reuse = world.random.chance(0.93);
  const ask = {
    browser,
    reuse,
    why: reuse ? "released" : "deleted",
    isRetry,
    request,
    ...(isNamed ? { lease } : {}),
  } as const;
  const reply = await world.repeatably(
    async () => (await world.bed.poolStore.release(partition, ask)).kind,
    (kind) => {
      world.isRefused = kind !== "released";
      return kind;
    },
  );
  world.note(`release ${lease} of ${browser}${isNamed ? " named" : ""}${isRetry ? " retry" : ""}: ${reply}`);
  if (isNamed || !isRetry)
    hold(
      (reply === "released") === wasHeld,
      () => `the release of ${wasHeld ? "a live" : "an old"} lease answered ${reply}`,
    );
}

/** Changes a session, as PATCH does. */
export async function touch(world: World): Promise<void> {
  const { bed, random } = world;
  const holder = random.pick(world.holders);
  if (!holder) return;
  const name = `name${random.below(6)}`;
  const { lease, browser, partition } = holder;
  if (!(await bed.projects.reserveName({ kind: "session", name, owner: lease, partition }))) return;
  const kind = random.chance(0.2) ? "altered" : "viewport";
  const change = {
    set: { name, ...(random.chance(0.3) ? { [kind]: "{}" } : {}) },
    clear: [],
    touched: random.chance(0.3),
  };
  const request = world.request();
  const reply = await world.repeatably(
    () => bed.poolStore.touch(partition, { browser, lease, change, request }),
    (one) => {
      world.isRefused = one.kind !== "touched";
      return one.kind;
    },
  );
  world.note(`touch ${lease}: ${reply.kind}`);
  hold(
    (reply.kind === "touched") === (liveOf(world, holder) !== undefined),
    () => `a touch of ${lease} answered ${reply.kind}`,
  );
  if (reply.kind !== "touched") await bed.projects.freeName({ kind: "session", name, owner: lease });
}

/** A client opens the URL. It is registered first and gets its socket later; much may happen in between. */
export async function connect(world: World): Promise<void> {
  const doubtful = world.holders.filter(({ lease }) =>
    world.expiries.some((expiry) => expiry.lease === lease),
  );
  const holder = world.random.pick(
    doubtful.length > 0 && world.random.chance(0.3) ? doubtful : world.holders,
  );
  const held = holder && world.slotOf(holder.browser);
  if (!holder || !held || held.node.isFrozen) return;
  const reply = await world.bed.reports.connect(holder.browser, holder.lease);
  world.note(`connect ${holder.lease}: ${reply.kind}`);
  const lease = liveOf(world, holder);
  hold(
    (reply.kind === "connected") === (lease !== undefined),
    () => `a client of ${holder.lease} was ${reply.kind}`,
  );
  if (!lease || reply.kind !== "connected") return;
  lease.isOpened = true;
  held.slot.record = reply.browser;
  if (!(await begin(world, held, holder.lease))) return;
  world.openings.push({ node: held.node, browser: holder.browser, lease: holder.lease });
}

export function openSocket(world: World): void {
  const opening = world.random.take(world.openings);
  const slot = opening?.node.slots.get(opening.browser);
  if (!opening || !slot || slot.sockets.has(opening.lease)) return;
  const { lease } = opening;
  const visit = slot.activity.enter(lease, { cut: async () => void slot.sockets.delete(lease) });
  if (!visit?.confirm()) return;
  world.note(`socket ${lease}`);
  slot.sockets.set(lease, visit);
  hold(slot.sockets.size === 1, () => `${opening.browser} is driven by ${[...slot.sockets.keys()].join()}`);
}

function leaveSocket(slot: Slot, lease: LeaseId): void {
  slot.sockets.get(lease)?.end();
  slot.sockets.delete(lease);
}

export function closeSocket(world: World): void {
  const holder = world.random.pick(world.holders);
  const slot = holder && world.slotOf(holder.browser)?.slot;
  if (!holder || !slot?.sockets.has(holder.lease)) return;
  leaveSocket(slot, holder.lease);
  slot.lastActiveAt = world.now;
}

/** A holder goes and never comes back; only expiry ends its lease. */
export function vanish(world: World): void {
  const holder = world.random.pick(world.holders);
  if (!holder) return;
  drop(world, holder);
  const slot = world.slotOf(holder.browser)?.slot;
  if (slot) leaveSocket(slot, holder.lease);
  world.note(`holder of ${findLeaseId(holder.lease)} vanishes`);
}
