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
import { type OpenedJournal, openJournalIn } from "../support/node/journal-bed.js";
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
/** How many pools the journal has looked at. */
let journalLooks = 0;

const identity = { run: newRequestId(), origin: nodeA };
const facts = nodeFacts(nodeA, identity);

beforeAll(async () => {
  node = await openNodeBed("nodecosts");
  const { bed, slots, handover, clock } = node;
  kept = await openJournalIn(join(directory, "journal"), node, {});
  const versionOf = bed.dataset.poolVersion.bind(bed.dataset);
  bed.dataset.poolVersion = async (partition) => {
    const version = await versionOf(partition);
    journalLooks += 1;
    return version;
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
  for (let count = 0; count < own; count += 1) await oneSlot(node);
  const other = await PoolBed.create(bed, { size: 1 });
  await bed.projects.addPool(other.id);
  await beat();
  await look();
  // The first look of the journal asks for more when it has the versions.
  await until("the entries", () => kept.journal.entries().length === own);
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

/** Resolves when the journal, which looks a little later, has looked too. */
async function look(): Promise<void> {
  const looks = journalLooks + own;
  await reconciler.look();
  await until("the looks of the journal", () => journalLooks === looks);
}

test("a beat of a node that says the same again is nine commands in one script", async () => {
  expect(await commandsOf(node.bed.redis, beat)).toEqual({
    evalsha: 1,
    time: 1,
    // Is its dataset still there?
    get: 1,
    sismember: 1,
    zscore: 1,
    hget: 2,
    zadd: 1,
    hset: 1,
  });
});

test("a look of a node in whose pools nothing has changed is three commands for each of them", async () => {
  expect(await commandsOf(node.bed.redis, look)).toEqual({
    // Its name is its own; then its records in each pool are unchanged, as the journal finds once more.
    hget: 1 + 2 * own,
    // The version of each pool, for the journal.
    hmget: own,
    // Has it a record in the other pool, or one on demand? At most 32 are asked in one look.
    hexists: 2,
    // All pools, once in as many looks as it takes to ask them all.
    hkeys: 1,
  });
});
