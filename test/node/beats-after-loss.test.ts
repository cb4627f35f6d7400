import { rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { until } from "../support/browser/chromium-until.js";
import { newDirectory } from "../support/killed-runs.js";
import { type OpenedJournal, openJournalIn } from "../support/node/journal-bed.js";
import { type NodeBed, openNodeBed } from "../support/node/node-bed.js";
import { oneSlot } from "../support/node/one-slot.js";
import { nodeFacts } from "../support/store/node-facts.js";
import { nodeA } from "../support/store/pool-bed.js";

let node: NodeBed;
let count = 0;
let directory: string;
let kept: OpenedJournal;
beforeEach(async () => {
  node = await openNodeBed(`beats${(count += 1)}`);
  directory = newDirectory("beats");
  kept = await openJournalIn(join(directory, "journal"), node, {});
  await kept.recovery.check();
});
afterEach(async () => {
  await kept.journal.close();
  await node.close();
  rmSync(directory, { recursive: true });
});

/** A pool of one, running here, that the journal has. */
async function keptSlot() {
  const { pool, slot } = await oneSlot(node);
  kept.journal.note(pool.partition);
  await until("the entry", () => kept.journal.entries().length === 1);
  return { pool, slot };
}

const beat = (isOver = () => false) => kept.recovery.beat(() => nodeFacts(nodeA), isOver);
const forget = (): Promise<unknown> => node.bed.redis.flushall();

test("a beat tells a Redis that was emptied nothing before what it had is written again", async () => {
  const { pool, slot } = await keptSlot();
  expect(await beat()).toEqual({ kind: "accepted" });
  const known = kept.journal.dataset?.name ?? "";
  await forget();
  expect(await node.bed.nodes.beatIn(known, nodeFacts(nodeA))).toBeUndefined();
  expect(await node.bed.redis.dbsize()).toBe(0);
  expect(await beat()).toEqual({ kind: "accepted" });
  expect([await pool.state(slot.id), kept.counts.length]).toEqual(["idle", 1]);
  expect(kept.journal.dataset?.name).not.toBe(known);
  expect((await node.bed.nodes.holder(nodeA))?.id).toBe(nodeA);
});

test("a beat moves on the time at which the node has last seen what Redis has", async () => {
  const before = kept.journal.dataset;
  await until("a later instant", async () => (await node.bed.poolStore.now()) > (before?.seenAt ?? 0));
  await beat();
  expect(kept.journal.dataset?.name).toBe(before?.name);
  expect(kept.journal.dataset?.seenAt).toBeGreaterThan(before?.seenAt ?? 0);
  // A beat that comes back late says nothing of what was adopted meanwhile.
  const adopted = { name: "another", seenAt: 1 };
  await kept.journal.adopt(adopted);
  kept.journal.saw({ name: before?.name ?? "", seenAt: 2 });
  expect(kept.journal.dataset).toEqual(adopted);
});

test("a node that is over writes again what Redis has forgotten, and beats no more", async () => {
  const { pool, slot } = await keptSlot();
  await forget();
  expect(await beat(() => true)).toBeUndefined();
  expect([await pool.state(slot.id), await node.bed.nodes.holder(nodeA)]).toEqual(["idle", undefined]);
});

test("a Redis that is emptied again and again fails the beat in the end, and has been told nothing", async () => {
  const { dataset, nodes } = node.bed;
  const ask = dataset.join.bind(dataset);
  dataset.join = async (known) => {
    const joined = await ask(known);
    await forget();
    return joined;
  };
  await forget();
  await expect(beat()).rejects.toThrow("another dataset at each of 3 beats");
  expect(await nodes.holder(nodeA)).toBeUndefined();
});
