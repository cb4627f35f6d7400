import { execFile, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { compress, decompress } from "../../../src/archive/formats/zstd.js";
import { NotZstd } from "../../../src/archive/formats/zstd-frames.js";
import { bytesOf, newDirectory } from "../../support/archive/archive-bed.js";

const run = promisify(execFile);
const mebibyte = 2 ** 20;

async function* inChunks(bytes: Buffer, chunkBytes = 65_536): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += chunkBytes) yield bytes.subarray(at, at + chunkBytes);
}
const compressed = (bytes: Buffer): Promise<Buffer> => bytesOf(compress(inChunks(bytes)));
const decompressed = (bytes: Buffer, chunkBytes?: number): Promise<Buffer> =>
  bytesOf(decompress(inChunks(bytes, chunkBytes)));

/** Some of it compresses well, some not at all. */
const mixed = (size: number): Buffer =>
  Buffer.concat([
    randomBytes(size / 2),
    Buffer.from("of a profile ".repeat(size / 20)),
    Buffer.alloc(size),
  ]).subarray(0, size);

test.each([0, 1, 1000, mebibyte - 1, mebibyte, mebibyte + 1, 5 * mebibyte + 3])(
  "%i bytes come back as they were",
  async (size) => {
    for (const bytes of [mixed(size), randomBytes(size), Buffer.alloc(size)]) {
      expect((await decompressed(await compressed(bytes))).equals(bytes)).toBe(true);
    }
  },
);

test("any division into chunks will do", async () => {
  const bytes = mixed(3 * mebibyte);
  const short = await compressed(bytes);
  const little = mixed(2000);
  expect((await decompressed(await compressed(little), 1)).equals(little)).toBe(true);
  for (const size of [1_000_003, 4 * mebibyte, 997])
    expect((await decompressed(short, size)).equals(bytes)).toBe(true);
});

test("the zstd and tar commands read what we write, and we read what zstd writes of small files", async () => {
  const directory = await newDirectory();
  const bytes = mixed(3 * mebibyte);
  await mkdir(join(directory, "in"));
  await writeFile(join(directory, "in", "file"), bytes);
  await run("tar", ["-cf", "plain.tar", "in"], { cwd: directory });
  await writeFile(
    join(directory, "ours.tar.zst"),
    await compressed(await readFile(join(directory, "plain.tar"))),
  );
  await run("zstd", ["-q", "-t", "ours.tar.zst"], { cwd: directory });
  await mkdir(join(directory, "out"));
  await run("tar", ["--zstd", "-xf", "ours.tar.zst", "-C", "out"], { cwd: directory });
  expect((await readFile(join(directory, "out", "in", "file"))).equals(bytes)).toBe(true);
  const small = mixed(500_000);
  expect((await decompressed(await byCommand(small))).equals(small)).toBe(true);
});

test("what is cut anywhere is not taken for the whole", async () => {
  const bytes = mixed(2 * mebibyte + 1000);
  const short = await compressed(bytes);
  for (let cut = 0; cut < 60; cut += 1) {
    const end = 1 + Math.floor(Math.random() * (short.length - 1));
    const out = await decompressed(short.subarray(0, end)).catch((error: unknown) => error);
    if (Buffer.isBuffer(out)) expect(out.length % mebibyte).toBe(0);
    else expect(out).toBeInstanceOf(NotZstd);
  }
});

test("other bytes, and a frame that is too large, are refused", async () => {
  await expect(decompressed(Buffer.from("PK\u0003\u0004 this is a zip"))).rejects.toThrow(NotZstd);
  await expect(decompressed(await byCommand(randomBytes(2 * mebibyte)))).rejects.toThrow(NotZstd);
  await expect(decompressed(await byCommand(Buffer.alloc(50 * mebibyte)))).rejects.toThrow(NotZstd);
  for (let round = 0; round < 50; round += 1) {
    const start = Buffer.concat([Buffer.from("28b52ffd", "hex"), randomBytes(3000)]);
    await expect(decompressed(start)).rejects.toThrow();
  }
});

test("a source that fails makes compressing and decompressing fail", async () => {
  async function* failing(): AsyncGenerator<Buffer> {
    yield Buffer.alloc(2 * mebibyte);
    throw new Error("the disk is full");
  }
  await expect(bytesOf(compress(failing()))).rejects.toThrow("the disk is full");
  await expect(bytesOf(decompress(compress(failing())))).rejects.toThrow("the disk is full");
});

async function byCommand(bytes: Buffer): Promise<Buffer> {
  const child = spawn("zstd", ["-q", "-c"], { stdio: ["pipe", "pipe", "inherit"] });
  child.stdin.end(bytes);
  return bytesOf(child.stdout);
}
