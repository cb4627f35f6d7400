import { readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, expect, test } from "vitest";
import { systemClock } from "../../src/base/clock.js";
import type { Digest } from "../../src/base/ids.js";
import type { ArchiveCache } from "../../src/archive/archives.js";
import { openCache } from "../../src/archive/cache.js";
import { DirectoryArchives } from "../../src/archive/directory-archives.js";
import { newDirectory, newFile, type SomeFile } from "../support/archive/archive-bed.js";

let directory: string;
let archives: DirectoryArchives;
let cache: ArchiveCache;
let fetched: Digest[];
beforeEach(async () => {
  directory = join(await newDirectory(), "cache");
  archives = new DirectoryArchives(await newDirectory(), systemClock);
  fetched = [];
  cache = await open(250_000);
});

const open = (maxBytes: number): Promise<ArchiveCache> =>
  openCache({
    directory,
    maxBytes,
    onFault: (error) => {
      throw error;
    },
    archives: { place: (digest, path) => (fetched.push(digest), archives.place(digest, path)) },
  });

async function kept(sizeBytes = 100_000): Promise<SomeFile> {
  const file = await newFile(sizeBytes);
  await archives.put(file.digest, file.path);
  return file;
}

async function use({ digest }: SomeFile): Promise<void> {
  const taken = await cache.take(digest);
  taken.release();
}

test("askers of one archive share one fetch, and later ones need none", async () => {
  const file = await kept();
  const taken = await Promise.all(Array.from({ length: 5 }, () => cache.take(file.digest)));
  for (const { path, release } of taken) {
    expect((await readFile(path)).equals(file.bytes)).toBe(true);
    release();
  }
  await use(file);
  expect(fetched).toEqual([file.digest]);
});

test("what is taken stays when the store has deleted it", async () => {
  const file = await kept();
  const { path, release } = await cache.take(file.digest);
  await archives.remove(file.digest);
  expect((await readFile(path)).equals(file.bytes)).toBe(true);
  release();
});

test("beyond the bound the least recently used go", async () => {
  const [first, second, third] = [await kept(), await kept(), await kept()];
  for (const file of [first, second, first, third]) await use(file);
  await expect.poll(() => readdir(directory)).toHaveLength(2);
  for (const file of [first, third, second]) await use(file);
  expect(fetched).toEqual([first, second, third, second].map(({ digest }) => digest));
});

test("what is taken is not removed to make room, and goes once it is released", async () => {
  const [large, small] = [await kept(300_000), await kept()];
  const taken = await cache.take(large.digest);
  await use(small);
  expect((await readFile(taken.path)).equals(large.bytes)).toBe(true);
  taken.release();
  taken.release();
  await expect.poll(() => readdir(directory)).toEqual([]);
});

test("a release that is repeated does not count for another taker", async () => {
  cache = await open(1);
  const file = await kept();
  const [one, other] = await Promise.all([cache.take(file.digest), cache.take(file.digest)]);
  one.release();
  one.release();
  expect((await readFile(other.path)).equals(file.bytes)).toBe(true);
  other.release();
  await expect.poll(() => readdir(directory)).toEqual([]);
});

test("a fetch that fails fails for all who wait for it, leaves nothing, and is tried anew", async () => {
  const file = await newFile();
  const asked = await Promise.allSettled([cache.take(file.digest), cache.take(file.digest)]);
  expect(asked.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  await expect.poll(() => readdir(directory)).toEqual([]);
  await archives.put(file.digest, file.path);
  await use(file);
  expect(fetched).toHaveLength(2);
});

test("whatever an earlier run has left is gone at the start", async () => {
  await writeFile(join(directory, "half"), "half");
  await open(1000);
  expect(await readdir(directory)).toEqual([]);
});

test("what somebody has removed from the disk is fetched again, once for all who ask", async () => {
  const file = await kept();
  await use(file);
  await rm(directory, { recursive: true });
  const taken = await Promise.all(Array.from({ length: 3 }, () => cache.take(file.digest)));
  for (const { path, release } of taken) {
    expect((await readFile(path)).equals(file.bytes)).toBe(true);
    release();
  }
  expect(fetched).toEqual([file.digest, file.digest]);
});

test("an archive that could not be looked at for a moment goes to make room like others", async () => {
  const [first, second] = [await kept(200_000), await kept(200_000)];
  await use(first);
  await rename(directory, `${directory}-aside`);
  await writeFile(directory, "");
  await expect(cache.take(first.digest)).rejects.toThrow("ENOTDIR");
  await rm(directory);
  await rename(`${directory}-aside`, directory);
  await use(first);
  expect(fetched).toEqual([first.digest]);
  await use(second);
  await expect
    .poll(async () => (await readdir(directory)).map((name) => name.split(".")[0]))
    .toEqual([second.digest]);
});
