import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { makeAuditReader } from "../../src/audit/read-page.js";
import { makeSeal } from "../../src/audit/seal.js";
import { SegmentFiles } from "../../src/audit/segment-files.js";
import { systemClock } from "../../src/base/clock.js";
import type { Digest } from "../../src/base/ids.js";
import { type AuditBed, always, newEntry, openAuditBed } from "../support/audit/audit-bed.js";
import { DrivenClock } from "../support/driven-clock.js";
import { startRedis, type TestRedis } from "../support/store/redis.js";
import { openStoreBed, type StoreBed } from "../support/store/store-bed.js";

const streamKey = "remuda:{audit}:auditStream";
const intentsKey = "remuda:{audit}:auditIntents";
const minuteMs = 60_000;

let server: TestRedis;
let stores: StoreBed;
let bed: AuditBed;
beforeAll(async () => {
  server = await startRedis();
  stores = await openStoreBed(server, { project: "audit" });
});
afterAll(async () => {
  await stores.close();
  await server.stop();
});
beforeEach(async () => {
  await stores.redis.flushall();
  bed = await openAuditBed(stores);
});
afterEach(() => bed.close());

const pathsOf = (entries: readonly { path: string }[]): string[] => entries.map(({ path }) => path);
const listed = async (): Promise<string[]> => pathsOf(await bed.all());
/** The store of the bed, some of it otherwise. */
const storeWith = (over: Partial<typeof bed.audit>): typeof bed.audit =>
  Object.assign(Object.create(bed.audit), over) as typeof bed.audit;

test("a Redis that is full takes no entries, and lets those that it has be sealed", async () => {
  await bed.appendPaths(["/0", "/1", "/2"]);
  // A change whose control has died becomes an entry, which takes memory.
  const before = Date.now() - 700_000;
  const row = JSON.stringify(["api_key", "root", "", 0, "POST", "/unheard", "", "", 1, "", ""]);
  await stores.redis.hset(intentsKey, "one", `${before} ${before} ${row}`);
  await stores.redis.config("SET", "maxmemory-policy", "noeviction");
  await stores.redis.config("SET", "maxmemory", "1");
  try {
    await expect(bed.appendPaths(["/3"])).rejects.toMatchObject({ code: "store_unavailable" });
    await bed.seal();
  } finally {
    await stores.redis.config("SET", "maxmemory", "0");
  }
  expect((await bed.audit.size()).entries).toBe(0);
  expect(await listed()).toEqual(["/2", "/1", "/0"]);
  await bed.seal();
  expect(await listed()).toEqual(["/unheard", "/2", "/1", "/0"]);
});

test("an entry of another form is in the log as one, and holds up neither lists nor sealing", async () => {
  await bed.appendPaths(["/0"]);
  const rows = [
    "no JSON",
    '{"path":"/x"}',
    '["api_key"]',
    JSON.stringify(Array.from({ length: 11 }, () => 1)),
  ];
  for (const row of rows) await stores.redis.xadd(streamKey, "*", "at", "soon", "entry", row);
  await bed.appendPaths(["/1"]);
  const other = rows.map(() => "(written by another version)");
  expect(await listed()).toEqual(["/1", ...other, "/0"]);
  await makeSeal({ ...bed.sealing, sealBytes: -1 })();
  expect((await bed.audit.size()).entries).toBe(0);
  expect(await listed()).toEqual(["/1", ...other, "/0"]);
});

test("what a failover has lost in the middle of a seal takes nothing with it that has come since", async () => {
  await bed.oldEntries(["/0", "/1"], minuteMs);
  const before = await stores.redis.dumpBuffer(streamKey);
  await bed.oldEntries(["/lost", "/lost too"], minuteMs / 2);
  const commit = async (...given: Parameters<typeof bed.audit.commit>) => {
    // Another Redis goes on, whose clock is behind.
    await stores.redis.restore(streamKey, 0, before, "REPLACE");
    await bed.oldEntries(["/since"], (minuteMs * 3) / 4);
    return await bed.audit.commit(...given);
  };
  const sealing = { ...bed.sealing, sealBytes: -1 };
  await makeSeal({ ...sealing, store: storeWith({ commit }) })();
  await makeSeal(sealing)();
  expect((await bed.audit.size()).entries).toBe(0);
  expect(await listed()).toEqual(["/since", "/1", "/0"]);
});

