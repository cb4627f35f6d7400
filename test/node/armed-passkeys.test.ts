import { afterEach, expect, test } from "vitest";
import { type LeaseId, newLeaseId, newRequestId } from "../../src/base/ids.js";
import type { PasskeyChange } from "../../src/node/armed-passkeys.js";
import type { PasskeyCredential } from "../../src/browser/passkeys/page-authenticators.js";
import type { Slot } from "../../src/node/slot.js";
import { fillOwner } from "../../src/spec/page-fill.js";
import { credentialOf, openRelyingParty } from "../support/vault/relying-party.js";
import { bedSeal, type NodeBed, openNodeBed } from "../support/node/node-bed.js";
import { isHeldAfter } from "../support/node/one-slot.js";
import { PoolBed } from "../support/store/pool-bed.js";

let node: NodeBed | undefined;
let count = 0;
afterEach(async () => {
  await node?.close();
  node = undefined;
});

const credential = (): PasskeyCredential => credentialOf(openRelyingParty("http://localhost"));

interface Lent {
  readonly bed: NodeBed;
  readonly slot: Slot;
  readonly lease: LeaseId;
  readonly pool: PoolBed;
}

async function lent(over: Parameters<typeof PoolBed.create>[1] = {}): Promise<Lent> {
  const bed = (node = await openNodeBed(`armedpasskeys${(count += 1)}`, { isReal: true, isDriven: true }));
  const pool = await PoolBed.create(bed.bed, { size: 1, ...over });
  const [browser] = await pool.claim(1);
  if (!browser) throw new Error("nothing was claimed");
  await bed.launch(browser);
  const held = await pool.lend();
  const slot = bed.slots.find(held.id);
  if (!slot) throw new Error("no slot");
  return { bed, slot, lease: held.lease, pool };
}

const ask = ({ bed: { leaseCommands }, slot, lease }: Omit<Lent, "pool">, change: PasskeyChange) =>
  leaseCommands.receiveDirectly({
    kind: "ask",
    question: newRequestId(),
    control: "control" as never,
    browser: slot.id,
    lease,
    what: { kind: "passkey", sealed: bedSeal.close(JSON.stringify(change), fillOwner(slot.id, lease)) },
  });
const isArmed = ({ bridge }: Slot): boolean => bridge.filled.isArmed;

test("a passkey is in a browser for the time that it was given for, and no longer", async () => {
  const { bed, slot, lease } = await lent();
  expect(await ask({ bed, slot, lease }, { credential: credential(), forMs: 1000 })).toEqual({
    isDone: true,
  });
  await bed.clock.advance(999);
  expect(isArmed(slot)).toBe(true);
  await bed.clock.advance(1);
  await expect.poll(() => isArmed(slot)).toBe(false);
});

test("another takes its place, and none at all takes it away", async () => {
  const { bed, slot, lease } = await lent();
  for (const forMs of [1000, 5000])
    expect(await ask({ bed, slot, lease }, { credential: credential(), forMs })).toEqual({ isDone: true });
  // The time of the first is over: that was ended with it.
  await bed.clock.advance(1500);
  expect(isArmed(slot)).toBe(true);
  expect(await ask({ bed, slot, lease }, { forMs: 0 })).toEqual({ isDone: true });
  expect(isArmed(slot)).toBe(false);
});

test("it goes with a restart of Chromium", async () => {
  const { bed, slot, lease } = await lent();
  expect(await ask({ bed, slot, lease }, { credential: credential(), forMs: 60_000 })).toEqual({
    isDone: true,
  });
  await slot.activity.interrupt("the browser restarts");
  expect(isArmed(slot)).toBe(false);
});

test("it goes with its lease, and is given for no other", async () => {
  const { bed, slot, lease } = await lent();
  expect(await ask({ bed, slot, lease }, { credential: credential(), forMs: 60_000 })).toEqual({
    isDone: true,
  });
  const other = newLeaseId();
  expect(await ask({ bed, slot, lease: other }, { credential: credential(), forMs: 60_000 })).toMatchObject({
    isDone: false,
  });
  expect(isArmed(slot)).toBe(true);
  await slot.activity.cutLease(lease, "released");
  expect(isArmed(slot)).toBe(false);
});

test("one whose lease ends while its pages are being given it is taken from them all the same", async () => {
  const { bed, slot, lease } = await lent();
  const { chromium } = slot;
  const arm = chromium.armPasskey.bind(chromium);
  let cut: Promise<void> | undefined;
  let taken = 0;
  chromium.armPasskey = async (...given) => {
    const take = await arm(...given);
    cut = slot.activity.cutLease(lease, "released");
    return async () => {
      await take();
      taken += 1;
    };
  };
  await ask({ bed, slot, lease }, { credential: credential(), forMs: 60_000 });
  await cut;
  expect([taken, isArmed(slot)]).toEqual([1, false]);
});

test("a lease under which nothing is active expires, whatever is armed", async () => {
  const { bed, slot, lease, pool } = await lent({ timeout_seconds: 10 });
  await bed.reconciler.look();
  await bed.clock.advance(5000);
  expect(await ask({ bed, slot, lease }, { credential: credential(), forMs: 600_000 })).toEqual({
    isDone: true,
  });
  expect(slot.activity.hasVisitors).toBe(false);
  await pool.age(20_000);
  expect(await isHeldAfter({ bed, pool, slot }, 9000)).toBe(true);
  expect(await isHeldAfter({ bed, pool, slot }, 1000)).toBe(false);
});
