import { createHash } from "node:crypto";
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { hashOf, type SealedSegment } from "../../src/audit/segment.js";
import { verifyLog } from "../../src/audit/verify-log.js";
import { type AuditBed, always, openAuditBed } from "../support/audit/audit-bed.js";
import { startRedis, type TestRedis } from "../support/store/redis.js";
import { openStoreBed, type StoreBed } from "../support/store/store-bed.js";

const segmentsKey = "remuda:{audit}:auditSegments";
const streamKey = "remuda:{audit}:auditStream";
const stateKey = "remuda:{audit}:auditState";

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
/** Three segments of ten entries, and five entries that are not sealed. */
beforeEach(async () => {
  await stores.redis.flushall();
  bed = await openAuditBed(stores, { segmentEntries: 10 });
  await bed.appendPaths(Array.from({ length: 30 }, (_, index) => `/${index}`));
  await bed.seal();
  await bed.appendPaths(["/30", "/31", "/32", "/33", "/34"]);
});
afterEach(() => bed.close());

const verified = (more: Partial<Parameters<typeof verifyLog>[1]> = {}) =>
  verifyLog({ store: bed.audit, archives: bed.archives }, { ...always(), ...more });
const segment = async (number: number): Promise<SealedSegment> => {
  const [found] = await bed.audit.segments(number, number);
  if (!found) throw new Error(`there is no segment ${number}`);
  return found;
};
const pathOf = (digest: string): string =>
  join(bed.directory, "archives", digest.slice(0, 2), digest.slice(2, 4), digest);

test("a log that is as it was sealed has no fault, and its head is that of the manifest", async () => {
  const { hash } = await segment(3);
  expect(await verified()).toEqual({
    first: 1,
    segments: 3,
    entries: 30,
    head: { number: 3, hash },
    isUncompared: false,
    faults: [],
  });
});

test("of segments without requests of the range only the chain is looked at", async () => {
  await rm(pathOf((await segment(2)).rows));
  expect(await verified({ start: Date.now() + 60_000 })).toMatchObject({
    segments: 0,
    entries: 0,
    faults: [],
  });
});

test("a changed byte is found in its segment", async () => {
  const path = pathOf((await segment(2)).rows);
  const bytes = await readFile(path);
  bytes[bytes.length >> 1] = (bytes[bytes.length >> 1] ?? 0) ^ 1;
  await writeFile(path, bytes);
  const { faults } = await verified();
  expect(faults).toEqual([expect.stringMatching(/^segment 2: cannot be read: the bytes of archive/)]);
});

test("a lost archive is found in its segment, be it of entries or the summary", async () => {
  await rm(pathOf((await segment(1)).rows));
  await rm(pathOf((await segment(3)).grams));
  const { faults } = await verified();
  expect(faults).toEqual([
    expect.stringMatching(/^segment 1: cannot be read/),
    expect.stringMatching(/^segment 3: cannot be read/),
  ]);
});

test("a segment that was taken out of the manifest is found", async () => {
  await bed.redis.zremrangebyscore(segmentsKey, 2, 2);
  expect((await verified()).faults).toEqual([
    "segment 2: is not in the manifest",
    "segment 3: does not name the segment before it",
  ]);
});

/** A log whose oldest segment retention takes away once the list was read. */
const forgetting = (
  alsoDropped: (
    oldest: Awaited<ReturnType<typeof bed.audit.segments>>[number] | undefined,
  ) => Promise<void> = async () => {},
) => ({
  manifest: () => bed.audit.manifest(),
  oldest: bed.audit.oldest.bind(bed.audit),
  async segments(from: number, to: number) {
    const segments = await bed.audit.segments(from, to);
    const [oldest] = segments;
    if (oldest) await bed.audit.drop(oldest);
    await alsoDropped(oldest);
    return segments;
  },
});

/** Puts other entries in the place of a segment's, with digests and a hash that fit. */
async function forge(number: number, change: (lines: string[]) => readonly string[]): Promise<void> {
  const before = await segment(number);
  const lines = gunzipSync(await readFile(pathOf(before.rows)))
    .toString()
    .trimEnd()
    .split("\n");
  const staging = join(bed.directory, "forged");
  const packed = gzipSync(`${change(lines).join("\n")}\n`);
  await writeFile(staging, packed);
  const rows = createHash("sha256").update(packed).digest("hex") as typeof before.rows;
  await bed.archives.put(rows, staging);
  const forged = { ...before, rows };
  await bed.redis.zremrangebyscore(segmentsKey, number, number);
  await bed.redis.zadd(segmentsKey, number, JSON.stringify({ ...forged, hash: hashOf(forged) }));
}

