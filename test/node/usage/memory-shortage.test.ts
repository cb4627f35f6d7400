import { beforeEach, expect, test } from "vitest";
import { type BrowserId, newBrowserId, onDemandPartition } from "../../../src/base/ids.js";
import { MemoryShortage } from "../../../src/node/usage/memory-shortage.js";
import { silentLog } from "../../support/browser/chromium-host.js";
import { DrivenClock } from "../../support/driven-clock.js";

const mebi = 2 ** 20;
const bytes = 1000 * mebi;
const periodMs = 1000;

let clock: DrivenClock;
let leftMebibytes: number;
let standing: BrowserId[];
let lent: ReadonlySet<BrowserId>;
let asked: (readonly BrowserId[])[];
let told: boolean[];
let ended: number;
let isStoreAway: boolean;
let shortage: MemoryShortage;
beforeEach(() => {
  clock = new DrivenClock();
  standing = Array.from({ length: 5 }, () => newBrowserId(onDemandPartition));
  [leftMebibytes, lent, asked, told, ended, isStoreAway] = [1000, new Set(), [], [], 0, false];
  shortage = new MemoryShortage({
    standing: () => standing,
    readMemory: async () => ({ bytes, leftBytes: leftMebibytes * mebi }),
    async retire(browsers) {
      asked.push(browsers);
      if (isStoreAway) throw new Error("Redis is away");
      standing = standing.filter((id) => !browsers.includes(id));
      return browsers.filter((id) => lent.has(id));
    },
    part: 0.1,
    periodMs,
    changed: () => void told.push(shortage.isShort),
    meter: { memoryLeft() {}, standbyEnded: (count) => void (ended += count) },
    clock,
    log: silentLog,
  });
});

const lookAt = async (mebibytes: number): Promise<boolean> => {
  leftMebibytes = mebibytes;
  await shortage.look();
  return shortage.isShort;
};

test("a node says that its memory is short, and then ends as many as would leave enough", async () => {
  expect(await lookAt(100)).toBe(false);
  expect(await lookAt(99)).toBe(true);
  expect([told, asked]).toEqual([[true], []]);
  const [first, second, third] = standing;
  await lookAt(-20);
  expect(asked).toEqual([[first, second]]);
  await lookAt(40);
  expect(asked.slice(1)).toEqual([[third]]);
  await lookAt(100);
  await lookAt(299);
  expect([asked.length, standing.length, ended, told]).toEqual([2, 2, 3, [true]]);
});

test("it is short until there is room for those that are launched at once, so that none comes only to go", async () => {
  await lookAt(50);
  expect(await lookAt(299)).toBe(true);
  expect(await lookAt(300)).toBe(false);
  expect(await lookAt(101)).toBe(false);
  expect(told).toEqual([true, false]);
});

test("in the place of one that has just been lent another ends, while there is any", async () => {
  lent = new Set(standing.slice(0, 4));
  const last = standing[4];
  await lookAt(50);
  await lookAt(50);
  expect([asked.length, asked.at(-1), ended]).toEqual([5, [last], 1]);
  await lookAt(0);
  expect(asked.length).toBe(5);
});

test("it looks each period, and goes on where what is to end could not be told", async () => {
  leftMebibytes = 50;
  const stop = shortage.start();
  isStoreAway = true;
  await clock.advance(2 * periodMs);
  expect([asked.length, ended]).toEqual([1, 0]);
  isStoreAway = false;
  await clock.advance(periodMs);
  expect([asked.length, ended]).toEqual([2, 1]);
  stop();
  await clock.advance(5 * periodMs);
  expect(asked.length).toBe(2);
});
