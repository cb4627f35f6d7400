import { afterEach, beforeEach, expect, test } from "vitest";
import type { ClaimId } from "../../../src/base/ids.js";
import { CurlFailure } from "../../../src/egress/curl.js";
import type { NodeMessage } from "../../../src/pool/ports/messages.js";
import type { Slot } from "../../../src/node/slot.js";
import { until } from "../../support/browser/chromium-until.js";
import { openSite, type Site } from "../../support/browser/chromium-site.js";
import { type NodeBed, openNodeBed } from "../../support/node/node-bed.js";
import { oneSlot, seatClient, takeSnapshot } from "../../support/node/one-slot.js";
import { type Held, PoolBed } from "../../support/store/pool-bed.js";
import { request } from "../../support/store/store-bed.js";

let node: NodeBed;
let site: Site;
let count = 0;
beforeEach(async () => {
  [node, site] = await Promise.all([openNodeBed(`late${(count += 1)}`), openSite()]);
});
afterEach(async () => {
  await node.close();
  await site.close();
});

const one = (over: Parameters<typeof PoolBed.create>[1] = {}) => oneSlot(node, over);
const snapshot = () => takeSnapshot(node);

async function leased(): Promise<{ pool: PoolBed; slot: Slot; held: Held }> {
  const { pool, slot } = await one();
  return { pool, slot, held: await pool.lend() };
}

const comes = (slot: Slot, { lease }: Held): Promise<boolean> => seatClient(node, slot, { lease });

const ask = (pool: PoolBed, { id, lease }: Held, network: { allowedHosts?: string }) =>
  node.bed.poolStore.touch(pool.partition, {
    browser: id,
    lease,
    change: { set: {}, clear: [], touched: true, network },
    request: request(),
  });

/** Gives the claim by which a node ends the fence or the reset of a browser. */
async function claimFor(pool: PoolBed, { id }: Pick<Held, "id">): Promise<ClaimId> {
  const { claim } = await pool.record(id);
  if (!claim) throw new Error("it is neither fenced nor reset");
  return claim;
}

/** The word that a lease is over, as it goes to the node. */
async function fenceOf(pool: PoolBed, { id, lease }: Held, mode: "none" | "state"): Promise<NodeMessage> {
  const claim = await claimFor(pool, { id });
  return { kind: "fence", browser: id, lease, claim, mode };
}

/** What a request through the browser's way out comes to: `200`, or which rule denies it. */
async function reach(slot: Slot): Promise<unknown> {
  const asked = { url: site.origin, method: "GET", headers: {}, timeoutMs: 60_000 };
  return await slot.curl(asked, new AbortController().signal).then(
    ({ status }) => status,
    (error: unknown) => (error instanceof CurlFailure ? error.by : error),
  );
}

test("the end of a lease, heard a second time, takes nothing from the next holder", async () => {
  const { pool, slot, held } = await leased();
  await comes(slot, held);
  await pool.release(held);
  const fence = await fenceOf(pool, held, "none");
  await node.leaseCommands.receiveDirectly(fence);
  const next = await pool.lend();
  expect([next.id, await comes(slot, next)]).toEqual([held.id, true]);
  await ask(pool, next, { allowedHosts: '["a.example"]' });
  expect(await node.networkSync.sync(slot, 1)).toBe(true);
  expect(await reach(slot)).toBe("allowed_hosts");
  await node.leaseCommands.receiveDirectly(fence);
  expect(await reach(slot)).toBe("allowed_hosts");
});

test("a change is in force only when it is, also where a failover has forgotten an earlier one that was", async () => {
  const { pool, slot, held } = await leased();
  await comes(slot, held);
  const restore = await snapshot();
  await ask(pool, held, { allowedHosts: "null" });
  expect(await node.networkSync.sync(slot, (await pool.record(held.id)).lease?.networkWanted?.revision)).toBe(
    true,
  );
  await restore();
  await ask(pool, held, { allowedHosts: '["a.example"]' });
  const change = (await pool.record(held.id)).lease?.networkWanted;
  if (!change) throw new Error("nothing was asked for");
  node.broken.add("findBrowser");
  expect(
    await node.networkSync.sync(slot, change.revision, { lease: held.lease, change, isWanted: () => true }),
  ).toBe(true);
  expect(await reach(slot)).toBe("allowed_hosts");
  node.broken.clear();
});

