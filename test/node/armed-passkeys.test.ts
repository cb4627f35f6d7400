import { afterEach, expect, test } from "vitest";
import { done, refusal, RemudaError } from "../../src/base/errors.js";
import { type LeaseId, newLeaseId, newRequestId } from "../../src/base/ids.js";
import { ArmedPasskeys, type PasskeyChange } from "../../src/node/armed-passkeys.js";
import type { PasskeyCredential } from "../../src/browser/passkeys/page-authenticators.js";
import type { Slot } from "../../src/node/slot.js";
import { fillOwner } from "../../src/spec/page-fill.js";
import { silentLog } from "../support/browser/chromium-host.js";
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

async function lent(
  over: Parameters<typeof PoolBed.create>[1] = {},
  options: Parameters<typeof openNodeBed>[1] = {},
): Promise<Lent> {
  const name = `armedpasskeys${(count += 1)}`;
  const bed = (node = await openNodeBed(name, { isReal: true, isDriven: true, ...options }));
  const pool = await PoolBed.create(bed.bed, { size: 1, ...over });
  const [browser] = await pool.claim(1);
  if (!browser) throw new Error("nothing was claimed");
  await bed.launch(browser);
  const held = await pool.lend();
  const slot = bed.slots.find(held.id);
  if (!slot) throw new Error("no slot");
  return { bed, slot, lease: held.lease, pool };
}

const ask = (
  { bed: { leaseCommands }, slot, lease }: Omit<Lent, "pool">,
  { owner = "an item's field", ...change }: Omit<PasskeyChange, "owner"> & { readonly owner?: string },
) =>
  leaseCommands.receiveDirectly({
    kind: "ask",
    question: newRequestId(),
    control: "control" as never,
    browser: slot.id,
    lease,
    what: {
      kind: "passkey",
      sealed: bedSeal.close(JSON.stringify({ owner, ...change }), fillOwner(slot.id, lease)),
    },
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

test("the owner's next takes its place, and none at all takes it away", async () => {
  const { bed, slot, lease } = await lent();
  for (const forMs of [1000, 5000])
    expect(await ask({ bed, slot, lease }, { credential: credential(), forMs })).toEqual({ isDone: true });
  // The time of the first is over: that was ended with it.
  await bed.clock.advance(1500);
  expect(isArmed(slot)).toBe(true);
  expect(await ask({ bed, slot, lease }, { forMs: 0 })).toEqual({ isDone: true });
  expect(isArmed(slot)).toBe(false);
});

test.each([
  ["armed", { credential: credential() }],
  ["waited for", { isRegistering: true }],
])(
  "while one is %s, nobody but its owner takes it from the browser or has another put there",
  async (_, has) => {
    const { bed, slot, lease } = await lent();
    const mine = { ...has, owner: "mine", forMs: 1000 };
    expect(await ask({ bed, slot, lease }, mine)).toEqual({ isDone: true });
    for (const other of [{ credential: credential() }, { isRegistering: true }])
      expect(await ask({ bed, slot, lease }, { ...other, owner: "another's", forMs: 60_000 })).toEqual({
        isDone: false,
        code: "conflict",
        text: "The browser has another passkey",
      });
    // The other has none there, which is what it asks for.
    expect(await ask({ bed, slot, lease }, { owner: "another's", forMs: 0 })).toEqual({ isDone: true });
    await bed.clock.advance(999);
    expect(isArmed(slot)).toBe(true);
    expect(await ask({ bed, slot, lease }, { owner: "mine", forMs: 0 })).toEqual({ isDone: true });
    expect(isArmed(slot)).toBe(false);
    const next = { credential: credential(), owner: "another's", forMs: 1000 };
    expect(await ask({ bed, slot, lease }, next)).toEqual({ isDone: true });
  },
);

test("one whose order comes too late when its turn has come is not given", async () => {
  let isLate = false;
  const late = refusal("node_silent");
  const refuseLate = async () => (isLate ? late : undefined);
  const { bed, slot, lease } = await lent({}, { refuseLate });
  let goOn = (): void => {};
  const turn = slot.inTurn(() => new Promise<void>((resolve) => (goOn = resolve)));
  const asked = ask({ bed, slot, lease }, { credential: credential(), forMs: 60_000 });
  await expect.poll(() => slot.activity.hasVisitors).toBe(true);
  isLate = true;
  goOn();
  await turn;
  expect(await asked).toEqual({ isDone: false, code: "node_silent", text: late.message });
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

test("what a page has made is kept once Redis is back; that is waited for as long as a browser may have it, or until the node stops", async () => {
  const { bed, slot, lease } = await lent();
  const forMs = 5000;
  // Begins the lease.
  await ask({ bed, slot, lease }, { forMs: 0 });
  const { chromium } = slot;
  const arm = chromium.armPasskey.bind(chromium);
  let make = (): void => {};
  chromium.armPasskey = async (given, events) => {
    make = () => events?.added?.(credential());
    return await arm(given, events);
  };
  let fault = new RemudaError("store_unavailable");
  let isAway = true;
  let [asked, kept] = [0, 0];
  const passkeys = new ArmedPasskeys({
    seal: bedSeal,
    clock: bed.clock,
    log: silentLog,
    refuseLate: async () => undefined,
    openPasskey: async (order) => done(JSON.parse(order) as PasskeyChange),
    async keepPasskey() {
      asked += 1;
      if (isAway) throw fault;
      kept += 1;
      return done(null);
    },
  });
  const change = { owner: "an item's field", isRegistering: true, forMs };
  const sealed = bedSeal.close(JSON.stringify(change), fillOwner(slot.id, lease));
  expect(await passkeys.change(slot, lease, sealed)).toEqual({ isDone: true });
  /** Time goes on while it is not kept; gives how often that was tried. */
  const triesIn = async (seconds: number): Promise<number> => {
    const before = asked;
    make();
    for (let second = 0; second < seconds; second += 1) {
      await expect.poll(() => asked).toBeGreaterThan(before);
      await bed.clock.advance(1000);
    }
    return asked - before;
  };

  expect(await triesIn(3)).toBe(4);
  isAway = false;
  await bed.clock.advance(1000);
  expect(kept).toBe(1);
  await bed.clock.advance(1000);
  expect(kept).toBe(1);

  isAway = true;
  fault = new RemudaError("unavailable");
  expect(await triesIn(20)).toBe(6);
  fault = new RemudaError("secret_unreadable");
  expect(await triesIn(3)).toBe(1);

  fault = new RemudaError("store_unavailable");
  expect(await triesIn(0)).toBe(1);
  isAway = false;
  await passkeys.close();
  expect(kept).toBe(2);
});
