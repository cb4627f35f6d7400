import { chownSync, closeSync, constants, fchownSync, mkdirSync, openSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Readable } from "node:stream";
import { extract, type Extract, type Header } from "tar-stream";
import type { StartDirectories } from "../chromium.js";
import { emptyDirectory } from "../directories.js";
import { isState, isStateFile, mostParts } from "./profile-state.js";

/** The most that a profile may hold: bytes of all its files together, and files. */
interface ProfileLimits {
  readonly maxBytes: number;
  readonly maxFiles: number;
}

/** The tar is not one that we have packed. A profile that is not as it should be starts no browser. */
export class ProfileRejected extends Error {
  constructor(reason: string) {
    super(`the profile's archive ${reason}`);
    this.name = "ProfileRejected";
  }
}

/**
 * Fills the user-data directory of a browser that is not running from a tar, for its uid alone. What was
 * there before is removed. The tar is taken for hostile: throws `ProfileRejected` for anything but plain
 * files and directories with plain names within the limits, the tar's own error where it is cut, or the
 * signal's reason.
 */
export async function unpackProfile(
  tar: Readable,
  { directories, uid, signal }: StartDirectories,
  limits: ProfileLimits,
): Promise<void> {
  await emptyDirectory(directories.profile);
  signal.throwIfAborted();
  const unpacking = new Unpacking(directories.profile, uid, limits);
  const entries = extract();
  const stop = (): void => void entries.destroy(signal.reason as Error);
  signal.addEventListener("abort", stop);
  try {
    feed(tar, entries).catch((error: unknown) => entries.destroy(asError(error)));
    for await (const entry of entries) await unpacking.take(entry);
    signal.throwIfAborted();
  } catch (error) {
    throw signal.aborted ? signal.reason : error;
  } finally {
    signal.removeEventListener("abort", stop);
    tar.destroy();
  }
}

async function feed(tar: Readable, entries: Extract): Promise<void> {
  for await (const chunk of tar) {
    // A stream that was given up is not read to its end.
    if (entries.destroyed) return;
    if (!entries.write(chunk)) await roomIn(entries);
  }
  entries.end(undefined);
}

const roomIn = (entries: Extract): Promise<void> =>
  new Promise((resolve) => {
    const go = (): void => {
      entries.off("drain", go);
      entries.off("close", go);
      resolve();
    };
    entries.on("drain", go);
    entries.on("close", go);
  });

const asError = (error: unknown): Error =>
  error instanceof Error ? error : new Error("the profile's archive could not be read", { cause: error });

/** One entry of the tar, which has to be read to its end before the next. */
interface TarEntry extends AsyncIterable<unknown> {
  readonly header: Pick<Header, "name" | "type" | "size">;
  resume(): unknown;
}

/**
 * Writes synchronously: scratch is memory or the page cache, and a file takes tens of microseconds, less than
 * handing it to a thread does. Where all cores are busy each hand-over waits besides, four of them for each
 * file.
 */
class Unpacking {
  readonly #made = new Set<string>();
  #bytes = 0;
  #files = 0;

  constructor(
    private readonly root: string,
    private readonly uid: number | null,
    private readonly limits: ProfileLimits,
  ) {
    this.#made.add(root);
  }

  async take(entry: TarEntry): Promise<void> {
    const { name, type, size } = entry.header;
    const parts = partsOf(name);
    if (type !== "file" && type !== "directory")
      throw new ProfileRejected(`holds something that is neither a file nor a directory (${type})`);
    this.#count(size);
    const isWanted =
      type === "file" && parts.slice(0, -1).every(isState) && isStateFile(parts.at(-1) ?? "", size);
    if (isWanted) await this.#write(join(this.root, ...parts), entry);
    else entry.resume();
  }

  #count(size: number): void {
    this.#bytes += size;
    this.#files += 1;
    if (this.#bytes > this.limits.maxBytes)
      throw new ProfileRejected(`holds more than ${this.limits.maxBytes} bytes`);
    if (this.#files > this.limits.maxFiles)
      throw new ProfileRejected(`holds more than ${this.limits.maxFiles} files`);
  }

  async #write(path: string, entry: TarEntry): Promise<void> {
    this.#makeDirectory(dirname(path));
    const file = openSync(
      path,
      constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW,
      0o600,
    );
    try {
      if (this.uid !== null) fchownSync(file, this.uid, this.uid);
      await copy(entry, file);
    } finally {
      closeSync(file);
    }
  }

  #makeDirectory(path: string): void {
    if (this.#made.has(path)) return;
    this.#makeDirectory(dirname(path));
    mkdirSync(path, { mode: 0o700 });
    if (this.uid !== null) chownSync(path, this.uid, this.uid);
    this.#made.add(path);
  }
}

async function copy(entry: TarEntry, file: number): Promise<void> {
  for await (const chunk of entry) {
    if (chunk instanceof Uint8Array) writeFileSync(file, chunk);
  }
}

const mostNameBytes = 255;

/** Splits a name within the profile into its parts. */
function partsOf(name: string): readonly string[] {
  const parts = name.replace(/\/$/, "").split("/");
  const isPlain = (part: string): boolean =>
    part !== "" &&
    part !== "." &&
    part !== ".." &&
    !part.includes("\0") &&
    Buffer.byteLength(part) <= mostNameBytes;
  if (!parts.every(isPlain) || parts.length > mostParts)
    throw new ProfileRejected("holds a name that leads elsewhere or is too long");
  return parts;
}
