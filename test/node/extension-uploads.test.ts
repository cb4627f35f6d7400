import { existsSync, readdirSync } from "node:fs";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { UploadedExtension } from "../../src/pool/ports/messages.js";
import type { Slot } from "../../src/node/slot.js";
import { killProcess, processTreeOf } from "../../src/browser/resources/processes.js";
import { until } from "../support/browser/chromium-until.js";
import type { FakeExtension } from "../support/browser/chromium-fake.js";
import { type NodeBed, openNodeBed } from "../support/node/node-bed.js";
import { type Held, PoolBed } from "../support/store/pool-bed.js";

let node: NodeBed;
let count = 0;
beforeEach(async () => {
  node = await openNodeBed(`uploads${(count += 1)}`);
});
afterEach(() => node.close());

/** A pool of one, its browser running here and lent. */
async function lent(
  over: Parameters<typeof PoolBed.create>[1] = {},
): Promise<{ pool: PoolBed; held: Held; slot: Slot }> {
  const pool = await PoolBed.create(node.bed, { size: 1, ...over });
  const [browser] = await pool.claim(1);
  if (!browser) throw new Error("nothing was claimed");
  await node.launch(browser);
  const held = await pool.lend();
  const slot = node.slots.find(held.id);
  if (!slot) throw new Error("no slot");
  return { pool, held, slot };
}

const item = async (name: string, fake?: FakeExtension): Promise<UploadedExtension> => ({
  name,
  digest: await node.assets.keep({ ...(fake && { fake }), files: { "own.txt": name } }),
});
const items = (total: number): Promise<UploadedExtension[]> =>
  Promise.all(Array.from({ length: total }, (_, index) => item(`e${index}`)));
const namesOf = ({ chromium }: Slot): string[] => chromium.extensions.map(({ name }) => name);
const filesOf = ({ chromium }: Slot): string[] => readdirSync(chromium.directories.extensions);

test("a launch loads the extensions of its configuration in their order, before the browser is idle, and notes their use", async () => {
  const ids = [
    await node.assets.addExtension("second"),
    await node.assets.addExtension("first"),
    await node.assets.addExtension(undefined),
  ];
  const { slot } = await lent({ extension_ids: ids });
  expect(namesOf(slot)).toEqual(["second", "first", ids[2]]);
  await until(
    "its use",
    async () => (await node.assets.extensions.find(ids[0] ?? ("" as never)))?.lastUsedAt !== undefined,
  );
});

test("a launch whose extension is gone, or that Chromium refuses, fails with the reason and hands nothing out", async () => {
  const gone = await node.assets.addExtension("gone");
  await node.assets.extensions.remove(gone);
  const refused = await node.assets.addExtension("bad", { fake: "refused" });
  for (const [id, text] of [
    [gone, "does not exist any more"],
    [refused, "the fake refuses it"],
  ] as const) {
    const pool = await PoolBed.create(node.bed, { size: 1, extension_ids: [id] });
    const [browser] = await pool.claim(1);
    if (browser) await node.launch(browser);
    expect((await pool.found()).fill).toMatchObject({
      reason: "launch_failing",
      last_error: expect.stringContaining(text),
    });
    expect(await pool.counts()).toMatchObject({ idle: 0, launching: 0 });
  }
  expect(node.slots.count).toBe(0);
});

test("uploads are loaded beside those of the launch, and a repeat of the same is done already", async () => {
  const { held, slot } = await lent({ extension_ids: [await node.assets.addExtension("launched")] });
  const given = await items(2);
  expect(await node.uploads.add(slot, held.lease, given)).toEqual({ isDone: true });
  expect(namesOf(slot)).toEqual(["launched", "e0", "e1"]);
  expect(await node.uploads.add(slot, held.lease, given)).toEqual({ isDone: true });
  expect(namesOf(slot)).toEqual(["launched", "e0", "e1"]);
});

test.each([1, 5, 20])("of %i uploads the last is refused: the browser has none of them", async (total) => {
  const { held, slot, pool } = await lent();
  const given = [...(await items(total - 1)), await item("last", "refused")];
  expect(await node.uploads.add(slot, held.lease, given)).toMatchObject({
    isDone: false,
    code: "bad_request",
    text: expect.stringMatching(/last: .*the fake refuses it/),
  });
  expect([namesOf(slot), filesOf(slot)]).toEqual([[], []]);
  expect(await pool.state(held.id)).toBe("leased");
  // The names are free again.
  expect(await node.uploads.add(slot, held.lease, await items(20))).toEqual({ isDone: true });
});

