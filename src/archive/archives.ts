import type { Readable } from "node:stream";
import type { Millis } from "../base/clock.js";
import { RemudaError } from "../base/errors.js";
import type { Digest } from "../base/ids.js";

/** An archive that is kept. */
export interface ArchiveEntry {
  readonly digest: Digest;
  readonly sizeBytes: number;
  /** When it was put last, as the store tells (ms since 1970). */
  readonly putAt: Millis;
}

/** Whether an archive could not be read because there is none. */
export const isArchiveMissing = (error: unknown): boolean =>
  error instanceof RemudaError && error.code === "archive_missing";

/**
 * Archives by the SHA-256 of their bytes: what is there is whole, never changes, and is there once however
 * often it is put. Nothing is ever held whole in memory.
 */
export interface Archives {
  /**
   * Keeps a copy of the file, which is the digest's; resolves when it is durable. One that is kept already
   * counts as put now.
   */
  put(digest: Digest, path: string): Promise<void>;
  /** Throws `RemudaError` `archive_missing`; the stream fails where the bytes are not the digest's. */
  open(digest: Digest): Promise<Readable>;
  /** Does nothing where the archive is not kept. */
  remove(digest: Digest): Promise<void>;
  list(): AsyncIterable<ArchiveEntry>;
}

/** A file of our own that was written to its end, on the way into the archives. */
export interface StagedArchive {
  readonly path: string;
  readonly digest: Digest;
  readonly sizeBytes: number;
  /** Removes the file; harmless when repeated. */
  discard(): Promise<void>;
}

/** Holds uploads and saves until they are archives; emptied when the daemon starts. */
export interface Staging {
  /**
   * Takes a stream to its end. Rejects with `TooLarge` beyond `maxBytes`, with the stream's own error, or
   * with the signal's reason; then nothing of it is left on disk.
   */
  take(
    source: Readable,
    options: { readonly maxBytes: number; readonly signal?: AbortSignal },
  ): Promise<StagedArchive>;
  /** A directory of our own for one piece of work. */
  directory(): Promise<{ readonly path: string; discard(): Promise<void> }>;
}

export class TooLarge extends Error {
  constructor(readonly maxBytes: number) {
    super(`is larger than ${maxBytes} bytes`);
    this.name = "TooLarge";
  }
}

/** Archives that a node has fetched, as files, within a bound. */
export interface ArchiveCache {
  /**
   * A file with the archive's bytes, there until `release`. Several askers of one archive share one fetch.
   */
  take(digest: Digest): Promise<{ readonly path: string; release(): void }>;
}
