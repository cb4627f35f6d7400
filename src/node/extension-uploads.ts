import { bounds } from "../spec/bodies.js";
import { lstat } from "node:fs/promises";
import type { Millis } from "../base/clock.js";
import { partitionOf, type LeaseId, newRequestId } from "../base/ids.js";
import { type Log, textOf } from "../base/log.js";
import type { ArchiveCache } from "../archive/archives.js";
import { BadArchive } from "../archive/formats/zip.js";
import { PipeClosed } from "../browser/cdp/cdp.js";
import type { ExtensionDirectory, LoadResult } from "../browser/chromium.js";
import { removeTree } from "../browser/directories.js";
import { uploadDirectories } from "../browser/extensions/file-access.js";
import type { PoolStore } from "../pool/ports/pool-store.js";
import type { UploadedExtension } from "../pool/ports/messages.js";
import {
  succeeded,
  failed,
  type CommandFailure,
  resultOfError,
  type CommandResult,
  CommandRefused,
} from "../gateway/relay/command-result.js";
import { closeReason, type Restarts } from "./restarts.js";
import type { Slot } from "./slot.js";
import { runExclusively } from "./exclusive.js";

interface ExtensionUploadPorts {
  readonly poolStore: Pick<PoolStore, "touch">;
  readonly restarts: Restarts;
  readonly cache: ArchiveCache;
  /** `into` is not there yet; nothing of it is where it throws. */
  unpack(path: string, into: string): Promise<void>;
  readonly loadLimitMs: Millis;
  readonly log: Log;
}

interface UploadRequest {
  readonly lease: LeaseId;
  readonly items: readonly UploadedExtension[];
  readonly signal: AbortSignal;
}

/** Extensions that a holder gives a running browser: all of them are in force, or it is as before. */
export class ExtensionUploads {
  /** The number of directories that each browser has had, those that are gone again included. */
  readonly #tried = new WeakMap<Slot, number>();

  constructor(private readonly ports: ExtensionUploadPorts) {}

  add(slot: Slot, lease: LeaseId, items: readonly UploadedExtension[]): Promise<CommandResult> {
    return runExclusively(slot, lease, async (signal) => {
      // They were added by a request whose answer was lost.
      if (items.every((item) => has(slot, item))) return succeeded;
      return whyNot(slot, items) ?? (await this.#add(slot, { lease, items, signal }));
    });
  }

  async #add(slot: Slot, { lease, items, signal }: UploadRequest): Promise<CommandResult> {
    const unpacked: ExtensionDirectory[] = [];
    try {
      await checkOurs(slot.chromium.directories.extensions);
      for (const item of items) unpacked.push(await this.#unpack(slot, item, signal));
      await this.#note(slot, lease);
      signal.throwIfAborted();
      await this.#activate(slot, unpacked);
    } catch (error) {
      this.ports.log.info(
        { browser: slot.id, lease, error: textOf(error) },
        "upload of extensions failed; the browser has none of them",
      );
      await removeAll(unpacked);
      return resultOfError(error);
    }
    slot.uploads = [...slot.uploads, ...items];
    return succeeded;
  }

  async #unpack(
    slot: Slot,
    { name, digest }: UploadedExtension,
    signal: AbortSignal,
  ): Promise<ExtensionDirectory> {
    const archive = await this.ports.cache.take(digest);
    try {
      signal.throwIfAborted();
      const path = this.#nextDirectory(slot);
      await this.ports.unpack(archive.path, path).catch((error: unknown) => {
        throw error instanceof BadArchive
          ? new CommandRefused("bad_request", `${name}: ${error.message}`)
          : error;
      });
      return { name, path };
    } finally {
      archive.release();
    }
  }

