import { mkdir, readFile, stat, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, expect, test } from "vitest";
import { systemClock } from "../../src/base/clock.js";
import type { Digest } from "../../src/base/ids.js";
import { DirectoryArchives } from "../../src/archive/directory-archives.js";
import { allOf, bytesOf, filesBelow, newDirectory, newFile } from "../support/archive/archive-bed.js";

const hourMs = 3_600_000;
let directory: string;
let archives: DirectoryArchives;
beforeEach(async () => {
  directory = join(await newDirectory(), "archives");
  archives = new DirectoryArchives(directory, systemClock);
});

const pathOf = (digest: Digest): string => join(directory, digest.slice(0, 2), digest.slice(2, 4), digest);
const age = (path: string, byMs: number): Promise<void> =>
  utimes(path, (Date.now() - byMs) / 1000, (Date.now() - byMs) / 1000);
const putAt = async (digest: Digest): Promise<number> => (await stat(pathOf(digest))).mtimeMs;

test("nobody else on the machine may look", async () => {
  const file = await newFile();
  await archives.put(file.digest, file.path);
  const modes = await Promise.all(
    [directory, join(directory, file.digest.slice(0, 2)), pathOf(file.digest)].map(
      async (path) => (await stat(path)).mode & 0o777,
    ),
  );
  expect(modes).toEqual([0o700, 0o700, 0o600]);
});

test("a put of what is kept makes it new", async () => {
  const file = await newFile();
  await archives.put(file.digest, file.path);
  await age(pathOf(file.digest), 5 * hourMs);
  const before = await putAt(file.digest);
  await archives.put(file.digest, file.path);
  expect((await allOf(archives.list()))[0]?.putAt).toBeGreaterThan(Date.now() - 10_000);
  expect(await archives.removeStale(file.digest, before)).toBe("fresh");
});

test("bytes that have changed on the disk are not given out as the archive; a put of the right ones mends a cut one", async () => {
  const file = await newFile();
  await archives.put(file.digest, file.path);
  await writeFile(pathOf(file.digest), file.bytes.with(5000, (file.bytes[5000] ?? 0) ^ 1));
  await expect(bytesOf(await archives.open(file.digest))).rejects.toThrow("not its own");
  await expect(archives.place(file.digest, join(directory, "placed"))).rejects.toThrow("not its own");
  await writeFile(pathOf(file.digest), file.bytes.subarray(0, 1000));
  await archives.put(file.digest, file.path);
  expect((await bytesOf(await archives.open(file.digest))).equals(file.bytes)).toBe(true);
});

test("other files in the directory are no archives", async () => {
  const file = await newFile();
  await archives.put(file.digest, file.path);
  await mkdir(join(directory, "aa", "bb"), { recursive: true });
  await writeFile(join(directory, "aa", "bb", "notes"), "");
  await writeFile(join(directory, "aa", "bb", `ff${"0".repeat(62)}`), "");
  await writeFile(join(directory, "notes"), "");
  expect((await allOf(archives.list())).map(({ digest }) => digest)).toEqual([file.digest]);
});

test("a directory that is not there holds no archives", async () => {
  expect(await allOf(archives.list())).toEqual([]);
  await archives.tidy(() => true);
});

test("puts and removals of one archive at once leave it whole or not at all, and nothing beside it", async () => {
  const file = await newFile(300_000);
  for (let round = 0; round < 30; round += 1) {
    await archives.put(file.digest, file.path);
    const before = await putAt(file.digest);
    await Promise.all([
      archives.put(file.digest, file.path),
      archives.removeStale(file.digest, before),
      archives.put(file.digest, file.path),
    ]);
  }
  await archives.put(file.digest, file.path);
  expect((await bytesOf(await archives.open(file.digest))).equals(file.bytes)).toBe(true);
  expect(await filesBelow(directory)).toEqual([pathOf(file.digest).slice(directory.length + 1)]);
});

test("a stale archive that is put while it is being removed is there afterwards", async () => {
  const file = await newFile();
  await archives.put(file.digest, file.path);
  for (let round = 0; round < 100; round += 1) {
    await age(pathOf(file.digest), 2 * hourMs);
    const before = await putAt(file.digest);
    await Promise.all([archives.removeStale(file.digest, before), archives.put(file.digest, file.path)]);
    expect((await allOf(archives.list())).map(({ digest }) => digest)).toEqual([file.digest]);
  }
});

test("what a killed put or removal has left is cleared when it is old, and a fresh archive comes back", async () => {
  const [file, other] = [await newFile(), await newFile()];
  await Promise.all([
    mkdir(join(directory, "coming"), { recursive: true }),
    mkdir(join(directory, "going"), { recursive: true }),
  ]);
  await archives.put(file.digest, file.path);
  await archives.remove(file.digest);
  const [coming, going] = [
    join(directory, "coming", `${other.digest}.ab`),
    join(directory, "going", `${file.digest}.ab`),
  ];
  await Promise.all([writeFile(coming, "half"), writeFile(going, file.bytes)]);
  expect(await allOf(archives.list())).toEqual([]);
  await archives.tidy(() => false);
  expect(await filesBelow(directory)).toEqual([`coming/${other.digest}.ab`, `going/${file.digest}.ab`]);
  await archives.tidy(() => true);
  expect(await filesBelow(directory)).toEqual([pathOf(file.digest).slice(directory.length + 1)]);
  expect((await readFile(pathOf(file.digest))).equals(file.bytes)).toBe(true);
});
