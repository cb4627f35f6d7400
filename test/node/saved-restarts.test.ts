import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterEach, expect, test } from "vitest";
import type { ProfileId } from "../../src/base/ids.js";
import type { Slot } from "../../src/node/slot.js";
import { until } from "../support/browser/chromium-until.js";
import { type NodeBed, openNodeBed } from "../support/node/node-bed.js";
import { oneSlot } from "../support/node/one-slot.js";
import { type Held, nodeA, PoolBed } from "../support/store/pool-bed.js";
import { claimOf } from "../support/store/store-bed.js";

let node: NodeBed;
let count = 0;
afterEach(() => node.close());

interface Restarting {
  readonly pool: PoolBed;
  readonly held: Held;
  readonly slot: Slot;
  readonly profile: ProfileId;
  readonly adding: Promise<unknown>;
}

/** A browser whose profile is to be saved, in a restart whose new Chromium has written half of its state. */
async function restarting(
  knobs: Parameters<NodeBed["fake"]["turn"]>[0],
  options: Parameters<typeof openNodeBed>[1] = {},
): Promise<Restarting> {
  node = await openNodeBed(`restarted${(count += 1)}`, options);
  const profile = await node.assets.addProfile();
  const pool = await PoolBed.create(node.bed, { size: 1 });
  const [browser] = await pool.claim(1);
  if (!browser) throw new Error("nothing was claimed");
  await node.launch(browser);
  const held = await pool.lend();
  const slot = node.slots.find(held.id);
  if (!slot) throw new Error("no slot");
  expect(await node.changeSession.change(slot, held.lease, { profile: { id: profile, save: true } })).toEqual(
    { isDone: true },
  );
  const digest = await node.assets.keep({ fake: "late", files: { "own.txt": "late" } });
  await node.fake.turn({ state: "the new state", ...knobs });
  const adding = node.uploads.add(slot, held.lease, [{ name: "late", digest }]);
  const state = join(slot.chromium.directories.profile, "Local State");
  await until("the new Chromium writes", () => existsSync(state) && readFileSync(state, "utf8") === "half");
  return { pool, held, slot, profile, adding };
}

/** Which state the profile has. */
const kept = async (profile: ProfileId): Promise<string | undefined> => {
  const tar = await node.assets.archives.open(profile);
  const content = tar && (await text(tar));
  return ["the new state", "half"].find((state) => content?.includes(state));
};

const retire = async ({ pool, held }: Restarting): Promise<void> => {
  await pool.release(held, { reuse: false });
  const claim = claimOf(await pool.record(held.id));
  await node.slots.retire({ kind: "retire", node: nodeA, browser: held.id, claim });
};

test.each([
  ["is retired", retire],
  ["has its node stopped", () => node.slots.close()],
])(
  "a browser that %s while it restarts is saved when its new Chromium has come up and written its state",
  async (_, end) => {
    const browser = await restarting({ delayMs: 500 });
    const { root } = browser.slot.chromium.directories;
    await end(browser);
    expect([node.saves.outcomes, await kept(browser.profile)]).toEqual([["saved"], "the new state"]);
    expect([node.slots.count, existsSync(root)]).toEqual([0, false]);
    await browser.adding;
  },
);

test("what a new Chromium has written that did not come up is not saved", async () => {
  const browser = await restarting({ delayMs: 600_000 }, { isDriven: true });
  const { root } = browser.slot.chromium.directories;
  const retiring = retire(browser);
  await until("its end", () => browser.slot.isEnding);
  await node.clock.advance(10_000);
  await retiring;
  expect(node.saves.outcomes).toEqual(["broken"]);
  expect([await kept(browser.profile), node.slots.count, existsSync(root)]).toEqual([undefined, 0, false]);
  expect(await browser.adding).toMatchObject({ isDone: false });
});

