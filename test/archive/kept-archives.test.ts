import { createReadStream } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { systemClock } from "../../src/base/clock.js";
import { DirectoryArchives } from "../../src/archive/directory-archives.js";
import type { ArchiveBackend } from "../../src/archive/kept-archives.js";
import { S3Archives } from "../../src/archive/s3-archives.js";
import { allOf, bytesOf, digestOf, newDirectory, newFile } from "../support/archive/archive-bed.js";
import { type S3Server, startS3Server } from "../support/archive/s3-server.js";

const hourMs = 3_600_000;
let server: S3Server;
beforeAll(async () => {
  server = await startS3Server();
});
afterAll(() => server.close());

const inDirectory = async (): Promise<ArchiveBackend> =>
  new DirectoryArchives(await newDirectory(), systemClock);
let opened = 0;
/** Each has a prefix of its own, so that none sees another's. */
const inS3 = async (): Promise<ArchiveBackend> =>
  new S3Archives({ ...server.settings, prefix: `store-${(opened += 1)}/` });

describe.each([
  ["a directory", inDirectory],
  ["S3", inS3],
])("archives in %s", (_store, open) => {
  test("what was put is given back whole, with its size and time", async () => {
    const archives = await open();
    const file = await newFile();
    const began = Date.now() - 2000;
    await archives.put(file.digest, file.path);
    expect((await bytesOf(await archives.open(file.digest))).equals(file.bytes)).toBe(true);
    const [kept, ...others] = await allOf(archives.list());
    expect(others).toEqual([]);
    expect(kept).toMatchObject({ digest: file.digest, sizeBytes: file.bytes.length });
    expect(kept?.putAt).toBeGreaterThan(began);
    expect(kept?.putAt).toBeLessThanOrEqual(Date.now() + 1000);
  });

  test("one put many times at once is there once", async () => {
    const archives = await open();
    const file = await newFile();
    await Promise.all(Array.from({ length: 5 }, () => archives.put(file.digest, file.path)));
    expect(await allOf(archives.list())).toHaveLength(1);
    expect((await bytesOf(await archives.open(file.digest))).equals(file.bytes)).toBe(true);
  });

  test("an empty one and one of many parts are kept", async () => {
    const archives = await open();
    for (const file of [await newFile(0), await newFile(20 * 2 ** 20)]) {
      await archives.put(file.digest, file.path);
      expect(digestOf(await bytesOf(await archives.open(file.digest)))).toBe(file.digest);
    }
  });

  test("one that is not kept cannot be opened, and its removal is fine", async () => {
    const archives = await open();
    const { digest } = await newFile();
    await expect(archives.open(digest)).rejects.toMatchObject({ code: "archive_missing" });
    await archives.remove(digest);
    expect(await archives.removeStale(digest, Date.now())).toBe("removed");
  });

  test("what was removed is gone", async () => {
    const archives = await open();
    const file = await newFile();
    await archives.put(file.digest, file.path);
    await archives.remove(file.digest);
    expect(await allOf(archives.list())).toEqual([]);
    await expect(archives.open(file.digest)).rejects.toMatchObject({ code: "archive_missing" });
  });

  test("a put of bytes that are not the digest's fails and keeps nothing", async () => {
    const archives = await open();
    const [file, other, large] = [await newFile(), await newFile(), await newFile(20 * 2 ** 20)];
    await expect(archives.put(other.digest, file.path)).rejects.toThrow("not its own");
    await expect(archives.put(other.digest, large.path)).rejects.toThrow("not its own");
    await expect(archives.put(other.digest, join(file.path, "missing"))).rejects.toThrow();
    expect(await allOf(archives.list())).toEqual([]);
  });

  test("only what still has the time at which it was listed is removed as stale", async () => {
    const archives = await open();
    const file = await newFile();
    await archives.put(file.digest, file.path);
    const [{ putAt } = { putAt: 0 }] = await allOf(archives.list());
    for (const other of [putAt - hourMs, putAt + hourMs])
      expect(await archives.removeStale(file.digest, other)).toBe("fresh");
    expect(await allOf(archives.list())).toHaveLength(1);
    expect(await archives.removeStale(file.digest, putAt)).toBe("removed");
    expect(await allOf(archives.list())).toEqual([]);
  });

  test("one is placed as a file, and one that is not kept is not", async () => {
    const archives = await open();
    const [file, other] = [await newFile(), await newFile()];
    await archives.put(file.digest, file.path);
    const to = join(await newDirectory(), "placed");
    await archives.place(file.digest, to);
    await archives.remove(file.digest);
    expect((await bytesOf(createReadStream(to))).equals(file.bytes)).toBe(true);
    await expect(archives.place(other.digest, `${to}2`)).rejects.toMatchObject({ code: "archive_missing" });
  });

  test("a reader that leaves half way, and one that never reads, hold nothing up", async () => {
    const archives = await open();
    const file = await newFile(5 * 2 ** 20);
    await archives.put(file.digest, file.path);
    for await (const _ of await archives.open(file.digest)) break;
    (await archives.open(file.digest)).destroy();
    expect(digestOf(await bytesOf(await archives.open(file.digest)))).toBe(file.digest);
  });

  test("many are listed", async () => {
    const archives = await open();
    const path = join(await newDirectory(), "one");
    const digests: string[] = [];
    for (let number = 0; number < 30; number += 1) {
      const bytes = Buffer.from(`archive ${number}`);
      await writeFile(path, bytes);
      await archives.put(digestOf(bytes), path);
      digests.push(digestOf(bytes));
    }
    expect((await allOf(archives.list())).map(({ digest }) => digest).toSorted()).toEqual(digests.toSorted());
  });
});
