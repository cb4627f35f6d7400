import { createHash, randomBytes } from "node:crypto";
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { onTestFinished } from "vitest";
import { findDigest, type Digest } from "../../../src/base/ids.js";

/** A directory that goes with the test. */
export async function newDirectory(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), "remuda-test-blob-"));
  onTestFinished(() => rm(path, { recursive: true, force: true }));
  return path;
}

export function digestOf(bytes: Uint8Array): Digest {
  const digest = findDigest(createHash("sha256").update(bytes).digest("hex"));
  if (!digest) throw new Error("no digest");
  return digest;
}

export interface SomeFile {
  readonly path: string;
  readonly bytes: Buffer;
  readonly digest: Digest;
}

/** A file of random bytes. */
export async function newFile(sizeBytes = 100_000): Promise<SomeFile> {
  const bytes = randomBytes(sizeBytes);
  const path = join(await newDirectory(), "file");
  await writeFile(path, bytes);
  return { path, bytes, digest: digestOf(bytes) };
}

export async function bytesOf(stream: Readable | AsyncIterable<Buffer>): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks);
}

export async function allOf<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const all: Item[] = [];
  for await (const item of items) all.push(item);
  return all;
}

/** Files below a directory, as paths from there. */
export async function filesBelow(directory: string): Promise<string[]> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(directory.length + 1))
    .toSorted();
}