test.each([
  ["when saves are late", { hurriedMs: 1000 }, () => {}],
  ["when nobody waits any more", { hurriedMs: 600_000 }, (hurry: AbortController) => hurry.abort()],
])("a stop gives a restart up %s, however long that may take yet", async (_, limits, giveUp) => {
  const hurry = new AbortController();
  const saving = { ...limits, hurry: hurry.signal };
  // The clock of the restart's own limit is never moved.
  const browser = await restarting({ delayMs: 600_000 }, { isDriven: true, saving });
  const { root } = browser.slot.chromium.directories;
  const closing = node.slots.close();
  await until("its end", () => browser.slot.isEnding);
  const startedAt = performance.now();
  giveUp(hurry);
  await closing;
  // A launch that hangs ends by itself after 60 s.
  expect(performance.now() - startedAt).toBeLessThan(30_000);
  expect(node.saves.outcomes).toEqual(["failed"]);
  expect([await kept(browser.profile), node.slots.count, existsSync(root)]).toEqual([undefined, 0, false]);
  expect(await browser.adding).toMatchObject({ isDone: false });
});

test("a Chromium that hangs at its exit is ended as soon as nobody waits for saves any more", async () => {
  const hurry = new AbortController();
  const saving = { limitMs: 600_000, hurriedMs: 600_000, hurry: hurry.signal };
  node = await openNodeBed(`hangs${(count += 1)}`, { saving });
  const { pool, slot } = await oneSlot(node);
  const held = await pool.lend();
  const profile = { id: await node.assets.addProfile(), save: true };
  await node.fake.turn({ ignore: ["Storage.getCookies", "Storage.clearDataForOrigin", "Browser.close"] });
  expect(await node.changeSession.change(slot, held.lease, { profile })).toEqual({ isDone: true });
  const { chromium } = slot;
  const closing = node.slots.close();
  await until("its end", () => slot.stopping === chromium);
  const startedAt = performance.now();
  hurry.abort();
  await closing;
  // It would be waited for 10 s.
  expect(performance.now() - startedAt).toBeLessThan(9000);
  const isThere = existsSync(chromium.directories.root);
  expect([node.saves.outcomes, node.slots.count, isThere]).toEqual([["broken"], 0, false]);
});

test("what is at work on a browser and does not end is waited for no longer than 2 s once nobody waits for saves", async () => {
  const hurry = new AbortController();
  node = await openNodeBed(`hung${(count += 1)}`, { isDriven: true, saving: { hurry: hurry.signal } });
  const { slot } = await oneSlot(node);
  void slot.inTurn(() => new Promise(() => {}));
  const closing = node.slots.close();
  await until("its end", () => slot.isEnding);
  hurry.abort();
  await node.clock.advance(2000);
  await closing;
  expect(node.slots.count).toBe(0);
});

test("a restart whose Chromium hangs at its exit is over at once when the browser is", async () => {
  node = await openNodeBed(`hanging${(count += 1)}`);
  await node.fake.turn({ ignore: ["Browser.close"] });
  const { pool, slot } = await oneSlot(node);
  const held = await pool.lend();
  const digest = await node.assets.keep({ fake: "late", files: { "own.txt": "late" } });
  const adding = node.uploads.add(slot, held.lease, [{ name: "late", digest }]);
  await until("its stop", () => slot.stopping !== undefined);
  const startedAt = performance.now();
  await node.slots.end(slot);
  // It would be waited for 10 s.
  expect(performance.now() - startedAt).toBeLessThan(9000);
  expect(await adding).toMatchObject({ isDone: false });
});

test("what a new Chromium has written that ends as it starts is not saved", async () => {
  const browser = await restarting({ delayMs: 500, exitAfterMs: 0, exitCode: 1 });
  await retire(browser);
  expect([node.saves.outcomes, await kept(browser.profile)]).toEqual([["broken"], undefined]);
  await browser.adding;
});

test("a browser that is for one holder alone has the policy for that after a restart, too", async () => {
  node = await openNodeBed(`for-one${(count += 1)}`);
  const { pool, slot } = await oneSlot(node, { reset_on_release: "relaunch" });
  const held = await pool.lend();
  const { pid, directories } = slot.chromium;
  const policy = (): object =>
    JSON.parse(readFileSync(join(directories.root, "policy/managed/zz-remuda.json"), "utf8")) as object;
  const before = policy();
  expect(before).not.toHaveProperty("SSLErrorOverrideAllowed");
  const profile = { id: await node.assets.addProfile(), save: false };
  expect(await node.changeSession.change(slot, held.lease, { profile })).toEqual({ isDone: true });
  expect(slot.chromium.pid).not.toBe(pid);
  expect(policy()).toEqual(before);
});
