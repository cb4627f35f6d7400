import type { AnyRecord } from "../support/store/store-bed.js";
import { existsSync } from "node:fs";
import { chown, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterEach, beforeEach, expect, test } from "vitest";
import {
  newBrowserId,
  newLeaseId,
  onDemandPartition,
  type BrowserId,
  type LeaseId,
  type ProfileId,
} from "../../src/base/ids.js";
import { processTreeOf } from "../../src/browser/resources/processes.js";
import type { LaunchTemplate } from "../../src/spec/launch-template.js";
import type { Slot } from "../../src/node/slot.js";
import { partitionKey } from "../../src/store/redis/keys.js";
import { until } from "../support/browser/chromium-until.js";
import { type NodeBed, openNodeBed } from "../support/node/node-bed.js";
import { controlA, nodeA, PoolBed } from "../support/store/pool-bed.js";
import { claimOf, poolSpec, request } from "../support/store/store-bed.js";
import { signal } from "../support/living.js";

let node: NodeBed;
let count = 0;
const open = async (options: Parameters<typeof openNodeBed>[1] = {}): Promise<void> => {
  node = await openNodeBed(`saving${(count += 1)}`, options);
};
beforeEach(() => open());
afterEach(() => node.close());

interface Session {
  readonly id: BrowserId;
  readonly lease: LeaseId;
  readonly slot: Slot;
}

async function session(profile: ProfileId | undefined, over: Partial<LaunchTemplate> = {}): Promise<Session> {
  const id = newBrowserId(onDemandPartition);
  const lease = newLeaseId();
  const {
    size: _,
    fill_rate_per_minute: __,
    timeout_seconds: ___,
    reset_on_release: ____,
    ...launch
  } = poolSpec();
  const template: LaunchTemplate = {
    ...launch,
    ...(profile && { profile_id: profile, profile: { id: profile, save_changes: true } }),
    ...over,
  };
  const reply = await node.bed.poolStore.createSession(onDemandPartition, {
    candidate: {
      id,
      node: nodeA,
      facts: JSON.stringify({ headless: true, stealth: false, kiosk_mode: false, memory: "1GiB" }),
    },
    waiter: { id: request(), lease, control: controlA, connection: request(), timeoutSeconds: 60 },
    template,
  });
  if (reply.kind !== "claimed") throw new Error(`not claimed: ${reply.kind}`);
  await node.launch(reply.browser);
  const slot = node.slots.find(id);
  if (!slot) throw new Error("no slot");
  return { id, lease, slot };
}

/** Stands for what Chromium would have written. */
async function write(
  {
    slot: {
      chromium: { directories, isolation },
    },
  }: Session,
  content: string,
  file = "Local State",
): Promise<void> {
  const path = join(directories.profile, file);
  await writeFile(path, content);
  if (isolation.uid !== null) await chown(path, isolation.uid, isolation.uid);
}
const kept = async (profile: ProfileId): Promise<string | undefined> => {
  const tar = await node.assets.archives.open(profile);
  return tar && (await text(tar));
};

async function remove({ id, lease }: Session): Promise<() => Promise<void>> {
  await node.bed.poolStore.release(onDemandPartition, {
    browser: id,
    reuse: false,
    why: "deleted",
    isRetry: false,
    request: request(),
    lease,
  });
  const record = (await node.bed.poolStore.findBrowser(id))?.browser;
  if (!record) throw new Error("no record");
  return () => node.slots.retire({ kind: "retire", node: nodeA, browser: id, claim: claimOf(record) });
}
const end = async (one: Session): Promise<void> => await (await remove(one))();
const stateOf = async (id: BrowserId): Promise<string> =>
  (await node.bed.poolStore.findBrowser(id))?.browser.state ?? "gone";

test("the end of a session that was to save makes its state the profile's, says so, and leaves nothing", async () => {
  const profile = await node.assets.addProfile();
  const saving = await session(profile);
  const { root } = saving.slot.chromium.directories;
  await write(saving, "what was done");
  await end(saving);
  expect(await kept(profile)).toContain("what was done");
  expect([node.saves, await stateOf(saving.id), existsSync(root)]).toEqual([
    { outcomes: ["saved"], told: [profile] },
    "gone",
    false,
  ]);
});

test("the next one starts from it", async () => {
  const profile = await node.assets.addProfile();
  const first = await session(profile);
  await write(first, "what was done");
  await end(first);
  const next = await session(profile);
  expect(next.slot.profile).toEqual({ id: profile, isSaved: true });
  await end(next);
  expect(await kept(profile)).toContain("what was done");
});

test("one without save_changes, and one that crashed, save nothing", async () => {
  const profile = await node.assets.addProfile();
  const reading = await session(profile, { profile: { id: profile } });
  await end(reading);
  const crashing = await session(profile);
  signal(crashing.slot.chromium.pid, "SIGKILL");
  await until("its end", async () => (await stateOf(crashing.id)) === "gone");
  expect([await kept(profile), node.saves.outcomes]).toEqual([undefined, []]);
});