test("a segment with an entry fewer is found by its count, and by the one after it", async () => {
  await forge(2, (lines) => lines.slice(1));
  expect((await verified()).faults).toEqual([
    "segment 2: has 9 entries where the manifest says 10",
    "segment 3: does not name the segment before it",
  ]);
});

test("a segment made anew with other entries is found by the one after it", async () => {
  await forge(2, (lines) => lines.map((line) => line.replace('"GET"', '"PUT"')));
  expect((await verified()).faults).toEqual([
    "segment 2: its entries are not what the manifest says of them",
    "segment 3: does not name the segment before it",
  ]);
});

test("a tail that was cut off is found where only the list was cut, else by the head that was noted", async () => {
  const { head: noted } = await verified();
  await bed.redis.zremrangebyscore(segmentsKey, 3, 3);
  expect((await verified()).faults).toContain("segment 3: is not in the manifest");
  const { hash } = await segment(2);
  await bed.redis.hset(stateKey, "last", "2", "hash", hash);
  expect((await verified()).faults).toEqual([]);
  expect((await verified({ noted })).faults).toEqual([
    "segment 3: was noted down and is not there: the log was cut off or made anew since",
  ]);
  await bed.seal();
  expect((await verified({ noted })).faults).toEqual([
    "segment 3: is not the one that was noted down: the log was made anew since",
  ]);
  expect((await verified()).faults).toEqual([]);
});

test("a head is compared with what is kept of it: itself, the link of the segment after it, the note of the end", async () => {
  const [one, two, three] = await Promise.all([1, 2, 3].map(segment));
  const other = "0".repeat(64);
  const look = async (number: number, hash = other) => {
    const { faults, isUncompared } = await verified({ noted: { number, hash } });
    return { faults, isUncompared };
  };
  const whole = { faults: [], isUncompared: false };
  expect(await look(1, one?.hash)).toEqual(whole);
  await bed.audit.drop(one as SealedSegment);
  expect(await look(1, one?.hash)).toEqual(whole);
  expect(await look(1)).toEqual({
    faults: ["segment 2: names another before it than was noted down: the log was made anew since"],
    isUncompared: false,
  });
  await bed.audit.drop(two as SealedSegment);
  expect(await look(2, two?.hash)).toEqual(whole);
  expect(await look(1, one?.hash)).toEqual({ faults: [], isUncompared: true });
  expect(await look(1)).toEqual({ faults: [], isUncompared: true });
  await bed.audit.drop(three as SealedSegment);
  expect(await look(3, three?.hash)).toEqual(whole);
  expect(await look(3)).toMatchObject({
    faults: ["segment 3: is not the one that was noted down: the log was made anew since"],
  });
  expect(await look(2, two?.hash)).toEqual({ faults: [], isUncompared: true });
});

test("a head that is not that of the log is told also where retention takes its segment away during the look", async () => {
  const noted = { number: 1, hash: "0".repeat(64) };
  const store = forgetting();
  const { faults } = await verifyLog({ store, archives: bed.archives }, { ...always(), noted });
  expect(faults).toEqual(["segment 1: is not the one that was noted down: the log was made anew since"]);
});

test("entries that are sealed and in Redis are found", async () => {
  const { first } = await segment(1);
  const [at, number] = first.split("-");
  const [unsealed] = await bed.redis.xrange(streamKey, "-", "+", "COUNT", 1);
  await bed.redis.del(streamKey);
  await bed.redis.xadd(streamKey, `${at}-${Number(number)}`, ...(unsealed?.[1] ?? []));
  expect((await verified()).faults).toEqual(["segment 3: has entries that are in Redis too"]);
});

test("what retention takes away during a look is no fault", async () => {
  const store = forgetting(async (oldest) => await rm(pathOf(oldest?.rows ?? "")));
  const got = await verifyLog({ store, archives: bed.archives }, always());
  expect(got).toMatchObject({ segments: 3, faults: [] });
});