test("the twenty-first, a name that is there and one given twice are refused, and nothing has changed", async () => {
  const { held, slot } = await lent({ extension_ids: [await node.assets.addExtension("launched")] });
  expect(await node.uploads.add(slot, held.lease, await items(20))).toMatchObject({
    isDone: false,
    code: "bad_request",
  });
  expect(await node.uploads.add(slot, held.lease, [await item("launched")])).toMatchObject({
    code: "bad_request",
    text: expect.stringContaining("launched"),
  });
  expect(await node.uploads.add(slot, held.lease, [await item("twice"), await item("twice")])).toMatchObject({
    code: "bad_request",
  });
  expect([namesOf(slot), filesOf(slot).length]).toEqual([["launched"], 1]);
});

test("two uploads at once: one after the other, so that the second sees the first's names", async () => {
  const { held, slot } = await lent();
  const [one, other] = [await item("same"), await node.assets.keep({ files: { "another.txt": "" } })];
  const outcomes = await Promise.all([
    node.uploads.add(slot, held.lease, [one]),
    node.uploads.add(slot, held.lease, [{ name: "same", digest: other }]),
  ]);
  expect(outcomes.map(({ isDone }) => isDone)).toEqual([true, false]);
});

test("a browser that was given one is retired at release where the pool resets state, and stays where it does not", async () => {
  for (const [reset, state] of [
    ["state", "retiring"],
    ["none", "resetting"],
  ] as const) {
    const { pool, held, slot } = await lent({ reset_on_release: reset });
    await node.uploads.add(slot, held.lease, [await item("kept")]);
    await pool.release(held);
    expect(await pool.state(held.id)).toBe(state);
  }
});

test("an archive that is not there changes nothing", async () => {
  const { held, slot } = await lent();
  const missing = { name: "missing", digest: "0".repeat(64) as UploadedExtension["digest"] };
  expect(await node.uploads.add(slot, held.lease, [await item("there"), missing])).toMatchObject({
    isDone: false,
  });
  expect([namesOf(slot), filesOf(slot)]).toEqual([[], []]);
});

test("where Redis cannot be told, nothing is loaded", async () => {
  const { held, slot } = await lent();
  node.broken.add("touch");
  expect(await node.uploads.add(slot, held.lease, await items(1))).toMatchObject({ isDone: false });
  expect([namesOf(slot), filesOf(slot)]).toEqual([[], []]);
});

test("an upload for a lease that is over does nothing", async () => {
  const { pool, held, slot } = await lent();
  await slot.activity.cutLease(held.lease, "released");
  expect(await node.uploads.add(slot, held.lease, await items(1))).toMatchObject({ code: "browser_gone" });
  await pool.release(held);
  expect(filesOf(slot)).toEqual([]);
});

test("an extension that Chromium enables only at its start: it restarts in its session, and has the earlier ones too", async () => {
  const { held, slot, pool } = await lent({ extension_ids: [await node.assets.addExtension("launched")] });
  await node.uploads.add(slot, held.lease, [await item("early")]);
  const { pid, directories, isolation } = slot.chromium;
  expect(await node.uploads.add(slot, held.lease, [await item("late", "late")])).toEqual({ isDone: true });
  expect(slot.chromium.pid).not.toBe(pid);
  expect([slot.chromium.directories, slot.chromium.isolation.uid]).toEqual([directories, isolation.uid]);
  expect(namesOf(slot)).toEqual(["launched", "early", "late"]);
  expect(await pool.state(held.id)).toBe("leased");
  expect(slot.chromium.attestation).toBeDefined();
});

test("one with which it does not start: it is started as it was", async () => {
  const { held, slot, pool } = await lent();
  await node.uploads.add(slot, held.lease, [await item("early")]);
  const { pid } = slot.chromium;
  expect(
    await node.uploads.add(slot, held.lease, [await item("good"), await item("deadly", "deadly")]),
  ).toMatchObject({ isDone: false });
  expect([namesOf(slot), filesOf(slot).length, await pool.state(held.id)]).toEqual([["early"], 1, "leased"]);
  expect(slot.chromium.pid).not.toBe(pid);
  await slot.chromium.probe(20_000);
});

