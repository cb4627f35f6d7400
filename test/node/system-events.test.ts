import { afterEach, expect, test } from "vitest";
import { type LeaseId, newBrowserId, newLeaseId, onDemandPartition } from "../../src/base/ids.js";
import { lookForOomKills, tellOomKills } from "../../src/node/system-events.js";
import { BrowserTelemetry } from "../../src/telemetry/browser-telemetry.js";
import type { MemoryUse } from "../../src/browser/resources/cgroup-memory.js";
import type { KilledProcess } from "../../src/browser/resources/kernel-log.js";
import type { EventBatch } from "../../src/telemetry/ports.js";
import type { Recorder } from "../../src/telemetry/recorder.js";
import { until } from "../support/browser/chromium-until.js";
import { openNodeBed, type NodeBed } from "../support/node/node-bed.js";
import { oneSlot } from "../support/node/one-slot.js";
import { PoolBed } from "../support/store/pool-bed.js";
import { makeRecorder, telemetryInto } from "../support/telemetry/recorder.js";

let node: NodeBed | undefined;
afterEach(async () => {
  await node?.close();
  node = undefined;
});

/** Keeps what is stored. */
function storedEvents() {
  const texts: string[] = [];
  const append = async ({ events }: EventBatch) => {
    const last = texts.push(...events.map(({ text }) => text));
    return { last, lost: 0 };
  };
  const all = (): unknown[] => texts.map((text) => JSON.parse(text) as unknown);
  return { recorder: makeRecorder({ append }), all };
}

const system = { revision: 1, telemetry: JSON.stringify({ browser: { system: { enabled: true } } }) };

test("a browser that crashes is told to its holder, and to nobody without a lease", async () => {
  const { recorder, all } = storedEvents();
  node = await openNodeBed("systemevents", { makeTelemetry: telemetryInto(recorder) });
  const pool = await PoolBed.create(node.bed, { size: 2 });
  const [leased, idle] = await pool.claim(2);
  if (!leased || !idle) throw new Error("nothing was claimed");
  await node.launch(leased);
  await node.launch(idle);
  const slot = node.slots.find(leased.id);
  const lease = newLeaseId();
  slot?.activity.begin(lease);
  slot?.captures(lease, { telemetry: system.telemetry });
  const pid = slot?.chromium.pid;
  for (const launched of node.launched) process.kill(launched.pid, "SIGKILL");
  await until("both ends", () => node?.slots.all().length === 0);
  await until("the event", () => all().length > 0);
  expect(all()).toMatchObject([
    {
      type: "service_crashed",
      category: "system",
      source: { kind: "local_process" },
      data: { service_name: "chromium", phase: "running", pid },
    },
  ]);
});

test("a browser that could not be started again within its session is told as given up, once", async () => {
  const { recorder, all } = storedEvents();
  node = await openNodeBed("systemgaveup", { makeTelemetry: telemetryInto(recorder) });
  const { pool, slot } = await oneSlot(node);
  const { lease } = await pool.lend();
  slot.activity.begin(lease);
  slot.captures(lease, { telemetry: system.telemetry });
  const digest = await node.assets.keep({ fake: "deadly", files: { "own.txt": "deadly" } });
  await node.fake.turn({ failWithCode: 3 });
  expect(await node.uploads.add(slot, lease, [{ name: "deadly", digest }])).toMatchObject({ isDone: false });
  await until("its end", () => node?.slots.all().length === 0);
  await recorder.close();
  expect(all()).toMatchObject([
    { type: "service_crashed", data: { service_name: "chromium", phase: "gave_up" } },
  ]);
});

const mebibyte = 2 ** 20;
const held = { bytes: 100 * mebibyte, peakBytes: 1000 * mebibyte };

/** A browser of which the kernel has killed so many processes, and its lease, which wants to know. */
function watchedBrowser(recorder: Recorder) {
  const telemetry = new BrowserTelemetry({
    browser: newBrowserId(onDemandPartition),
    launched: undefined,
    recorder,
  });
  const memory: MemoryUse[] = [{ ...held, outOfMemoryKills: 0 }];
  const chromium = {
    pid: 7,
    memory: async () => memory.at(-1),
    outOfMemoryKills: () => memory.at(-1)?.outOfMemoryKills,
  };
  const slot = { telemetry, oomKills: 0, awaitedOomKills: 0, chromium };
  const lease = newLeaseId();
  const kill = (count: number, killed: readonly KilledProcess[] = []): MemoryUse => {
    memory.push({ ...held, outOfMemoryKills: count, killed });
    return { ...held, outOfMemoryKills: count, killed };
  };
  return { slot, kill, begin: () => telemetry.told(lease, system), end: () => telemetry.over(lease) };
}
const killsOf = (events: readonly unknown[]): unknown[] =>
  (events as { type: string; data: object }[]).map(({ type, data }) => [type, data]);
