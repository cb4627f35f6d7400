import type { Redis } from "ioredis";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { type ClaimId, newBrowserId, newPoolId, newRequestId, partitionOf } from "../../../src/base/ids.js";
import { yieldTurn } from "../../../src/base/yield-turn.js";
import type { ScriptStore } from "../../../src/store/redis/redis.js";
import { openScriptStore } from "../../support/store/open-script-store.js";
import { startRedis, type TestRedis } from "../../support/store/redis.js";
import { openStoreBed } from "../../support/store/store-bed.js";

let redis: TestRedis;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

const limitMs = 5000;
const openStore = (): Promise<ScriptStore> => openScriptStore(redis.url, limitMs);
/** Whether what was asked is still kept until the end of the turn. */
const isKept = (store: ScriptStore): boolean => (store.redis as Redis).stream.writableCorked > 0;

test("a command leaves at once after a turn that has asked one alone, and another of its turn at the end", async () => {
  const store = await openStore();
  await store.now();
  const first = store.now();
  expect(isKept(store)).toBe(false);
  const second = store.now();
  expect(isKept(store)).toBe(true);
  await yieldTurn();
  expect(isKept(store)).toBe(false);
  await Promise.all([first, second]);
});

test("commands leave in one write after a turn that has asked several", async () => {
  const store = await openStore();
  await Promise.all([store.now(), store.now()]);
  const asked = store.now();
  expect(isKept(store)).toBe(true);
  await yieldTurn();
  expect(isKept(store)).toBe(false);
  await asked;
  const next = store.now();
  expect(isKept(store)).toBe(false);
  await next;
});

test("what a node has fenced is told at the end of the turn, not behind what is asked in the next", async () => {
  const bed = await openStoreBed(redis, { project: "turns" });
  onTestFinished(() => bed.close());
  const { stream } = bed.store.redis as Redis;
  const before = stream.bytesWritten;
  const browser = newBrowserId(partitionOf(newPoolId()));
  const told = bed.reports.freed(browser, newRequestId() as string as ClaimId);
  await yieldTurn();
  expect([isKept(bed.store), stream.bytesWritten > before]).toEqual([false, true]);
  expect(await told).toBe("stale");
});
