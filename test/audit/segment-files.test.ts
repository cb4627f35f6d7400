import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { DirectoryArchives } from "../../src/archive/directory-archives.js";
import { openStaging } from "../../src/archive/staging.js";
import { positionAt } from "../../src/audit/entry.js";
import { SegmentFiles } from "../../src/audit/segment-files.js";
import { systemClock } from "../../src/base/clock.js";
import type { Digest } from "../../src/base/ids.js";
import { newEntry } from "../support/audit/audit-bed.js";
import { DrivenClock } from "../support/driven-clock.js";

let directory: string;
let archives: DirectoryArchives;
let staging: Awaited<ReturnType<typeof openStaging>>;
let clock: DrivenClock;
const opened: Digest[] = [];
/** What comes before an archive is opened. */
let opening: (digest: Digest) => Promise<Readable | undefined>;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "remuda-segments-"));
  archives = new DirectoryArchives(join(directory, "archives"), systemClock);
  staging = await openStaging(join(directory, "staging"));
});
afterAll(() => rm(directory, { recursive: true }));
beforeEach(() => {
  clock = new DrivenClock();
  opened.length = 0;
  opening = async () => undefined;
});

const open = async (digest: Digest): Promise<Readable> => {
  opened.push(digest);
  return (await opening(digest)) ?? (await archives.open(digest));
};
const openFiles = () =>
  new SegmentFiles({ archives: { put: archives.put.bind(archives), open }, staging, clock });
const paths = ["/0", "/1", "/2", "/3", "/4"];
const put = async (path: string) => {
  const entry = { ...newEntry({ path }), position: positionAt(1), at: 1 };
  return { ...(await openFiles().put([entry])), count: 1 };
};
const patience = { timeout: 60_000 };

test("however many search at once, two segments are unpacked at a time, and each once for all", async () => {
  const segments = await Promise.all(paths.map(put));
  let release = (): void => {};
  const released = new Promise<undefined>((resolve) => (release = () => resolve(undefined)));
  opening = () => released;
  const files = openFiles();
  const reading = [...segments, ...segments].map((segment) => files.rows(segment));
  await expect.poll(() => opened.length, patience).toBe(2);
  release();
  const read = await Promise.all(reading);
  expect(read.map((rows) => rows.entry(0).path)).toEqual([...paths, ...paths]);
  expect(opened.toSorted()).toEqual(segments.map(({ rows }) => rows).toSorted());
});

test("archives that do not answer are an error in time, and are asked for no more than two at once", async () => {
  const segments = await Promise.all(paths.map(put));
  let release = (): void => {};
  const released = new Promise<undefined>((resolve) => (release = () => resolve(undefined)));
  opening = () => released;
  const files = openFiles();
  const late = { code: "store_unavailable", message: expect.stringContaining("in time") };
  for (let tries = 0; tries < 2; tries += 1) {
    const reading = segments.flatMap((segment) => [files.rows(segment), files.grams(segment)]);
    const ended = Promise.allSettled(reading);
    await clock.advance(30_000);
    for (const end of await ended) expect(end).toMatchObject({ status: "rejected", reason: late });
  }
  expect(opened).toHaveLength(2);
  release();
  expect(
    (await Promise.all(segments.map((segment) => files.rows(segment)))).map(({ length }) => length),
  ).toEqual(paths.map(() => 1));
});

test("an archive without an end is not read to its end", async () => {
  const segment = await put("/endless");
  let pushed = 0;
  opening = async () =>
    new Readable({
      read() {
        this.push(Buffer.alloc(2 ** 16, (pushed += 1)));
      },
    });
  for (const read of [openFiles().rows(segment), openFiles().grams(segment)])
    await expect(read).rejects.toMatchObject({ code: "store_unavailable" });
  expect(pushed).toBeLessThan(100);
});
