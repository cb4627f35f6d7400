import { readdirSync, readFileSync, renameSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { Seal } from "../../../src/base/crypto/seal.js";
import { Secret } from "../../../src/base/crypto/secret.js";
import { type LeaseId, newPoolId, onDemandPartition, partitionOf } from "../../../src/base/ids.js";
import { yieldTurn } from "../../../src/base/yield-turn.js";
import { until } from "../../support/browser/chromium-until.js";
import type { LogLine } from "../../support/http/http-server.js";
import { JournalBed, written } from "../../support/node/journal-bed.js";
import type { NodeBed } from "../../support/node/node-bed.js";
import { oneSlot, seatClient } from "../../support/node/one-slot.js";
import { type Held, nodeA, PoolBed } from "../../support/store/pool-bed.js";
import { candidateOn, poolSpec, request, writeOf } from "../../support/store/store-bed.js";

let bed: JournalBed;
let node: NodeBed;
let count = 0;
let directory: string;
beforeEach(async () => {
  bed = await JournalBed.open(`journal${(count += 1)}`);
  ({ node, directory } = bed);
});
afterEach(() => bed.close());

const openJournal: JournalBed["openJournal"] = (options) => bed.openJournal(options);
const write: JournalBed["write"] = (kept, pool) => bed.write(kept, pool);
const keptPool: JournalBed["keptPool"] = (over) => bed.keptPool(over);
const forget = (): Promise<unknown> => bed.forget();
const rooms = async (): Promise<number> => (await node.bed.nodes.occupancy(nodeA)).browsers;
const entry = (pool: PoolBed): string => join(directory, `${pool.partition}.sealed`);

test("an idle browser is lent again after Redis has forgotten it, and its place on the node is taken", async () => {
  const { pool, slot, kept } = await keptPool({ name: "herd" });
  await forget();
  await kept.recovery.check();
  expect(await pool.state(slot.id)).toBe("idle");
  expect(kept.counts).toEqual([{ pools: 1, browsers: 1, leases: 0 }]);
  expect(await rooms()).toBe(1);
  expect((await pool.lend()).id).toBe(slot.id);
  // Whatever is restored is said once, as an error.
  await kept.recovery.check();
  const errors = kept.lines.filter(({ level }) => level === "error");
  expect(errors.map(({ fields }) => fields)).toMatchObject([{ pools: 1, browsers: 1, leases: 0, lost: 0 }]);
});

test("a browser that stands by is restored as one, and takes room from nobody", async () => {
  const candidates = [candidateOn(onDemandPartition, nodeA)];
  const { template } = writeOf(poolSpec());
  const ask = { candidates, key: "one", template, count: 1, request: request() };
  const [browser] = await node.bed.standby.claim(onDemandPartition, ask);
  if (!browser) throw new Error("nothing was claimed");
  await node.launch(browser);
  const kept = await openJournal();
  await kept.recovery.check();
  await write(kept, { partition: onDemandPartition });
  await forget();
  await kept.recovery.check();
  const restored = (await node.bed.poolStore.findBrowser(browser.id))?.browser;
  expect(restored).toMatchObject({ state: "idle", standby: "one" });
  expect(await node.bed.nodes.occupancy(nodeA)).toEqual({
    browsers: 0,
    bytes: 0,
    standby: { browsers: 1, bytes: 2 ** 30 },
  });
});

test("a lease goes on, with a client and without, and what the node has seen of it counts", async () => {
  const { pool, slot, kept } = await keptPool();
  const held = await pool.lend();
  await write(kept, pool);
  const cuts: string[] = [];
  expect(await seatClient(node, slot, { lease: held.lease, cuts })).toBe(true);
  await forget();
  await kept.recovery.check();
  expect(await pool.record(held.id)).toMatchObject({
    state: "leased",
    lease: { id: held.lease, registrations: 1 },
  });
  await node.reconciler.look();
  expect([cuts, slot.isEnding]).toEqual([[], false]);
  expect(await pool.release(held)).toBe("released");
});

test("a lease that was opened since the entry was written goes on too", async () => {
  const { pool, slot, kept } = await keptPool();
  const held = await pool.lend();
  expect(await seatClient(node, slot, { lease: held.lease })).toBe(true);
  await node.reconciler.look();
  await forget();
  await kept.recovery.check();
  expect(await pool.record(held.id)).toMatchObject({ state: "leased", lease: { id: held.lease } });
  expect(kept.counts).toEqual([{ pools: 1, browsers: 1, leases: 1 }]);
});

test("the look that misses a record has it restored before it would end the browser", async () => {
  const { pool, slot, kept } = await keptPool();
  node.recovers(() => kept.recovery.check());
  await forget();
  await node.reconciler.look();
  expect([slot.isEnding, await pool.state(slot.id)]).toEqual([false, "idle"]);
});

/** How a browser has gone on since it was written down: nobody knows whose it is by then. */
const gone: Readonly<Record<string, (pool: PoolBed, held: Held) => Promise<unknown>>> = {
  "whose lease was cut": async (_pool, { id, lease }) =>
    await node.slots.find(id)?.activity.cutLease(lease, "released"),
  "that another lease has": async (_pool, { id }) =>
    void node.slots.find(id)?.activity.begin("another" as LeaseId),
  "that ends": async (_pool, { id }) => void node.slots.find(id)?.endBegins(),
};

test.each(Object.entries(gone))("a browser %s is not restored", async (_name, goOn) => {
  const { pool, slot, kept } = await keptPool();
  const held = await pool.lend();
  await seatClient(node, slot, { lease: held.lease });
  await write(kept, pool);
  await goOn(pool, held);
  await forget();
  await kept.recovery.check();
  expect(await pool.state(held.id)).toBe("gone");
  expect(kept.counts).toEqual([{ pools: 1, browsers: 0, leases: 0 }]);
  expect(kept.lines.findLast(({ level }) => level === "error")?.fields).toMatchObject({ lost: 1 });
});

test("an idle browser that was lent and used since it was written down is not restored as idle", async () => {
  const { pool, slot, kept } = await keptPool({ reset_on_release: "state" });
  const held = await pool.lend();
  await seatClient(node, slot, { lease: held.lease });
  await slot.activity.cutLease(held.lease, "released");
  await forget();
  await kept.recovery.check();
  expect(await pool.state(held.id)).toBe("gone");
});

test("a node that starts anew brings back the pool, and not the browsers that ended with it", async () => {
  const { pool, slot, kept } = await keptPool({ name: "herd", size: 3 });
  await kept.journal.close();
  await node.slots.end(slot);
  await forget();
  const next = await openJournal();
  await next.recovery.check();
  expect(next.counts).toEqual([{ pools: 1, browsers: 0, leases: 0 }]);
  expect((await pool.found()).spec).toMatchObject({ name: "herd", size: 3 });
});

test("a pool that is deleted is forgotten, but not one that Redis has forgotten", async () => {
  const { pool, slot, kept } = await keptPool();
  await forget();
  await kept.journal.sweep();
  await kept.journal.close();
  expect(readdirSync(directory)).toContain(`${pool.partition}.sealed`);
  const next = await openJournal();
  await next.recovery.check();
  expect(await pool.state(slot.id)).toBe("idle");
  await node.bed.redis.del(pool.key("pool"));
  await next.journal.sweep();
  await until("its end", () => !readdirSync(directory).includes(`${pool.partition}.sealed`));
});

test("what is on disk is sealed, for its owner alone, and there is no file beside", async () => {
  const { pool, kept } = await keptPool({ name: "a-name-to-look-for" });
  await pool.lend({ startUrl: "https://secret.example/" });
  await write(kept, pool);
  const files = readdirSync(directory);
  expect(files.toSorted()).toEqual([`${pool.partition}.sealed`, "dataset.sealed"].toSorted());
  expect([statSync(directory).mode & 0o777, statSync(entry(pool)).mode & 0o777]).toEqual([0o700, 0o600]);
  const text = readFileSync(entry(pool), "utf8");
  expect(text).toMatch(/^v1\.[0-9a-f]{8}\.[\w-]+$/);
  await kept.journal.close();
  const stranger = await openJournal({ seal: new Seal(new Secret("another secret of the node's bed")) });
  expect(stranger.journal.entries()).toEqual([]);
});

test.each([
  ["torn", (path: string) => truncateSync(path, statSync(path).size - 10)],
  ["empty", (path: string) => truncateSync(path, 0)],
  ["another's", (path: string) => writeFileSync(path, readFileSync(join(directory, "dataset.sealed")))],
])("an entry that is %s is known for that and left out; others are read", async (_what, spoil) => {
  const { pool: spoiled, kept } = await keptPool();
  const { pool: whole } = await oneSlot(node);
  await write(kept, whole);
  await kept.journal.close();
  spoil(entry(spoiled));
  writeFileSync(join(directory, "half.sealed.begun"), "half");
  const next = await openJournal();
  expect(next.journal.entries().map(({ partition }) => partition)).toEqual([whole.partition]);
  expect(next.lines.map(({ message }) => message)).toContain("journal entry could not be read");
  expect(readdirSync(directory)).not.toContain("half.sealed.begun");
  await forget();
  await next.recovery.check();
  expect(next.counts).toEqual([{ pools: 1, browsers: 1, leases: 0 }]);
});

test("the journal has no more bytes than it may, and says what it did not write", async () => {
  const { pool } = await oneSlot(node);
  const kept = await openJournal({ mostBytes: 600 });
  await kept.recovery.check();
  kept.journal.note(pool.partition);
  await until("word of it", () => kept.lines.some(({ message }) => message === "journal not written"));
  expect(readdirSync(directory)).toEqual(["dataset.sealed"]);
});

test("what the disk did not take is restored too, is said once, and is written when the disk takes it", async () => {
  const { pool, slot } = await oneSlot(node);
  const kept = await openJournal();
  await kept.recovery.check();
  const saying = (message: string): readonly LogLine[] =>
    kept.lines.filter((line) => line.message === message);
  renameSync(directory, `${directory}-away`);
  for (const times of [1, 2]) {
    kept.journal.note(pool.partition);
    await until("word of it", () => saying("journal not written").length === times);
  }
  expect(saying("journal not written").map(({ level }) => level)).toEqual(["warn", "debug"]);
  await forget();
  await kept.recovery.check();
  expect(await pool.state(slot.id)).toBe("idle");
  renameSync(`${directory}-away`, directory);
  await write(kept, pool);
  expect(statSync(entry(pool)).size).toBeGreaterThan(0);
  expect(saying("journal written again")).toHaveLength(1);
});

test("what an earlier release has changed of a pool is journalled by the next sweep, and tried again until then", async () => {
  const { pool, kept } = await keptPool();
  const read = await node.bed.poolStore.browsersOf(pool.partition, nodeA);
  const entries = written(kept);
  // It says so in no stamp.
  await node.bed.redis.hset(pool.key("pool"), "revision", "9");
  expect((await node.bed.poolStore.browsersOf(pool.partition, nodeA)).poolStamp).toBe(read.poolStamp);
  renameSync(directory, `${directory}-away`);
  await kept.journal.sweep();
  await until("word of it", () =>
    kept.lines.some((line) => line.message === "journal not written" && "partition" in line.fields),
  );
  renameSync(`${directory}-away`, directory);
  const note = kept.journal.note.bind(kept.journal);
  let notes = 0;
  kept.journal.note = (partition) => {
    notes += 1;
    note(partition);
  };
  kept.journal.noteRead(pool.partition, read);
  expect(notes).toBe(1);
  await until("the entry", () => written(kept) > entries);
  expect(kept.journal.entries()[0]?.pool.fields["revision"]).toBe("9");
});

test("changes of many pools at once are no warning of Node.js", async () => {
  const { journal } = await openJournal();
  const warnings: string[] = [];
  const warn = ({ name }: Error): void => void warnings.push(name);
  process.on("warning", warn);
  try {
    for (let pools = 0; pools < 20; pools += 1) journal.note(partitionOf(newPoolId()));
    // It is said in a turn of its own.
    await yieldTurn();
    await journal.close();
  } finally {
    process.off("warning", warn);
  }
  expect(warnings).toEqual([]);
});

test("checks that Redis leaves unanswered are one, and one more for all who have asked meanwhile", async () => {
  const { dataset } = node.bed;
  const ask = dataset.join.bind(dataset);
  let [joins, answer] = [0, (): void => {}];
  const silence = new Promise<void>((resolve) => (answer = resolve));
  dataset.join = async (known) => {
    joins += 1;
    return await silence.then(() => ask(known));
  };
  const { recovery, journal } = await openJournal();
  const first = recovery.check();
  await until("the first", () => joins === 1);
  const others = Array.from({ length: 60 }, () => recovery.check());
  answer();
  await Promise.all([first, ...others]);
  expect([joins, journal.dataset?.name]).toEqual([2, await dataset.present()]);
});
