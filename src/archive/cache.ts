import { randomBytes } from "node:crypto";
import { access, mkdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { directoryMode } from "../base/files/durable.js";
import type { Digest } from "../base/ids.js";
import { unlessMissing } from "./archive-files.js";
import type { ArchiveCache } from "./archives.js";
import type { ArchiveBackend } from "./kept-archives.js";

interface CacheOptions {
  readonly directory: string;
  readonly maxBytes: number;
  readonly archives: Pick<ArchiveBackend, "place">;
  /** A file that could not be removed costs room, nothing else. */
  onFault(error: unknown): void;
}

interface CachedArchive {
  readonly path: string;
  readonly fetched: Promise<number>;
  takers: number;
  /** Undefined until it is there. */
  sizeBytes?: number;
}

/** Empties the directory: which of its files an earlier run had ended is not known. */
export async function openCache(options: CacheOptions): Promise<ArchiveCache> {
  await rm(options.directory, { recursive: true, force: true, maxRetries: 5, retryDelay: 20 });
  await mkdir(options.directory, { recursive: true, mode: directoryMode });
  return new Cache(options);
}

/** Least recently taken first. A file that is taken stays, beyond the bound too. */
class Cache implements ArchiveCache {
  readonly #entries = new Map<Digest, CachedArchive>();

  constructor(private readonly options: CacheOptions) {}

  async take(digest: Digest): Promise<{ readonly path: string; release(): void }> {
    const known = this.#entries.get(digest);
    const entry = known ?? this.#fetch(digest);
    this.#touch(digest, entry);
    entry.takers += 1;
    try {
      entry.sizeBytes = await entry.fetched;
    } catch (error) {
      this.#forget(digest, entry);
      throw error;
    }
    if (known && !(await this.#isThere(entry))) {
      this.#forget(digest, entry);
      return await this.take(digest);
    }
    this.#shrink();
    return { path: entry.path, release: this.#once(() => this.#release(entry)) };
  }

  /** Somebody may have removed the file to make room on the disk. */
  async #isThere(entry: CachedArchive): Promise<boolean> {
    try {
      return (await unlessMissing(access(entry.path).then(() => true))) ?? false;
    } catch (error) {
      this.#release(entry);
      throw error;
    }
  }

  #fetch(digest: Digest): CachedArchive {
    const path = join(this.options.directory, `${digest}.${randomBytes(6).toString("hex")}`);
    const fetch = async (): Promise<number> => {
      await mkdir(this.options.directory, { recursive: true, mode: directoryMode });
      await this.options.archives.place(digest, path);
      return (await stat(path)).size;
    };
    return { path, fetched: fetch(), takers: 0 };
  }

  #touch(digest: Digest, entry: CachedArchive): void {
    this.#entries.delete(digest);
    this.#entries.set(digest, entry);
  }

  #once(run: () => void): () => void {
    let isDone = false;
    return () => {
      if (!isDone) run();
      isDone = true;
    };
  }

  #release(entry: CachedArchive): void {
    entry.takers -= 1;
    this.#shrink();
  }

  #shrink(): void {
    let total = 0;
    for (const { sizeBytes = 0 } of this.#entries.values()) total += sizeBytes;
    for (const [digest, entry] of this.#entries) {
      if (total <= this.options.maxBytes) return;
      if (entry.takers > 0) continue;
      total -= entry.sizeBytes ?? 0;
      this.#forget(digest, entry);
    }
  }

  #forget(digest: Digest, entry: CachedArchive): void {
    if (this.#entries.get(digest) === entry) this.#entries.delete(digest);
    rm(entry.path, { force: true }).catch(this.options.onFault);
  }
}