test("a control that has stood still between a segment's archives and its commit commits nothing", async () => {
  await bed.appendPaths(["/0", "/1"]);
  const size = async () => {
    const { at, ...rest } = await bed.audit.size();
    return { ...rest, at: at - 40 * minuteMs };
  };
  await makeSeal({ ...bed.sealing, store: storeWith({ size }) })();
  // Its archives may be swept by now, since nothing named them.
  for (const name of await bed.archived()) await rm(join(bed.directory, "archives", name));
  expect(await bed.audit.manifest()).toMatchObject({ last: 0 });
  expect(await listed()).toEqual(["/1", "/0"]);
});

test("entries are found by when they were received, also after Redis's clock was set back by hours", async () => {
  const ahead = Date.now() + 180 * minuteMs;
  await bed.oldEntry({ path: "/ahead", recordedAt: ahead, at: ahead });
  await bed.appendPaths(["/back"]);
  const around = { start: Date.now() - minuteMs, end: Date.now() + minuteMs };
  expect(pathsOf(await bed.all(around))).toEqual(["/back"]);
  await bed.seal();
  expect(pathsOf(await bed.all(around))).toEqual(["/back"]);
});

test("while the clock stands, positions stay what they are", async () => {
  const ahead = Date.now() + 10 * minuteMs;
  await bed.oldEntry({ path: "/ahead", recordedAt: ahead, at: ahead });
  await stores.redis.xsetid(streamKey, `${ahead}-999990`);
  await bed.appendPaths(Array.from({ length: 5 }, (_, index) => `/${index}`));
  await bed.appendPaths(Array.from({ length: 20 }, (_, index) => `/more${index}`));
  await bed.seal();
  const found = await bed.all();
  expect(found).toHaveLength(26);
  for (const { position } of found) expect(position).toMatch(/^\d{13}-\d{6}$/);
});

test("a search finds what it looks for though a segment's summary is lost", async () => {
  await bed.append([newEntry({ path: "/wanted" }), newEntry({ path: "/other" })]);
  await bed.seal();
  const [{ grams = "" } = {}] = await bed.audit.segments(1, 1);
  await rm(join(bed.directory, "archives", grams.slice(0, 2), grams.slice(2, 4), grams));
  const { reader } = bed.counting();
  const got = await reader.page({ filter: { ...always(), search: "wanted" }, limit: 10 });
  expect(got).toMatchObject({ value: { entries: [{ path: "/wanted" }] } });
});

test("a search waits for archives that hang as long as one look at them may last, and no longer", async () => {
  await bed.appendPaths(["/0"]);
  await bed.seal();
  const clock = new DrivenClock();
  const never = new Promise<never>(() => {});
  let begin = (): void => {};
  const begun = new Promise<void>((resolve) => (begin = resolve));
  const archives = { open: () => (begin(), never), put: () => never };
  const files = new SegmentFiles({ archives, staging: { take: () => never }, clock });
  const reader = makeAuditReader({ store: bed.audit, files, clock });
  const page = reader.page({ filter: { ...always(), search: "wanted" }, limit: 10 });
  const refused = expect(page).rejects.toMatchObject({ code: "store_unavailable" });
  await begun;
  await clock.advance(30_000);
  expect(clock.pending).toBe(0);
  await refused;
});

test("a search ends when nobody waits for it any more", async () => {
  for (let segment = 0; segment < 4; segment += 1) {
    await bed.appendPaths([`/${segment}`]);
    await bed.seal();
  }
  const gone = new AbortController();
  const read: string[] = [];
  const files = bed.newFiles();
  const counted = {
    grams: files.grams.bind(files),
    rows: (segment: { rows: Digest; count: number }) => {
      read.push(segment.rows);
      if (read.length === 2) gone.abort();
      return files.rows(segment);
    },
  };
  const reader = makeAuditReader({ store: bed.audit, files: counted, clock: systemClock });
  // Two characters are too few for summaries.
  await reader.page({ filter: { ...always(), search: "zz" }, limit: 10, gone: gone.signal });
  expect(read).toHaveLength(2);
});

test("where archives cannot be written nothing is sealed, and nothing is lost", async () => {
  await bed.appendPaths(["/0", "/1"]);
  const archives = join(bed.directory, "archives");
  await writeFile(archives, "no directory");
  await expect(bed.seal()).rejects.toThrow();
  expect(await listed()).toEqual(["/1", "/0"]);
  await rm(archives);
  await bed.seal();
  expect((await bed.audit.size()).entries).toBe(0);
  expect(await listed()).toEqual(["/1", "/0"]);
});

test("after FLUSHALL the log begins anew, and a writer goes on with its numbers", async () => {
  await bed.appendPaths(["/0"]);
  await bed.seal();
  await stores.redis.flushall();
  await bed.appendPaths(["/1"]);
  expect(await listed()).toEqual(["/1"]);
  await bed.seal();
  expect(await listed()).toEqual(["/1"]);
});