/** What is told of a kill of which nothing but the count is known. */
const unknownKill = (fields: object = {}): unknown => [
  "system_oom_kill",
  { process_name: "chromium", constraint: "memcg", pid: 7, rss_kb: 900 * 1024, ...fields },
];

test("what the kernel kills for want of memory is told while somebody wants to know, and once", async () => {
  const { recorder, all } = storedEvents();
  const { slot, kill, begin, end } = watchedBrowser(recorder);
  kill(1);
  await lookForOomKills([slot]);
  begin();
  await lookForOomKills([slot]);
  kill(3);
  await lookForOomKills([slot]);
  await lookForOomKills([slot]);
  await end();
  await recorder.close();
  expect(killsOf(all())).toEqual([unknownKill(), unknownKill()]);
});

test("what is killed between the beginning of a lease and the first look after it is told too", async () => {
  const { recorder, all } = storedEvents();
  const { slot, kill, begin } = watchedBrowser(recorder);
  begin();
  kill(1);
  await lookForOomKills([slot]);
  // Chromium itself may be killed before the next look: what it has left is looked at.
  tellOomKills(slot, kill(2));
  await recorder.close();
  expect(killsOf(all())).toEqual([unknownKill(), unknownKill()]);
});

/** An idle browser of a node, and what its cgroup is said to have counted. */
async function killedBrowser() {
  const texts = new Map<string, unknown[]>();
  const append = async ({ stream: { lease }, events }: EventBatch) => {
    const told = texts.get(lease) ?? [];
    texts.set(lease, told);
    return { last: told.push(...events.map(({ text }) => JSON.parse(text) as unknown)), lost: 0 };
  };
  const recorder = makeRecorder({ append });
  node = await openNodeBed("systemoom", { makeTelemetry: telemetryInto(recorder) });
  const { slot } = await oneSlot(node);
  let kills = 0;
  const memory = async (): Promise<MemoryUse> => ({ ...held, outOfMemoryKills: kills });
  Object.assign(slot.chromium, { memory, outOfMemoryKills: () => kills });
  const begin = (telemetry?: string): LeaseId => {
    const lease = newLeaseId();
    slot.activity.begin(lease);
    if (telemetry !== undefined) slot.captures(lease, { telemetry });
    return lease;
  };
  return {
    slot,
    begin,
    end: (lease: LeaseId) => slot.activity.cutLease(lease, "released"),
    kill: () => void (kills += 1),
    /** How many each lease was told of. */
    told: async (...leases: LeaseId[]) => {
      await recorder.close();
      return leases.map((lease) => (texts.get(lease) ?? []).length);
    },
  };
}

test("what is killed just before a lease ends is told to its holder, and not to the next", async () => {
  const { slot, begin, end, kill, told } = await killedBrowser();
  const first = begin(system.telemetry);
  kill();
  await end(first);
  const second = begin(system.telemetry);
  await lookForOomKills([slot]);
  expect(await told(first, second)).toEqual([1, 0]);
});

test("what is killed under a holder who does not want to know is not told to the next", async () => {
  const { slot, begin, end, kill, told } = await killedBrowser();
  const first = begin();
  kill();
  await end(first);
  const second = begin(system.telemetry);
  await lookForOomKills([slot]);
  kill();
  await lookForOomKills([slot]);
  expect(await told(first, second)).toEqual([0, 1]);
});

test("what is killed between two leases is told to neither", async () => {
  const { slot, begin, end, kill, told } = await killedBrowser();
  const first = begin(system.telemetry);
  await end(first);
  kill();
  const second = begin(system.telemetry);
  await lookForOomKills([slot]);
  expect(await told(first, second)).toEqual([0, 0]);
});

test("of a killed process it is told what the kernel's log says, also where that lacks one", async () => {
  const { recorder, all } = storedEvents();
  const { slot, kill, begin } = watchedBrowser(recorder);
  const killed = [11, 12].map((pid) => ({
    pid,
    name: "chrome",
    residentBytes: 5 * mebibyte,
    constraint: "none",
  }));
  begin();
  kill(2, killed as KilledProcess[]);
  await lookForOomKills([slot]);
  kill(3, killed as KilledProcess[]);
  await lookForOomKills([slot]);
  await recorder.close();
  const known = (pid: number): unknown => [
    "system_oom_kill",
    { process_name: "chrome", constraint: "none", pid, rss_kb: 5 * 1024 },
  ];
  expect(killsOf(all())).toEqual([known(11), known(12), unknownKill()]);
});

test("of very many that are killed at once the last that is told stands for the rest", async () => {
  const { recorder, all } = storedEvents();
  const { slot, kill, begin } = watchedBrowser(recorder);
  begin();
  kill(1000);
  await lookForOomKills([slot]);
  await recorder.close();
  const told = killsOf(all());
  expect(told).toHaveLength(20);
  expect(told.at(-1)).toEqual(unknownKill({ kills: 981 }));
});
