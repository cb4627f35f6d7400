import { mkdir, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, expect, test } from "vitest";
import { systemClock } from "../../src/base/clock.js";
import type { Digest } from "../../src/base/ids.js";
import { DirectoryArchives } from "../../src/archive/directory-archives.js";
import { makeSweep } from "../../src/archive/sweep.js";
import { allOf, filesBelow, newDirectory, newFile, type SomeFile } from "../support/archive/archive-bed.js";
import { silentLog } from "../support/browser/chromium-host.js";

const hourMs = 3_600_000;
let directory: string;
let archives: DirectoryArchives;
beforeEach(async () => {
  directory = await newDirectory();
  archives = new DirectoryArchives(directory, systemClock);
});

let laterMs = 0;
/** How far the wall clock of whoever sweeps is ahead of that of the files. */
let aheadMs = 0;
const clock = {
  ...systemClock,
  now: () => systemClock.now() + aheadMs,
  monotonic: () => systemClock.monotonic() + laterMs,
};
beforeEach(() => void ([laterMs, aheadMs] = [0, 0]));
const sweepWith = (named: () => Promise<ReadonlySet<Digest>>): (() => Promise<void>) =>
  makeSweep({ archives, named, unusedMs: hourMs, clock, log: silentLog });
const age = (path: string): Promise<void> => utimes(path, Date.now() / 1000 - 7200, Date.now() / 1000 - 7200);
const digests = async (): Promise<Digest[]> =>
  (await allOf(archives.list())).map(({ digest }) => digest).toSorted();

async function keptLongAgo(): Promise<SomeFile> {
  const file = await newFile(1000);
  await archives.put(file.digest, file.path);
  await age(join(directory, file.digest.slice(0, 2), file.digest.slice(2, 4), file.digest));
  return file;
}

test("what nothing names goes once it is old; what is named or new stays", async () => {
  const [unused, named, fresh] = [await keptLongAgo(), await keptLongAgo(), await newFile(1000)];
  const sweep = sweepWith(() => Promise.resolve(new Set([named.digest])));
  await sweep();
  await archives.put(fresh.digest, fresh.path);
  laterMs = hourMs;
  await sweep();
  expect(await digests()).toEqual([named.digest, fresh.digest].toSorted());
  expect(await digests()).not.toContain(unused.digest);
});

test("what was put long ago stays for as long after nothing names it any more: a failover may bring its name back", async () => {
  const file = await keptLongAgo();
  let names = new Set<Digest>();
  const sweep = sweepWith(() => Promise.resolve(names));
  await sweep();
  laterMs = hourMs - 60_000;
  await sweep();
  expect(await digests()).toEqual([file.digest]);
  names = new Set([file.digest]);
  await sweep();
  names = new Set();
  laterMs = hourMs;
  await sweep();
  expect(await digests()).toEqual([file.digest]);
});

test("what is put and named while the sweep reads the names stays", async () => {
  const file = await keptLongAgo();
  let isSecond = false;
  const sweep = sweepWith(async () => {
    const names = new Set<Digest>();
    if (isSecond) await archives.put(file.digest, file.path);
    return names;
  });
  await sweep();
  [isSecond, laterMs] = [true, hourMs];
  await sweep();
  expect(await digests()).toEqual([file.digest]);
});

test("registries that cannot be read delete nothing", async () => {
  const file = await keptLongAgo();
  await expect(sweepWith(() => Promise.reject(new Error("Redis is away")))()).rejects.toThrow(
    "Redis is away",
  );
  expect(await digests()).toEqual([file.digest]);
});

test("what interrupted puts have left goes once it is old", async () => {
  await mkdir(join(directory, "coming"));
  await Promise.all(["old", "new"].map((name) => writeFile(join(directory, "coming", name), "half")));
  const sweep = sweepWith(() => Promise.resolve(new Set()));
  await sweep();
  // It is still written to.
  await writeFile(join(directory, "coming", "new"), "more");
  laterMs = hourMs;
  await sweep();
  expect(await filesBelow(directory)).toEqual(["coming/new"]);
});

test("a clock that is put forward takes no file of a put that is under way", async () => {
  await mkdir(join(directory, "coming"));
  await writeFile(join(directory, "coming", "under-way"), "half");
  const sweep = sweepWith(() => Promise.resolve(new Set()));
  for (aheadMs of [0, 2 * hourMs, 24 * hourMs]) await sweep();
  expect(await filesBelow(directory)).toEqual(["coming/under-way"]);
});

test.each([-2, 2])(
  "a sweep whose clock is %d hours off keeps what another daemon puts anew and names afterwards",
  async (hours) => {
    aheadMs = hours * hourMs;
    const file = await keptLongAgo();
    let isPut = false;
    const sweep = sweepWith(async () => {
      if (isPut) await archives.put(file.digest, file.path);
      return new Set<Digest>();
    });
    await sweep();
    [isPut, laterMs] = [true, hourMs];
    await sweep();
    expect(await digests()).toEqual([file.digest]);
  },
);

test("a sweep whose clock is behind deletes what nothing names all the same", async () => {
  aheadMs = -24 * hourMs;
  await keptLongAgo();
  const sweep = sweepWith(() => Promise.resolve(new Set()));
  await sweep();
  laterMs = hourMs;
  await sweep();
  expect(await digests()).toEqual([]);
});
