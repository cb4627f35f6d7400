import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Readable } from "node:stream";
import { extract, type Extract, type Header } from "tar-stream";
import type { Room } from "./chromium.js";
import { emptyDirectory, makeOwned } from "./directories.js";
import { isState, isStateFile } from "./profile-state.js";

/** What a profile may be at most: of its files together, and how many. */
export interface ProfileLimits {
  readonly maxBytes: number;
  readonly maxFiles: number;
}

/** The tar is none that we would have packed: a profile that is not as it should be starts no browser. */
export class ProfileRejected extends Error {
  constructor(reason: string) {
    super(`the profile's archive ${reason}`);
    this.name = "ProfileRejected";
  }
}

/** Files that are being written at once: more than the threads Node.js has for it, so that none of them rests. */
const atOnce = 8;
/** Files up to this size are read whole, and written while the next ones are read. */
const smallBytes = 2 ** 20;

/**
 * Fills the user-data directory of a browser that is not running from a tar, for its uid alone. What was there before goes.
 * Takes the tar for hostile: throws `ProfileRejected` for anything but plain files and directories of plain names within
 * the limits, the tar's own error where it is cut, or the signal's reason.
 */
export async function unpackProfile(tar: Readable, { directories, uid, signal }: Room, limits: ProfileLimits): Promise<void> {
  await emptyDirectory(directories.profile);
  signal.throwIfAborted();
  const unpacking = new Unpacking(directories.profile, uid, limits);
  const entries = extract();
  const stop = (): void => void entries.destroy(signal.reason as Error);
  signal.addEventListener("abort", stop);
  try {
    feed(tar, entries).catch((error: unknown) => entries.destroy(asError(error)));
    for await (const entry of entries) await unpacking.take(entry);
    await unpacking.settled();
    signal.throwIfAborted();
  } catch (error) {
    await unpacking.settled().catch(() => {});
    throw signal.aborted ? signal.reason : error;
  } finally {
    signal.removeEventListener("abort", stop);
    tar.destroy();
  }
}

async function feed(tar: Readable, entries: Extract): Promise<void> {
  for await (const chunk of tar) {
    // What gave up reading drains no more.
    if (entries.destroyed) return;
    if (!entries.write(chunk)) await roomIn(entries);
  }
  entries.end(undefined);
}

const roomIn = (entries: Extract): Promise<void> =>
  new Promise((resolve) => {
    entries.once("drain", () => resolve());
    entries.once("close", () => resolve());
  });

const asError = (error: unknown): Error => (error instanceof Error ? error : new Error("the profile's archive could not be read", { cause: error }));

/** One of the tar's, to be read to its end before the next. */
interface Entry extends AsyncIterable<unknown> {
  readonly header: Pick<Header, "name" | "type" | "size">;
  resume(): unknown;
}

class Unpacking {
  readonly #made = new Map<string, Promise<void>>();
  readonly #writing = new Set<Promise<void>>();
  #failure: { readonly error: unknown } | undefined;
  #bytes = 0;
  #files = 0;

  constructor(private readonly root: string, private readonly uid: number | null, private readonly limits: ProfileLimits) {}

  async take(entry: Entry): Promise<void> {
    if (this.#failure) throw this.#failure.error;
    const { name, type, size } = entry.header;
    const parts = partsOf(name);
    if (type !== "file" && type !== "directory") throw new ProfileRejected(`holds something that is neither a file nor a directory (${type})`);
    this.#count(size);
    const isWanted = type === "file" && parts.slice(0, -1).every(isState) && isStateFile(parts.at(-1) ?? "", size);
    if (!isWanted) entry.resume();
    else if (size <= smallBytes) await this.#begin(this.#write(parts, [await bufferOf(entry)]));
    else await this.#write(parts, bytesOf(entry));
  }

  /** Waits for all that has begun; throws the first failure. */
  async settled(): Promise<void> {
    await Promise.all(this.#writing);
    if (this.#failure) throw this.#failure.error;
  }

  #count(size: number): void {
    this.#bytes += size;
    this.#files += 1;
    if (this.#bytes > this.limits.maxBytes) throw new ProfileRejected(`holds more than ${this.limits.maxBytes} bytes`);
    if (this.#files > this.limits.maxFiles) throw new ProfileRejected(`holds more than ${this.limits.maxFiles} files`);
  }

  /** Resolves when there is room for the next one. */
  async #begin(work: Promise<void>): Promise<void> {
    const written: Promise<void> = work
      .catch((error: unknown) => void (this.#failure ??= { error }))
      .finally(() => this.#writing.delete(written));
    this.#writing.add(written);
    if (this.#writing.size >= atOnce) await Promise.race(this.#writing);
  }

  async #write(parts: readonly string[], chunks: Iterable<Uint8Array> | AsyncIterable<Uint8Array>): Promise<void> {
    const path = join(this.root, ...parts);
    await this.#makeDirectory(dirname(path));
    const file = await open(path, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW, 0o600);
    try {
      for await (const chunk of chunks) await file.writeFile(chunk);
      if (this.uid !== null) await file.chown(this.uid, this.uid);
    } finally {
      await file.close();
    }
  }

  async #makeDirectory(path: string): Promise<void> {
    if (path === this.root) return;
    const making = this.#made.get(path) ?? this.#makeDirectory(dirname(path)).then(() => makeOwned(path, this.uid));
    this.#made.set(path, making);
    await making;
  }
}

const mostDepth = 24;
const mostNameBytes = 255;

/** The parts of a name within the profile. */
function partsOf(name: string): readonly string[] {
  const parts = name.replace(/\/$/, "").split("/");
  const isPlain = (part: string): boolean =>
    part !== "" && part !== "." && part !== ".." && !part.includes("\0") && Buffer.byteLength(part) <= mostNameBytes;
  if (!parts.every(isPlain) || parts.length > mostDepth) throw new ProfileRejected("holds a name that leads elsewhere or is too long");
  return parts;
}

async function* bytesOf(entry: Entry): AsyncGenerator<Uint8Array> {
  for await (const chunk of entry) if (chunk instanceof Uint8Array) yield chunk;
}

async function bufferOf(entry: Entry): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of bytesOf(entry)) chunks.push(chunk);
  return Buffer.concat(chunks);
}