test("a browser of a pool never saves, but the profile a holder has attached to it to be saved", async () => {
  const [configured, attached] = [await node.assets.addProfile(), await node.assets.addProfile()];
  for (const [over, isAttached] of [
    [{ profile_id: configured, profile: { id: configured, save_changes: true } }, false],
    [{}, true],
  ] as const) {
    const pool = await PoolBed.create(node.bed, { size: 1, ...over });
    const [browser] = await pool.claim(1);
    if (!browser) throw new Error("nothing was claimed");
    await node.launch(browser);
    const held = await pool.lend();
    const slot = node.slots.find(held.id);
    if (slot && isAttached)
      expect(
        await node.changeSession.change(slot, held.lease, { profile: { id: attached, save: true } }),
      ).toEqual({ isDone: true });
    await pool.release(held, { reuse: false });
    await node.slots.retire({
      kind: "retire",
      node: nodeA,
      browser: held.id,
      claim: claimOf(await pool.record(held.id)),
    });
  }
  expect([await kept(configured), node.saves.outcomes, node.saves.told]).toEqual([
    undefined,
    ["saved"],
    [attached],
  ]);
});

test("a profile deleted meanwhile is not brought back", async () => {
  const profile = await node.assets.addProfile();
  const saving = await session(profile);
  await node.assets.profiles.remove(profile);
  await end(saving);
  expect([node.saves, await node.assets.profiles.find(profile)]).toEqual([
    { outcomes: ["missing"], told: [] },
    undefined,
  ]);
});

test("a save that fails leaves the profile as it was, and nothing of the browser", async () => {
  const profile = await node.assets.addProfile();
  const first = await session(profile);
  await write(first, "the first state");
  await end(first);
  const second = await session(profile);
  const { root } = second.slot.chromium.directories;
  await write(second, "the second state");
  node.broken.add("save");
  await end(second);
  expect(await kept(profile)).toContain("the first state");
  expect([node.saves.outcomes, await stateOf(second.id), existsSync(root)]).toEqual([
    ["saved", "failed"],
    "gone",
    false,
  ]);
});

test("a state with more files than a profile may have is not saved, and the next one starts from the last", async () => {
  await node.close();
  await open({ profileFiles: 20 });
  const profile = await node.assets.addProfile();
  const first = await session(profile);
  await write(first, "the first state");
  await end(first);
  const filling = await session(profile);
  await write(filling, "the second state");
  for (let file = 0; file < 20; file += 1) await write(filling, "stored by a page", `Default-${file}`);
  await end(filling);
  expect(node.saves.outcomes).toEqual(["saved", "failed"]);
  const next = await session(profile);
  expect(next.slot.profile).toEqual({ id: profile, isSaved: true });
  await end(next);
  expect(await kept(profile)).toContain("the first state");
});

test("a Chromium that does not come to its own end is not saved", async () => {
  await node.close();
  await open({ saving: { limitMs: 1000 } });
  const profile = await node.assets.addProfile();
  await node.fake.turn({ ignore: ["Browser.close"] });
  const saving = await session(profile);
  await end(saving);
  expect([node.saves.outcomes, await kept(profile), await stateOf(saving.id)]).toEqual([
    ["broken"],
    undefined,
    "gone",
  ]);
});

test("a retire job that comes again while the first one saves joins it, and says under its own claim that the browser is gone", async () => {
  const profile = await node.assets.addProfile();
  const saving = await session(profile);
  await write(saving, "saved once");
  const first = await remove(saving);
  const record = async (): Promise<AnyRecord | undefined> =>
    (await node.bed.poolStore.findBrowser(saving.id))?.browser;
  const before = (await record())?.claim;
  await node.bed.redis.zadd(partitionKey(node.bed.project, onDemandPartition, "retiring"), 1, saving.id);
  const paused = (await processTreeOf(saving.slot.chromium.pid)).at(-1);
  signal(paused, "SIGSTOP");
  const working = first();
  await until("its end begun", () => saving.slot.isEnding);
  await node.bed.poolStore.reap(onDemandPartition);
  const again = await record();
  expect([again?.state, again?.claim === before]).toEqual(["retiring", false]);
  const second = again?.claim
    ? node.slots.retire({ kind: "retire", node: nodeA, browser: saving.id, claim: again.claim })
    : undefined;
  signal(paused, "SIGCONT");
  await Promise.all([working, second]);
  expect([node.saves.outcomes, await stateOf(saving.id), await kept(profile)]).toEqual([
    ["saved"],
    "gone",
    expect.stringContaining("saved once"),
  ]);
});

test("the stop of the node saves as well", async () => {
  const profile = await node.assets.addProfile();
  const saving = await session(profile);
  await write(saving, "until the stop");
  await node.slots.close();
  expect([node.saves.outcomes, await kept(profile)]).toEqual([
    ["saved"],
    expect.stringContaining("until the stop"),
  ]);
});

test("two that save one profile at once leave one whole state", async () => {
  const profile = await node.assets.addProfile();
  const [one, other] = await Promise.all([session(profile), session(profile)]);
  await Promise.all([write(one, "1".repeat(100_000)), write(other, "2".repeat(100_000))]);
  const ends = await Promise.all([remove(one), remove(other)]);
  await Promise.all(ends.map((finish) => finish()));
  const state = (await kept(profile)) ?? "";
  expect(["1", "2"].filter((digit) => state.includes(digit.repeat(100_000)))).toHaveLength(1);
  expect(node.saves.outcomes).toEqual(["saved", "saved"]);
});

test("a launch whose profile cannot be opened fails, and hands nothing out", async () => {
  const pool = await PoolBed.create(node.bed, { size: 1, profile_id: "0".repeat(24) as ProfileId });
  const [browser] = await pool.claim(1);
  if (browser) await node.launch(browser);
  expect((await pool.found()).fill).toMatchObject({
    reason: "launch_failing",
    last_error: expect.stringContaining("does not exist any more"),
  });
});
