import { setImmediate as nextTurn } from "node:timers/promises";
import { afterEach, expect, test } from "vitest";
import { startResourceWatch } from "../../../src/node/usage/resource-watch.js";
import { measureMount, type StorageUse } from "../../../src/browser/resources/scratch-usage.js";
import type { Slot } from "../../../src/node/slot.js";
import { until } from "../../support/browser/chromium-until.js";
import { silentLog } from "../../support/browser/chromium-host.js";
import { DrivenClock } from "../../support/driven-clock.js";
import { type NodeBed, openNodeBed } from "../../support/node/node-bed.js";
import { PoolBed } from "../../support/store/pool-bed.js";

let node: NodeBed | undefined;
let watch: ReturnType<typeof startResourceWatch> | undefined;
afterEach(async () => {
  watch?.stop();
  await node?.close();
  node = undefined;
});

test("one mount is measured in a turn of the event loop, and one that is gone keeps no other from it", async () => {
  node = await openNodeBed("resourcewatch", {});
  const pool = await PoolBed.create(node.bed, { size: 3 });
  for (const browser of await pool.claim(3)) await node.launch(browser);
  const mounts = node.slots.all().filter((slot) => slot.chromium.isolation.limits.scratch === "mount");
  const removed = mounts[0]?.chromium.directories.root;
  const clock = new DrivenClock();
  let [inThisTurn, most] = [0, 0];
  const looks: number[] = [];
  watch = startResourceWatch({
    slots: node.slots,
    clock,
    log: silentLog,
    meter: { limitPassed() {} },
    limits: { maxScratchBytes: 2 ** 30, maxScratchFiles: 1000 },
    maxFullness: 0.9,
    memoryPeriodMs: 1000,
    storagePeriodMs: 60_000,
    usage: {
      memory: async () => new Map(),
      stored: async () => new Map(),
      storedInMount(root) {
        if (root === removed) return measureMount(`${root}-removed`);
        most = Math.max(most, (inThisTurn += 1));
        setImmediate(() => (inThisTurn = 0));
        return { bytes: 0, files: 0 };
      },
      async fullness(inMounts) {
        looks.push(inMounts.length);
        return 0;
      },
    },
  });
  await clock.advance(1000);
  await until("a look at all of them", () => looks.length > 0);
  // An ordinary user's browsers have none.
  const measured = Math.max(0, mounts.length - 1);
  expect({ looks, most }).toEqual({ looks: [measured], most: Math.min(measured, 1) });
});

const mebibyte = 2 ** 20;
const little = { bytes: mebibyte, files: 1 };
const much = { bytes: 256 * mebibyte, files: 1 };

/** A watch over two browsers in a full directory, and what it has retired of them. */
async function watchFull(): Promise<{
  hidden: Slot;
  neighbour: Slot;
  retired: string[];
  look(counts: readonly (StorageUse | null)[], fullness?: number): Promise<void>;
}> {
  node = await openNodeBed("resourcewatch", { hostSettings: { usesMounts: false } });
  const pool = await PoolBed.create(node.bed, { size: 2 });
  for (const browser of await pool.claim(2)) await node.launch(browser);
  const [hidden, neighbour] = node.slots.all() as [Slot, Slot];
  const clock = new DrivenClock();
  const retired: string[] = [];
  let [looks, fullness] = [0, 0];
  let counts: readonly (StorageUse | null)[] = [];
  watch = startResourceWatch({
    slots: { all: () => [hidden, neighbour], retireNow: async ({ id }) => void retired.push(id) },
    clock,
    log: silentLog,
    meter: { limitPassed() {} },
    limits: { maxScratchBytes: 2 ** 30, maxScratchFiles: 1000 },
    maxFullness: 0.9,
    memoryPeriodMs: 1000,
    storagePeriodMs: 600_000,
    usage: {
      memory: async () => new Map(),
      stored: async (browsers) => new Map(browsers.map(({ root }, at) => [root, counts[at] ?? null])),
      storedInMount: () => ({ bytes: 0, files: 0 }),
      async fullness() {
        looks += 1;
        return fullness;
      },
    },
  });
  return {
    hidden,
    neighbour,
    retired,
    async look(nextCounts, nextFullness = 0.95) {
      [counts, fullness] = [nextCounts, nextFullness];
      const before = looks;
      await clock.advance(1000);
      await until("a look", () => looks > before);
      await nextTurn();
    },
  };
}

test("where a full disk's browsers cannot all be counted, the one that hides goes, and no neighbour for it", async () => {
  const { hidden, retired, look } = await watchFull();
  await look([null, much]);
  expect(retired).toEqual([]);
  await look([null, much]);
  expect(retired).toEqual([hidden.id]);
});

test("one that could not be counted once only is no reason to wait for long", async () => {
  const { hidden, neighbour, retired, look } = await watchFull();
  await look([null, much]);
  await look([much, null]);
  expect(retired).toEqual([hidden.id]);
  await look([null, much]);
  expect(retired).toEqual([hidden.id]);
  await look([little, much]);
  expect(retired).toEqual([hidden.id, neighbour.id]);
});

test("who hides anew, after another has gone for that, is waited for as well", async () => {
  const { hidden, retired, look } = await watchFull();
  await look([null, much]);
  await look([null, much]);
  await look([much, null]);
  expect(retired).toEqual([hidden.id]);
});

test.each([
  ["there was room", 0.5],
  ["others filled the disk no further", 0.955],
])("so is who hides after %s meanwhile", async (_, fullness) => {
  const { retired, look } = await watchFull();
  await look([little, little]);
  await look([null, much], 0.97);
  await look([], fullness);
  await look([much, null], 0.97);
  expect(retired).toEqual([]);
});
