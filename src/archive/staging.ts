import { createHash, randomBytes } from "node:crypto";
import { mkdir, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type Readable, Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { directoryMode } from "../base/files/durable.js";
import { findDigest, type Digest } from "../base/ids.js";
import type { StagedArchive, Staging } from "./archives.js";
import { writeNewFile } from "./archive-files.js";
import { limitBytes } from "./pipe-through.js";

const emptied = async (directory: string): Promise<void> => {
  await rm(directory, { recursive: true, force: true, maxRetries: 5, retryDelay: 20 });
  await mkdir(directory, { recursive: true, mode: directoryMode });
};

/** Empties the directory: whatever lies there is of a run that has ended. */
export async function openStaging(directory: string): Promise<Staging> {
  await emptied(directory);
  const newPath = (): string => join(directory, randomBytes(12).toString("hex"));
  return {
    take: (source, options) => takeInto(newPath(), source, options),
    async directory() {
      const path = newPath();
      // Somebody may have removed what lies above it.
      await mkdir(path, { recursive: true, mode: directoryMode });
      return {
        path,
        discard: () => rm(path, { recursive: true, force: true, maxRetries: 5, retryDelay: 20 }),
      };
    },
  };
}

async function takeInto(
  path: string,
  source: Readable,
  { maxBytes, signal }: Parameters<Staging["take"]>[1],
): Promise<StagedArchive> {
  const discard = (): Promise<void> => rm(path, { force: true });
  const summed = sum();
  // Until it is read to its end, which fails with the same error, nobody else would hear of one.
  source.on("error", () => {});
  try {
    await mkdir(dirname(path), { recursive: true, mode: directoryMode });
    const options = signal ? { signal } : {};
    await writeNewFile(path, (file) => pipeline(source, limitBytes(maxBytes), summed.stream, file, options));
    return { path, ...summed.result(), discard };
  } catch (error) {
    source.destroy();
    throw signal?.aborted ? signal.reason : error;
  }
}

/** Passes bytes on and knows, at their end, what they were. */
function sum(): {
  readonly stream: Transform;
  result(): { readonly digest: Digest; readonly sizeBytes: number };
} {
  const hash = createHash("sha256");
  let sizeBytes = 0;
  const stream = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      hash.update(chunk);
      sizeBytes += chunk.length;
      done(null, chunk);
    },
  });
  return {
    stream,
    result() {
      const digest = findDigest(hash.digest("hex"));
      if (!digest) throw new Error("a SHA-256 is 64 hexadecimal digits");
      return { digest, sizeBytes };
    },
  };
}
