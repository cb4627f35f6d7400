import { rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { newRequestId } from "../../src/base/ids.js";
import { openReconciler } from "../../src/daemon/node/lease-work.js";
import { NameOwnership } from "../../src/node/name-ownership.js";
import type { Reconciler } from "../../src/node/reconciler.js";
import { silentLog } from "../support/browser/chromium-host.js";
import { until } from "../support/browser/chromium-until.js";
import { newDirectory } from "../support/killed-runs.js";
import { type OpenedJournal, openJournalIn, written } from "../support/node/journal-bed.js";
import { type NodeBed, openNodeBed } from "../support/node/node-bed.js";
import { oneSlot } from "../support/node/one-slot.js";
import { nodeFacts } from "../support/store/node-facts.js";
import { nodeA, PoolBed } from "../support/store/pool-bed.js";
import { commandsOf } from "../support/store/redis-cost.js";

/** Pools of which the node has a browser. */
const own = 3;
const directory = newDirectory("node-costs");
let node: NodeBed;
let kept: OpenedJournal;
let reconciler: Reconciler;
let pool: PoolBed;
/** How often the journal was told to look at a pool. */
let notes = 0;

const identity = { run: newRequestId(), origin: nodeA };
const facts = nodeFacts(nodeA, identity);

beforeAll(async () => {
  node = await openNodeBed("nodecosts");
  const { bed, slots, handover, clock } = node;
  kept = await openJournalIn(join(directory, "journal"), node, {});
  const note = kept.journal.note.bind(kept.journal);
  kept.journal.note = (partition) => {
    notes += 1;
    note(partition);
  };
  const nameOwnership = new NameOwnership({
    ...identity,
    node: nodeA,
    nodes: bed.nodes,
    clock,
    lostAfterMs: 15_000,
  });
  const periods = { expirePeriodMs: 60_000, probePeriodMs: 60_000, probeLimitMs: 1000 };
  reconciler = openReconciler(
    { config: { node: periods }, clock, log: silentLog, stores: { ...bed, projects: bed.allProjects } },
    { node: nodeA, nameOwnership, slots, handover, journal: kept.journal, recovery: kept.recovery },
  );
  for (let count = 0; count < own; count += 1) ({ pool } = await oneSlot(node));
  const other = await PoolBed.create(bed, { size: 1 });
  await bed.projects.addPool(other.id);
  await beat();
  await reconciler.look();
  await until("the entries", () => written(kept) === own);
});
afterAll(async () => {
  await kept.journal.close();
  await node.close();
  rmSync(directory, { recursive: true });
});

async function beat(): Promise<void> {
  const told = await kept.recovery.beat(
    () => facts,
    () => false,
  );
  expect(told).toEqual({ kind: "accepted" });
}

test("a beat of a node that says the same again is seven commands in one script", async () => {
  expect(await commandsOf(node.bed.redis, beat)).toEqual({
    evalsha: 1,
    time: 1,
    // Is its dataset still there?
    get: 1,
    sismember: 1,
    hget: 2,
    zadd: 1,
  });
});

/** What a look asks where nothing has changed. */
const lookAtRest = {
  // Its name is its own.
  hget: 1,
  // Its records in each pool are unchanged, and so is the pool: the journal asks for nothing.
  hmget: own,
  // Has it a record in the other pool, or one on demand? At most 32 are asked in one look.
  hexists: 2,
  // All pools, once in as many looks as it takes to ask them all.
  hkeys: 1,
};

test("a look of a node in whose pools nothing has changed is one command for each of them", async () => {
  notes = 0;
  expect(await commandsOf(node.bed.redis, () => reconciler.look())).toEqual(lookAtRest);
  expect(notes).toBe(0);
});

test("a pool that was changed is journalled after the next look, also where no browser has changed", async () => {
  notes = 0;
  const entries = written(kept);
  expect(await pool.update({ timeout_seconds: 77 })).toBe("updated");
  await reconciler.look();
  await until("the entry", () => written(kept) > entries);
  expect([notes, written(kept)]).toEqual([1, entries + 1]);
  const entry = kept.journal.entries().find(({ partition }) => partition === pool.partition);
  expect(entry?.pool.fields["timeoutSeconds"]).toBe("77");
  await reconciler.look();
  expect(notes).toBe(1);
});

test("a pool that was changed while it was journalled is asked for once more, and then no longer", async () => {
  const { bed } = node;
  const versionOf = bed.dataset.poolVersion.bind(bed.dataset);
  let versions = 0;
  bed.dataset.poolVersion = async (partition) => {
    // The journal has read the pool's stamp by now.
    if (versions === 0) expect(await pool.update({ timeout_seconds: 79 })).toBe("updated");
    const version = await versionOf(partition);
    versions += 1;
    return version;
  };
  notes = 0;
  const entries = written(kept);
  expect(await pool.update({ timeout_seconds: 78 })).toBe("updated");
  await reconciler.look();
  await until("the entry", () => written(kept) > entries);
  await reconciler.look();
  await until("the second look of the journal", () => versions === 2);
  expect(await commandsOf(bed.redis, () => reconciler.look())).toEqual(lookAtRest);
  expect([notes, versions, written(kept)]).toEqual([2, 2, entries + 1]);
  const entry = kept.journal.entries().find(({ partition }) => partition === pool.partition);
  expect(entry?.pool.fields["timeoutSeconds"]).toBe("79");
});