test("one that cannot be started again at all is over, and nothing of it is left", async () => {
  const { held, slot, pool } = await lent();
  const { directories } = slot.chromium;
  const deadly = await item("deadly", "deadly");
  await node.fake.turn({ failWithCode: 3 });
  expect(await node.uploads.add(slot, held.lease, [deadly])).toMatchObject({ isDone: false });
  await until("the record's end", async () => (await pool.state(held.id)) === "gone");
  expect([node.slots.count, existsSync(directories.root)]).toEqual([0, false]);
});

test("a restart is activity: the lease does not expire by it", async () => {
  const { held, slot } = await lent({ timeout_seconds: 10 });
  slot.activity.begin(held.lease);
  await node.fake.turn({ delayMs: 300 });
  const adding = node.uploads.add(slot, held.lease, [await item("late", "late")]);
  await until("the restart", () => slot.restarting !== undefined);
  expect(slot.activity.inactiveSinceMs).toBeUndefined();
  await adding;
  expect(slot.activity.inactiveSinceMs).toBeDefined();
});

test("the fence waits for a restart, and the browser is then free", async () => {
  const { pool, held, slot } = await lent();
  await pool.connect(held);
  await node.fake.turn({ delayMs: 300 });
  const adding = node.uploads.add(slot, held.lease, [await item("late", "late")]);
  await until("the restart", () => slot.restarting !== undefined);
  await pool.release(held);
  const { claim } = await pool.record(held.id);
  node.leaseCommands.receive({
    kind: "fence",
    browser: held.id,
    lease: held.lease,
    claim: claim as never,
    mode: "none",
  });
  await until("it is idle", async () => (await pool.state(held.id)) === "idle");
  expect(slot.restarting).toBeUndefined();
  expect((await adding).isDone).toBe(true);
  await slot.chromium.probe(20_000);
});

test.each(["leaving", "starting"])(
  "a browser retired while it is %s for a restart ends at once, and leaves nothing",
  async (stage) => {
    const { pool, held, slot } = await lent();
    const { directories } = slot.chromium;
    const late = await item("late", "late");
    await node.fake.turn({ delayMs: 10_000 });
    const adding = node.uploads.add(slot, held.lease, [late]);
    await until(stage, () => (stage === "leaving" ? slot.restarting !== undefined : slot.keptWorkspace));
    await node.bed.poolStore.release(pool.partition, {
      browser: held.id,
      lease: held.lease,
      reuse: false,
      why: "released",
      isRetry: false,
      request: "r".repeat(24) as never,
    });
    const { claim } = await pool.record(held.id);
    await node.slots.retire({
      kind: "retire",
      node: "node-a" as never,
      browser: held.id,
      claim: claim as never,
    });
    expect((await adding).isDone).toBe(false);
    expect([await pool.state(held.id), node.slots.count, existsSync(directories.root)]).toEqual([
      "gone",
      0,
      false,
    ]);
  },
);

test("a browser that is killed as it is given one is over, and nothing of it is left", async () => {
  const { pool, held, slot } = await lent();
  const { directories, pid } = slot.chromium;
  const late = await item("late", "late");
  // The browser itself first: by bubblewrap's end alone it would live on for a moment, and answer.
  for (const each of (await processTreeOf(pid)).toReversed()) killProcess(each);
  const outcome = await node.uploads.add(slot, held.lease, [late]).catch(() => undefined);
  expect(outcome?.isDone).not.toBe(true);
  await until("the record's end", async () => (await pool.state(held.id)) === "gone");
  expect([node.slots.count, existsSync(directories.root)]).toEqual([0, false]);
});

test("a browser that is killed while it restarts is over", async () => {
  const { pool, held, slot } = await lent();
  const late = await item("late", "late");
  await node.fake.turn({ exitAfterMs: 150 });
  await node.uploads.add(slot, held.lease, [late]).catch(() => {});
  await until("the record's end", async () => (await pool.state(held.id)) === "gone");
  expect(node.slots.count).toBe(0);
});

test("none is added while a page of the browser is protected, and as before once none is", async () => {
  const { held, slot } = await lent();
  const one = await item("one");
  slot.bridge.filled.add("a page", ["a page"], {});
  const add = () => node.uploads.add(slot, held.lease, [one]);
  expect(await add()).toMatchObject({ isDone: false, code: "conflict" });
  expect(namesOf(slot)).toEqual([]);
  slot.bridge.filled.remove("a page");
  expect(await add()).toMatchObject({ isDone: true });
  expect(namesOf(slot)).toEqual(["one"]);
});
