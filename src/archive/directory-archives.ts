import { randomBytes } from "node:crypto";
import { createReadStream } from "node:fs";
import { link, open, opendir, rename, rm, stat, utimes } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { pipeline as piped, type Readable, Writable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { Clock, Millis } from "../base/clock.js";
import { RemudaError } from "../base/errors.js";
import { makeDurableDirectory, syncDirectory, syncFile } from "../base/files/durable.js";
import { findDigest, type Digest } from "../base/ids.js";
import type { ArchiveEntry } from "./archives.js";
import { cannotLink, isMissing, unlessMissing, writeNewFile } from "./archive-files.js";
import type { ArchiveBackend } from "./kept-archives.js";
import { verifyDigest } from "./verified.js";

/**
 * This directory lies beside the archives, so that a rename moves a file in or out. It holds files on their
 * way in, and those being removed.
 */
const coming = "coming";
const going = "going";

/**
 * Archives as files: `<directory>/ab/cd/abcd…`, the file's time telling when it was put last. A file gets
 * that name by a rename once it is whole and durable, so whatever has it is an archive. Several daemons may
 * share the directory.
 */
export class DirectoryArchives implements ArchiveBackend {
  constructor(
    private readonly directory: string,
    private readonly clock: Clock,
  ) {}

  async open(digest: Digest): Promise<Readable> {
    const handle = await unlessMissing(open(this.#pathOf(digest)));
    if (!handle) throw new RemudaError("archive_missing");
    // What goes wrong reaches the reader through the last stream; the first is closed with it.
    return piped(handle.createReadStream(), verifyDigest(digest), () => {});
  }

  async put(digest: Digest, path: string): Promise<void> {
    if (await this.#refresh(digest, path)) return;
    const to = this.#pathOf(digest);
    const beside = await this.#beside(coming, digest);
    try {
      await writeNewFile(beside, (file) => pipeline(createReadStream(path), verifyDigest(digest), file));
      await syncFile(beside);
      await makeDurableDirectory(dirname(to));
      await rename(beside, to);
    } catch (error) {
      await rm(beside, { force: true });
      throw error;
    }
    await syncDirectory(dirname(to));
  }

  async remove(digest: Digest): Promise<void> {
    await rm(this.#pathOf(digest), { force: true });
  }

  /**
   * The archive is moved away before it is looked at: a put that comes meanwhile finds none and writes one,
   * and one that came before has left its time on it.
   */
  async removeStale(digest: Digest, putAt: Millis): Promise<"removed" | "fresh"> {
    const path = this.#pathOf(digest);
    const isFresh = async (at: string): Promise<boolean> =>
      ((await unlessMissing(stat(at)))?.mtimeMs ?? putAt) !== putAt;
    if (await isFresh(path)) return "fresh";
    const beside = await this.#beside(going, digest);
    if ((await unlessMissing(rename(path, beside).then(() => true))) === undefined) return "removed";
    if (await isFresh(beside)) {
      await rename(beside, path);
      return "fresh";
    }
    await rm(beside, { force: true });
    return "removed";
  }

  async *list(): AsyncIterable<ArchiveEntry> {
    for await (const path of filesIn(this.directory, [/^[0-9a-f]{2}$/, /^[0-9a-f]{2}$/])) {
      const digest = findDigest(basename(path));
      const found = digest && path === this.#pathOf(digest) ? await unlessMissing(stat(path)) : undefined;
      if (digest && found) yield { digest, sizeBytes: found.size, putAt: found.mtimeMs };
    }
  }

  async tidy(isOld: (leftover: string) => boolean): Promise<void> {
    for await (const path of filesIn(join(this.directory, coming), [])) {
      const found = await unlessMissing(stat(path));
      if (found && isOld(`${path} ${found.mtimeMs}`)) await rm(path, { force: true });
    }
    for await (const path of filesIn(join(this.directory, going), []))
      if (isOld(path)) await this.#putBack(path);
  }

  async place(digest: Digest, path: string): Promise<void> {
    try {
      await link(this.#pathOf(digest), path);
    } catch (error) {
      if (isMissing(error)) throw new RemudaError("archive_missing");
      if (!cannotLink(error)) throw error;
      const archive = await this.open(digest);
      return await writeNewFile(path, (file) => pipeline(archive, file));
    }
    await pipeline(createReadStream(path), verifyDigest(digest), nowhere());
  }

  #pathOf(digest: Digest): string {
    return join(this.directory, digest.slice(0, 2), digest.slice(2, 4), digest);
  }

  async #beside(place: string, digest: Digest): Promise<string> {
    await makeDurableDirectory(join(this.directory, place));
    return join(this.directory, place, `${digest}.${randomBytes(6).toString("hex")}`);
  }

  /**
   * Whether the archive is there; then it counts as put now. An archive that a fault of the disk has cut
   * short is written anew.
   */
  async #refresh(digest: Digest, path: string): Promise<boolean> {
    const at = this.#pathOf(digest);
    const [own, given] = await Promise.all([unlessMissing(stat(at)), stat(path)]);
    if (own?.size !== given.size) return false;
    const now = this.clock.now() / 1000;
    return (await unlessMissing(utimes(at, now, now).then(() => true))) ?? false;
  }

  /** A removal that was killed had taken it out; the next one looks again whether it may go. */
  async #putBack(path: string): Promise<void> {
    const digest = findDigest(basename(path).slice(0, 64));
    if (digest) await unlessMissing(rename(path, this.#pathOf(digest)));
  }
}

/** Paths of the files that lie below directories of these names. */
async function* filesIn(directory: string, [name, ...names]: readonly RegExp[]): AsyncGenerator<string> {
  const entries = await unlessMissing(opendir(directory));
  if (!entries) return;
  for await (const entry of entries) {
    const path = join(directory, entry.name);
    if (name && entry.isDirectory() && name.test(entry.name)) yield* filesIn(path, names);
    if (!name && entry.isFile()) yield path;
  }
}

const nowhere = (): Writable => new Writable({ write: (_chunk, _encoding, done) => done() });
