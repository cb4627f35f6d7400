import { mkdir, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { PassThrough, Readable } from "node:stream";
import { beforeEach, expect, test } from "vitest";
import { type Staging, TooLarge } from "../../src/archive/archives.js";
import { openStaging } from "../../src/archive/staging.js";
import { until } from "../support/browser/chromium-until.js";
import { digestOf, newDirectory, newFile } from "../support/archive/archive-bed.js";

let directory: string;
let staging: Staging;
beforeEach(async () => {
  directory = join(await newDirectory(), "staging");
  staging = await openStaging(directory);
});

const streamOf = (bytes: Buffer): Readable => Readable.from([bytes.subarray(0, 1000), bytes.subarray(1000)]);

test("a stream becomes a file of ours with its digest and size, there until it is discarded", async () => {
  const { bytes, digest } = await newFile();
  const staged = await staging.take(streamOf(bytes), { maxBytes: bytes.length });
  expect(staged).toMatchObject({ digest, sizeBytes: bytes.length });
  expect((await readFile(staged.path)).equals(bytes)).toBe(true);
  expect((await stat(staged.path)).mode & 0o777).toBe(0o600);
  await staged.discard();
  await staged.discard();
  expect(await readdir(directory)).toEqual([]);
});

test("an empty stream is an empty file", async () => {
  expect(await staging.take(Readable.from([]), { maxBytes: 0 })).toMatchObject({
    sizeBytes: 0,
    digest: digestOf(Buffer.alloc(0)),
  });
});

test("what is too large is refused, its stream ended and nothing left", async () => {
  const source = streamOf(Buffer.alloc(5000));
  await expect(staging.take(source, { maxBytes: 4999 })).rejects.toThrow(TooLarge);
  expect(source.destroyed).toBe(true);
  expect(await readdir(directory)).toEqual([]);
});

test("nor is anything left where its file was still being opened when it was refused", async () => {
  const refused = () => staging.take(streamOf(Buffer.alloc(5000)), { maxBytes: 4999 });
  for (let round = 0; round < 500; round += 1) {
    const takes = await Promise.allSettled([refused(), refused(), refused(), refused()]);
    expect(takes.map(({ status }) => status)).toEqual(Array(4).fill("rejected"));
  }
  expect(await readdir(directory)).toEqual([]);
});

test("a stream that fails gives its own error, and nothing is left", async () => {
  const source = new PassThrough();
  const taken = staging.take(source, { maxBytes: 10_000 });
  source.write(Buffer.alloc(2000));
  await until("a first part", async () => (await readdir(directory)).length === 1);
  source.destroy(new Error("the client has gone"));
  await expect(taken).rejects.toThrow("the client has gone");
  expect(await readdir(directory)).toEqual([]);
});

test("a stream that stalls ends with the signal and its reason, and nothing is left", async () => {
  const source = new PassThrough();
  const stop = new AbortController();
  const taken = staging.take(source, { maxBytes: 10_000, signal: stop.signal });
  source.write(Buffer.alloc(2000));
  await until("a first part", async () => (await readdir(directory)).length === 1);
  const reason = new Error("nothing came for too long");
  stop.abort(reason);
  await expect(taken).rejects.toBe(reason);
  expect(source.destroyed).toBe(true);
  expect(await readdir(directory)).toEqual([]);
  await expect(staging.take(new PassThrough(), { maxBytes: 10, signal: stop.signal })).rejects.toBe(reason);
});

test("a directory of its own goes with all that is in it", async () => {
  const [one, other] = [await staging.directory(), await staging.directory()];
  expect(one.path).not.toBe(other.path);
  expect((await stat(one.path)).mode & 0o777).toBe(0o700);
  await mkdir(join(one.path, "inner"));
  await writeFile(join(one.path, "inner", "file"), "text");
  await Promise.all([one.discard(), other.discard()]);
  expect(await readdir(directory)).toEqual([]);
});

test("whatever an earlier run has left is gone at the start", async () => {
  await staging.take(streamOf(Buffer.alloc(5000)), { maxBytes: 5000 });
  await staging.directory();
  await openStaging(directory);
  expect(await readdir(directory)).toEqual([]);
});

test("a directory that somebody has removed is made again, and a stream that fails meanwhile is told", async () => {
  await rm(directory, { recursive: true });
  const { bytes, digest } = await newFile();
  const staged = await staging.take(streamOf(bytes), { maxBytes: bytes.length });
  expect(staged.digest).toBe(digest);
  expect((await readFile(staged.path)).equals(bytes)).toBe(true);
  await staged.discard();
  await rm(directory, { recursive: true });
  await (await staging.directory()).discard();
  const failing = new PassThrough();
  const taking = staging.take(failing, { maxBytes: 1 });
  failing.destroy(new Error("cut off"));
  await expect(taking).rejects.toThrow("cut off");
  expect(await readdir(directory)).toEqual([]);
  expect((await stat(directory)).mode & 0o777).toBe(0o700);
});
