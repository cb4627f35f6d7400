import { type FileHandle, mkdir, open, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { type Log, textOf } from "../../base/log.js";
import { mounts } from "./mounts.js";
import { isThere } from "./scratch.js";

/**
 * Copies of Chromium's executables in a file system in memory that has huge pages. The kernel maps the code
 * of a new process in larger pieces from there, and unmaps it so: a start costs less processor time
 * (DECISIONS.md 231). Browsers are shown the copy in the place of the original, read-only.
 */
export interface ExecutableCopies {
  /**
   * Finds the copy of an executable; undefined where there is none yet, or none of the file that is there
   * now. A copy is made, and not waited for, once an executable was asked for several times.
   */
  find(executable: string): Promise<string | undefined>;
  close(): Promise<void>;
}

interface CopiesSettings {
  readonly scratch: string;
  /** Memory that nobody needs now, in bytes. */
  availableBytes(): number;
  readonly log: Log;
}

/** A daemon that launches fewer browsers would not get back what the copy costs. */
const launchesBefore = 8;
/** A copy may take so much of what is free: unlike what the kernel caches, it cannot be given up. */
const largestShare = 1 / 16;
/** The size of a huge page on most machines: each write fills whole ones. */
const pieceBytes = 2 ** 21;

/** Undefined where the daemon may not mount. */
export const openExecutableCopies = (settings: CopiesSettings): ExecutableCopies | undefined =>
  process.getuid?.() === 0 && mounts !== undefined ? new Copies(settings) : undefined;

interface Original {
  /** What would be otherwise were it another file, as after an update. */
  readonly identity: string;
  asked: number;
  copy?: string;
  made?: Promise<void>;
}

class Copies implements ExecutableCopies {
  readonly #originals = new Map<string, Original>();
  readonly #path: string;
  #mounting: Promise<void> | undefined;
  #made = 0;
  #isClosed = false;

  constructor(private readonly settings: CopiesSettings) {
    this.#path = join(settings.scratch, "executables");
  }

  async find(executable: string): Promise<string | undefined> {
    const { ino, size, mtimeMs } = await stat(executable);
    const identity = `${ino} ${size} ${mtimeMs}`;
    const original = await this.#original(executable, identity);
    original.asked += 1;
    if (original.asked > launchesBefore && !this.#isClosed)
      original.made ??= this.#make(executable, original, size);
    return original.copy;
  }

  async #original(executable: string, identity: string): Promise<Original> {
    const known = this.#originals.get(executable);
    const isKept = known?.copy === undefined || (await isThere(known.copy));
    if (known?.identity === identity && isKept) return known;
    const original: Original = { identity, asked: 0 };
    this.#originals.set(executable, original);
    // Browsers that run keep the file until they end.
    if (known?.copy !== undefined) await rm(known.copy, { force: true });
    return original;
  }

  async #make(executable: string, original: Original, size: number): Promise<void> {
    const { log, availableBytes } = this.settings;
    if (size > availableBytes() * largestShare) return;
    const copy = join(this.#path, `${(this.#made += 1)}`);
    try {
      await (this.#mounting ??= this.#mount());
      const isWhole = await this.#copy(executable, copy);
      if (isWhole) original.copy = copy;
      else await rm(copy, { force: true });
      if (isWhole) log.info({ executable, bytes: size }, "executable copied into memory");
    } catch (error) {
      await rm(copy, { force: true }).catch(() => {});
      log.warn({ executable, error: textOf(error) }, "executable not copied into memory");
    }
  }

  /** Not before the first launch, for what is mounted earlier is swept. */
  async #mount(): Promise<void> {
    await rm(this.#path, { recursive: true, force: true });
    await mkdir(this.#path, { mode: 0o755 });
    // Each copy is made only where there is room, so the size needs no limit of its own.
    if (await mounts?.mountTmpfs(this.#path, "huge=always,mode=0755")) return;
    throw new Error("a file system with huge pages is not granted");
  }

  /** False where it was called off. */
  async #copy(from: string, to: string): Promise<boolean> {
    const source = await open(from, "r");
    try {
      const target = await open(to, "wx", 0o755);
      try {
        return await this.#pour(source, target);
      } finally {
        await target.close();
      }
    } finally {
      await source.close();
    }
  }

  async #pour(source: FileHandle, target: FileHandle): Promise<boolean> {
    const piece = Buffer.alloc(pieceBytes);
    for (;;) {
      const { bytesRead } = await source.read(piece, 0, pieceBytes);
      if (bytesRead === 0) return true;
      if (this.#isClosed) return false;
      for (let at = 0; at < bytesRead;) at += (await target.write(piece, at, bytesRead - at)).bytesWritten;
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.#originals.values()].map(({ made }) => made));
    const isMounted = await this.#mounting?.then(
      () => true,
      () => false,
    );
    if (isMounted && !(await mounts?.detach(this.#path)))
      throw new Error(`${this.#path} could not be unmounted`);
    await rm(this.#path, { recursive: true, force: true });
  }
}