test.each(["state", "relaunch"] as const)(
  "where a pool resets by %s, a browser is nobody else's whose lease Redis forgot together with its end",
  async (reset_on_release) => {
    const { pool, slot } = await one({ reset_on_release });
    const restore = await snapshot();
    const held = await pool.lend();
    await comes(slot, held);
    await pool.release(held);
    await node.leaseCommands.receiveDirectly(
      reset_on_release === "state"
        ? await fenceOf(pool, held, "state")
        : { kind: "cut", browser: held.id, lease: held.lease, why: "released" },
    );
    await restore();
    const next = await pool.lend();
    expect([next.id, await comes(slot, next)]).toEqual([held.id, false]);
    expect(await pool.state(held.id)).toBe("gone");
  },
);

test("a browser whose end this node has heard directly is nobody else's, though Redis forgot its lease and its end", async () => {
  const { pool } = await one();
  const restore = await snapshot();
  const held = await pool.lend();
  await node.leaseCommands.receiveDirectly({
    kind: "cut",
    browser: held.id,
    lease: held.lease,
    why: "released",
  });
  await restore();
  expect(await pool.state(held.id)).toBe("idle");
  await node.reconciler.look();
  await until("its end", async () => (await pool.state(held.id)) === "gone");
});

test("a browser that was reset is the next holder's, whatever Redis has forgotten", async () => {
  const { pool, slot } = await one({ reset_on_release: "state" });
  const restore = await snapshot();
  const held = await pool.lend();
  await comes(slot, held);
  await pool.release(held);
  const claim = await claimFor(pool, held);
  await node.leaseCommands.receiveDirectly(await fenceOf(pool, held, "state"));
  await node.leaseCommands.reset({ browser: held.id, claim });
  expect(await pool.state(held.id)).toBe("idle");
  await restore();
  const next = await pool.lend();
  expect([next.id, await comes(slot, next)]).toEqual([held.id, true]);
});

test("a reset that is asked for again while it is under way is done once, and the browser is idle by the later claim", async () => {
  const { pool, slot } = await one({ reset_on_release: "state" });
  const held = await pool.lend();
  await comes(slot, held);
  await pool.release(held);
  const { chromium } = slot;
  const reset = chromium.reset.bind(chromium);
  let goOn = (): void => {};
  const mayGoOn = new Promise<void>((resolve) => (goOn = resolve));
  let resets = 0;
  chromium.reset = async (limitMs) => {
    resets += 1;
    await mayGoOn;
    return await reset(limitMs);
  };
  const claim = await claimFor(pool, held);
  const first = node.leaseCommands.reset({ browser: held.id, claim });
  await until("the first reset", async () => resets === 1);
  await pool.age(16_000);
  await pool.bed.poolStore.reap(pool.partition);
  const later = await claimFor(pool, held);
  expect(later).not.toBe(claim);
  await node.leaseCommands.reset({ browser: held.id, claim: later });
  goOn();
  await first;
  expect([resets, await pool.state(held.id)]).toEqual([1, "idle"]);
});

test("the reset after the next lease is done for itself, where the answer to the end of the one before is late", async () => {
  const { pool, slot } = await one({ reset_on_release: "state" });
  const { chromium } = slot;
  const { reports } = node.bed;
  const [reset, freed] = [chromium.reset.bind(chromium), reports.freed.bind(reports)];
  let resets = 0;
  chromium.reset = (limitMs) => {
    resets += 1;
    return reset(limitMs);
  };
  let answer = (): void => {};
  const isAnswered = new Promise<void>((resolve) => (answer = resolve));
  reports.freed = async (...given) => {
    const outcome = await freed(...given);
    await isAnswered;
    return outcome;
  };
  const isReset = async (held: Held): Promise<{ done: Promise<void> }> => {
    await comes(slot, held);
    await pool.release(held);
    return { done: node.leaseCommands.reset({ browser: held.id, claim: await claimFor(pool, held) }) };
  };
  const held = await pool.lend();
  const first = await isReset(held);
  await until("its place among the idle", async () => (await pool.state(held.id)) === "idle");
  const next = await pool.lend();
  const second = await isReset(next);
  // Redis answers in turn: the node knows by then that this browser is to be reset.
  expect(await pool.state(held.id)).toBe("resetting");
  answer();
  await Promise.all([first.done, second.done]);
  expect([next.id, resets, await pool.state(held.id)]).toEqual([held.id, 2, "idle"]);
});
