import { setMaxListeners } from "node:events";
import { rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { pause, systemClock } from "../../src/base/clock.js";
import { Seal } from "../../src/base/crypto/seal.js";
import { Secret } from "../../src/base/crypto/secret.js";
import { type ControlId, newLeaseId, type NodeId, type Partition, type PoolId } from "../../src/base/ids.js";
import type { Log } from "../../src/base/log.js";
import { Journal } from "../../src/node/journal/journal.js";
import { JournalFiles } from "../../src/node/journal/journal-files.js";
import { newDirectory } from "../support/killed-runs.js";
import { startRedis } from "../support/store/redis.js";
import { openStoreBed, request, type StoreBed } from "../support/store/store-bed.js";
import { servedFences } from "./scale/acquires.js";
import { type Cost, costOf } from "./scale/cost.js";
import { SimulatedFleet } from "./scale/fleet.js";
import { smallest } from "./scale/sizes.js";
import type { Report } from "./support/report.js";

const control = "controlbench" as ControlId;
const browsers = 1000;
/** A hundredth of the browsers ends and is replaced, and as many are lent, opened and given back. */
const perSecond = browsers / 100;
/** The default (docs/settings.md). */
const lookPeriodMs = 5000;

interface Shape {
  readonly what: string;
  readonly pools: number;
  readonly largest: number;
  /** How many of them anything happens in: the largest first. */
  readonly busy: number;
}
const shapes: readonly Shape[] = [
  { what: "one pool", pools: 3, largest: browsers - 2 * smallest, busy: 1 },
  { what: "50 pools", pools: 50, largest: browsers / 50, busy: 50 },
];

interface Written {
  files: number;
  bytes: number;
  largestBytes: number;
  /** Processor time that one write of the largest file takes. */
  largestMs: number;
}
interface Row {
  readonly what: string;
  readonly written: Written;
  readonly cost: Cost;
  /** Browsers that ended, or were lent, as often as the machine came to it. */
  readonly changes: number;
  /** What this process took: simulated browsers, their control, and the journal where there is one. */
  readonly cpuMs: number;
}

/** What keeping its journal costs a node of a thousand browsers, of which a hundredth ends each second. */
export async function benchJournal({ forMs }: { forMs: number }): Promise<Report> {
  setMaxListeners(0);
  const rows: Row[] = [];
  for (const shape of shapes) rows.push(...(await measureShape(shape, forMs)));
  return {
    title: "A node's journal",
    method: [
      `${browsers} browsers on one node: records in a real Redis, changed by the product's own modules, beside beats and ticks.`,
      `Each second ${perSecond} end and are replaced, and ${perSecond} are lent, opened by a client and given back; the node looks every ${lookPeriodMs / 1000} s.`,
      "Per second, over each row's whole time; processor time is that of the process with all of this, and of Redis.",
    ],
    head: [
      "",
      "changes",
      "files",
      "KiB",
      "largest file, KiB",
      "its processor ms",
      "process ms",
      "commands",
      "Redis ms",
    ],
    rows: rows.map((row) => cellsOf(row)),
    bars: [],
  };
}

function cellsOf({ what, written, cost, changes, cpuMs }: Row): readonly string[] {
  const each = (count: number): number => (count / cost.tookMs) * 1000;
  return [
    what,
    each(changes).toFixed(1),
    each(written.files).toFixed(1),
    each(written.bytes / 1024).toFixed(0),
    (written.largestBytes / 1024).toFixed(0),
    written.largestMs.toFixed(1),
    each(cpuMs).toFixed(0),
    each(cost.commands).toFixed(0),
    each(cost.busyMs).toFixed(0),
  ];
}

async function measureShape({ what, pools, largest, busy }: Shape, forMs: number): Promise<readonly Row[]> {
  const server = await startRedis();
  const bed = await openStoreBed(server, { project: "journal", commandTimeoutMs: 60_000 });
  const size = { nodes: 1, browsers, pools, largest, endsPerSecond: 0, lostNodes: 0, forMs };
  const fleet = new SimulatedFleet(bed, size);
  const stopEffects = fleet.serveEffects();
  const fences = await servedFences(server, bed);
  try {
    await fleet.create();
    await fleet.fillAll();
    const measured = { bed, fleet, forMs, busy: fleet.partitions.slice(0, busy) };
    const without = await measure(measured, `${what}, without`);
    const journalled = await measure({ ...measured, isKept: true }, `${what}, with it`);
    return [without, journalled];
  } finally {
    await fleet.stop();
    stopEffects();
    await fences.close();
    await bed.close();
    await server.stop();
  }
}

interface Measured {
  readonly bed: StoreBed;
  readonly fleet: SimulatedFleet;
  readonly forMs: number;
  readonly busy: readonly Partition[];
  readonly isKept?: boolean;
}

async function measure({ bed, fleet, forMs, busy, isKept = false }: Measured, what: string): Promise<Row> {
  const [node] = fleet.nodes;
  if (node === undefined) throw new Error("there is no node");
  const written: Written = { files: 0, bytes: 0, largestBytes: 0, largestMs: 0 };
  const directory = newDirectory("bench-journal");
  const kept = isKept ? await openJournal(bed, { node, directory, written }) : undefined;
  const note = (partition: Partition): void => kept?.journal.note(partition);
  let [cpuMs, changes] = [0, 0];
  const cost = await costOf(bed.redis, async () => {
    const before = process.cpuUsage();
    const over = new AbortController();
    const running = [
      fleet.run(over.signal, 0),
      every(over.signal, lookPeriodMs, () => look(bed, { node, note, partitions: fleet.partitions })),
      every(over.signal, 1000 / perSecond, async () => {
        changes += await endOne(bed, { node, partition: oneOf(busy) });
      }),
      every(over.signal, 1000 / perSecond, async () => {
        changes += await lendOne(bed, { note, partition: oneOf(busy) });
      }),
    ];
    await pause(systemClock, forMs);
    over.abort();
    await Promise.all(running);
    await kept?.journal.close();
    const { user, system } = process.cpuUsage(before);
    cpuMs = (user + system) / 1000;
  });
  if (kept) written.largestMs = await writeAgain(kept);
  rmSync(directory, { recursive: true });
  for (const [text, times] of fleet.faults) console.error(`failed ${times} times: ${text}`);
  return { what, written, cost, changes, cpuMs };
}

interface Kept {
  readonly journal: Journal;
  readonly files: JournalFiles;
}

async function openJournal(
  { dataset: store, poolStore }: StoreBed,
  { node, directory, written }: { node: NodeId; directory: string; written: Written },
): Promise<Kept> {
  const log: Log = { debug: count, info() {}, warn: say, error: say, child: () => log };
  function count({ partition }: object & { partition?: unknown }, message: string): void {
    if (message !== "journal written") return;
    const { size } = statSync(join(directory, `${String(partition)}.sealed`));
    written.files += 1;
    written.bytes += size;
    written.largestBytes = Math.max(written.largestBytes, size);
  }
  function say(fields: object, message: string): void {
    console.error(message, fields);
  }
  const seal = new Seal(new Secret("the secret of a bench"));
  const files = await JournalFiles.open({ directory, seal, log, mostBytes: 64 * 2 ** 20 });
  const journal = await Journal.open({
    node,
    files,
    store,
    poolStore,
    clock: systemClock,
    log,
    redis: "one",
  });
  await journal.adopt((await store.join(undefined)).dataset);
  return { journal, files };
}

const again = 20;

/** The largest entry, in ms of processor time. */
async function writeAgain({ journal, files }: Kept): Promise<number> {
  const entry = journal.entries().toSorted((one, other) => other.browsers.length - one.browsers.length)[0];
  const before = process.cpuUsage();
  for (let times = 0; times < again; times += 1) await files.write("again", entry);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000 / again;
}

const oneOf = (partitions: readonly Partition[]): Partition =>
  partitions[Math.floor(Math.random() * partitions.length)] as Partition;

async function every(over: AbortSignal, periodMs: number, work: () => Promise<unknown>): Promise<void> {
  while (!over.aborted) {
    const began = systemClock.monotonic();
    await work();
    await pause(systemClock, Math.max(1, periodMs - (systemClock.monotonic() - began)), over);
  }
}

/** As a node looks after its records (node/reconciler.ts). */
async function look(
  { poolStore }: StoreBed,
  {
    node,
    partitions,
    note,
  }: { node: NodeId; partitions: readonly Partition[]; note(partition: Partition): void },
): Promise<void> {
  const read = partitions.map(async (partition) => {
    const found = await poolStore.browsersOf(partition, node);
    if (found.browsers.length > 0) note(partition);
  });
  await Promise.all(read);
}

async function endOne(
  { poolStore, reports }: StoreBed,
  { node, partition }: { node: NodeId; partition: Partition },
): Promise<number> {
  const idle = (await poolStore.browsersOf(partition, node)).browsers.find(({ state }) => state === "idle");
  if (!idle) return 0;
  const end = await reports.end(idle.id, "crashed", "simulated");
  if (end.kind !== "retiring") return 0;
  await reports.gone(idle.id, end.claim);
  return 1;
}

async function lendOne(
  { poolStore, reports }: StoreBed,
  { partition, note }: { partition: Partition; note(partition: Partition): void },
): Promise<number> {
  const [id, lease] = [request(), newLeaseId()];
  const waiter = { id, lease, control, connection: id };
  const pool = (await poolStore.findTerms(partition))?.id as PoolId;
  const reply = await poolStore.acquire(partition, { pool, waiter, mayWait: false });
  if (reply.kind !== "granted") return 0;
  const browser = reply.browser.id;
  await reports.connect(browser, lease);
  note(partition);
  const ended = { browser, lease, reuse: true, why: "released", isRetry: false, request: request() } as const;
  const released = await poolStore.release(partition, ended);
  // On a machine that is starved, the lease of a control without a beat may be over.
  return released.kind === "released" ? 1 : 0;
}