  /**
   * A directory that no extension of the browser has had before: Chromium knows extensions by their
   * directories.
   */
  #nextDirectory(slot: Slot): string {
    const all = uploadDirectories(slot.chromium.directories);
    const taken = new Set(slot.chromium.extensions.map(({ path }) => path));
    const tried = this.#tried.get(slot) ?? 0;
    const from = (first: number): number =>
      all.findIndex((path, index) => index >= first && !taken.has(path));
    const at = from(tried) < 0 ? from(0) : from(tried);
    this.#tried.set(slot, at + 1);
    const path = all[at];
    if (path === undefined) throw new Error("the browser has no room for another extension");
    return path;
  }

  /**
   * Notes the upload before anything is in force: otherwise the next holder might get a browser of which
   * nobody knows that it was changed.
   */
  async #note({ id }: Slot, lease: LeaseId): Promise<void> {
    const change = { set: {}, clear: [], touched: true, uploaded: true };
    const { kind } = await this.ports.poolStore.touch(partitionOf(id), {
      browser: id,
      lease,
      change,
      request: newRequestId(),
    });
    if (kind !== "touched") throw new CommandRefused("browser_gone", "The lease is over");
  }

  async #activate(slot: Slot, unpacked: readonly ExtensionDirectory[]): Promise<void> {
    const loading = await this.#load(slot, unpacked);
    if (loading.kind === "refused")
      throw new CommandRefused("bad_request", `${loading.name}: ${loading.message}`);
    if (loading.kind === "loaded") return;
    await this.ports.restarts.restart(slot, {
      why: closeReason(`the browser restarts: ${loading.why}`),
      fillWorkspace: (keptWorkspace) => async () => [...keptWorkspace.extensions, ...unpacked],
      undo: () => removeAll(unpacked),
    });
  }

  /**
   * What a browser has that did not answer is not known: a restart puts that right. One that has ended is
   * over, though the word of its end may come after that of its pipe. Its end does not wait for it.
   */
  async #load({ chromium, ending }: Slot, unpacked: readonly ExtensionDirectory[]): Promise<LoadResult> {
    const loading = chromium.load(unpacked, this.ports.loadLimitMs).catch((error: unknown): LoadResult => {
      if (error instanceof PipeClosed) throw new CommandRefused("browser_gone", "The browser has ended");
      return { kind: "needs-restart", why: textOf(error) };
    });
    return await unlessAborted(ending, loading);
  }
}

function unlessAborted<Result>(signal: AbortSignal, work: Promise<Result>): Promise<Result> {
  return new Promise((resolve, reject) => {
    const stop = (): void => reject(signal.reason as Error);
    if (signal.aborted) stop();
    signal.addEventListener("abort", stop);
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", stop));
  });
}

const has = ({ uploads }: Slot, { name, digest }: UploadedExtension): boolean =>
  uploads.some((upload) => upload.name === name && upload.digest === digest);

function whyNot(
  { bridge, chromium, template }: Slot,
  items: readonly UploadedExtension[],
): CommandFailure | undefined {
  if (template.engine !== "chromium") return failed(`${template.engine} has no extensions`, "not_supported");
  if (bridge.filled.hasPages)
    return failed("A page of the browser has a value of a vault (protect_filled)", "conflict");
  const total = chromium.extensions.length + items.length;
  // The extensions of the launch count too.
  if (total > bounds.extensions)
    return failed(
      `The browser would have ${total} extensions, and may have ${bounds.extensions}`,
      "bad_request",
    );
  const names = [...chromium.extensions, ...items].map(({ name }) => name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  return twice === undefined
    ? undefined
    : failed(`${twice}: the browser has an extension of this name`, "bad_request");
}

/**
 * The parent directory belongs to the browser, which may have put something else in its place, such as a link
 * that we would write through.
 */
async function checkOurs(path: string): Promise<void> {
  const found = await lstat(path);
  if (!found.isDirectory() || found.uid !== process.getuid?.())
    throw new Error("the browser has moved its directory of extensions");
}

const removeAll = async (directories: readonly ExtensionDirectory[]): Promise<void> =>
  void (await Promise.all(directories.map(({ path }) => removeTree(path))));
