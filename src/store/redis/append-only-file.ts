import { type FileHandle, open, readdir } from "node:fs/promises";
import { join } from "node:path";
import { type Clock, type Millis, pause } from "../../base/clock.js";
import { within } from "../../base/deadline.js";
import { errnoOf } from "../../base/errno.js";
import { RemudaError } from "../../base/errors.js";
import { type Log, textOf } from "../../base/log.js";
import type { ScriptStore } from "./redis.js";

interface AppendOnlyFileParts {
  readonly store: Pick<ScriptStore, "ask">;
  /** The `dir` of the server, which has to be on this machine. */
  readonly directory: string;
  readonly clock: Clock;
  readonly log: Log;
}

/** How far the file is, in bytes: what was written, and what still waits in Redis to be written. */
interface FilePosition {
  readonly base: number;
  readonly written: number;
  readonly waiting: number;
}

/** Redis postpones a write for 2 s while it syncs (`flushAppendOnlyFile` in its aof.c). */
const syncLimitMs: Millis = 10_000;
const lookAgainMs: Millis = 1;

/**
 * Syncs the append-only file of the private Redis in a thread of this process, so that Redis itself waits
 * for no disk, and no lease with it (docs/vault.md#durability).
 */
export class AppendOnlyFile {
  readonly #settled = new Set<string>();
  #newest: { readonly path: string; readonly handle: FileHandle } | undefined;
  #isBroken = false;

  constructor(private readonly parts: AppendOnlyFileParts) {}

  /** Resolves once everything that Redis has answered by now is on disk; throws `store_unavailable`. */
  async sync(): Promise<void> {
    if (this.#isBroken) throw unsynced("Redis's file could not be synced; the daemon has to be started anew");
    const giveUp = new AbortController();
    const work = this.#awaitWritten(giveUp.signal).then(() => this.#syncFiles());
    try {
      await within(this.parts.clock, { what: "syncing Redis's file", limitMs: syncLimitMs }, work);
    } catch (error) {
      throw error instanceof RemudaError ? error : unsynced(textOf(error));
    } finally {
      giveUp.abort();
    }
  }

  async close(): Promise<void> {
    await this.#newest?.handle.close();
    this.#newest = undefined;
  }

  /** A reply may leave before the write where Redis is just syncing by itself. */
  async #awaitWritten(giveUp: AbortSignal): Promise<void> {
    let now = await this.#position();
    let goal = now;
    while (now.waiting > 0 && now.written < goal.written + goal.waiting && !giveUp.aborted) {
      await pause(this.parts.clock, lookAgainMs, giveUp);
      now = await this.#position();
      // The file was rewritten, and its bytes count anew.
      if (now.base !== goal.base) goal = now;
    }
  }

  async #position(): Promise<FilePosition> {
    const text = await this.parts.store.ask((redis) => redis.info("persistence"));
    const bytesOf = (name: string): number => Number(new RegExp(`^${name}:(\\d+)`, "m").exec(text)?.[1]);
    const base = bytesOf("aof_base_size");
    const written = bytesOf("aof_current_size");
    const waiting = bytesOf("aof_buffer_length");
    if (Number.isNaN(base + written + waiting)) throw unsynced("Redis writes no append-only file");
    return { base, written, waiting };
  }

  /** While Redis rewrites its file there are two: the one before is written to no more. */
  async #syncFiles(): Promise<void> {
    const paths = await filesIn(this.parts.directory);
    for (const path of paths.slice(0, -1)) if (!this.#settled.has(path)) await this.#settle(path);
    const newest = paths.at(-1);
    if (newest === undefined) throw unsynced("Redis's append-only file was not found");
    if (this.#newest?.path !== newest) await this.#follow(newest);
    if (this.#newest) await this.#syncFile(this.#newest.handle);
  }

  async #settle(path: string): Promise<void> {
    const handle = await openIfThere(path);
    try {
      if (handle) await this.#syncFile(handle);
    } finally {
      await handle?.close();
    }
    this.#settled.add(path);
  }

  /**
   * It stays open: what the kernel could not write is told to every file handle that was open then, and
   * perhaps to no later one (fsync(2)).
   */
  async #follow(path: string): Promise<void> {
    await this.close();
    const handle = await openIfThere(path);
    this.#newest = handle && { path, handle };
  }

  /** A sync after one that has failed may succeed without having written anything (fsync(2)). */
  async #syncFile(handle: FileHandle): Promise<void> {
    try {
      await handle.datasync();
    } catch (error) {
      this.#isBroken = true;
      this.parts.log.error({ error: textOf(error) }, "redis's file could not be synced");
      throw error;
    }
  }
}

const unsynced = (message: string): RemudaError => new RemudaError("store_unavailable", { message });

/** The newest is the last. Redis before version 7 has one (redis.io, "Redis persistence"). */
async function filesIn(directory: string): Promise<readonly string[]> {
  const parts = join(directory, "appendonlydir");
  const names = await readdir(parts).catch((error: unknown) => {
    if (errnoOf(error) === "ENOENT") return undefined;
    throw error;
  });
  if (!names) return [join(directory, "appendonly.aof")];
  const numberOf = (name: string): number => Number(/\.(\d+)\.incr\.aof$/.exec(name)?.[1] ?? 0);
  return names
    .filter((name) => numberOf(name) > 0)
    .toSorted((one, other) => numberOf(one) - numberOf(other))
    .map((name) => join(parts, name));
}

/** One that is gone was rewritten into another, which Redis has synced. */
async function openIfThere(path: string): Promise<FileHandle | undefined> {
  try {
    return await open(path, "r");
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return undefined;
    throw error;
  }
}
