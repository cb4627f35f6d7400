import { chmod } from "node:fs/promises";
import type { Clock, Millis } from "../../base/clock.js";
import { TimeLimitReached } from "../../base/deadline.js";
import { type Cdp, CdpRefused, PipeClosed } from "../cdp/cdp.js";
import type { ExtensionDirectory, LoadResult } from "../chromium.js";
import { NotInstallable, type LaunchExtensions, withForced } from "./forced-extensions.js";
import { isInstalled } from "./forced-install.js";
import { type InstalledExtensions, installedIn, restoreInstalled } from "./restore-extensions.js";
import { findUnpackedId } from "./file-access.js";

/** The sticky bit lets whoever may write here add files, and remove only its own. */
const sticky = 0o1777;

/**
 * Lets the browser write below an extension's directory, and change nothing of what lies there. Chromium
 * keeps its index of an extension's declarative rules in a `_metadata` of its own making, and refuses the
 * extension where it cannot, or where that is there already (Chromium 156, docs/chromium.md#extensions).
 */
const makeRulesDirectory = (extension: string): Promise<void> => chmod(extension, sticky);

interface LoadedExtension extends ExtensionDirectory {
  readonly id: string;
}

type Failure = Exclude<LoadResult, { kind: "loaded" }>;

/**
 * The extensions of one browser. Chromium makes an extension's id from its path, unless its manifest has a
 * key.
 */
export class BrowserExtensions {
  #loaded: readonly LoadedExtension[] = [];
  #turn: Promise<unknown> = Promise.resolve();

  /**
   * `withoutFiles` has the ids that the browser knew at its start to have no access to files. Each counts
   * once, since uninstalling forgets it.
   */
  constructor(
    private readonly cdp: Cdp,
    private readonly clock: Clock,
    private readonly withoutFiles: Set<string>,
  ) {}

  /** The extensions that are loaded, in load order. */
  get loaded(): readonly ExtensionDirectory[] {
    return this.#loaded.map(({ name, path }) => ({ name, path }));
  }

  /**
   * Loads the extensions of a launch: waits half of the limit for those that Chromium installs by policy, and
   * loads the others.
   */
  async start(
    wanted: readonly LaunchExtensions[],
    { profile, limitMs }: { profile: string; limitMs: Millis },
  ): Promise<LoadResult> {
    const { cdp, clock } = this;
    for (const { name, forced } of wanted) {
      const isThere =
        forced === undefined || (await isInstalled(forced, { cdp, clock, profile, limitMs: limitMs / 2 }));
      if (!isThere)
        return {
          kind: "refused",
          name,
          message: "it was not installed by policy; its .crx may be broken, or ask for what is blocked",
        };
    }
    const loading = await this.#load(
      wanted.filter(({ forced }) => forced === undefined),
      limitMs,
    );
    const idOf = ({ path, forced }: LaunchExtensions): string =>
      forced?.id ?? this.#loaded.find((each) => each.path === path)?.id ?? "";
    if (loading.kind === "loaded")
      this.#loaded = wanted.map((each) => ({ name: each.name, path: each.path, id: idOf(each) }));
    return loading;
  }

  /** Loads all of them for all contexts, or none. Calls take turns. */
  load(extensions: readonly ExtensionDirectory[], limitMs: Millis): Promise<LoadResult> {
    const loading = this.#turn.then(
      async () =>
        (await this.#findTwin(extensions)) ??
        (await whyNotLive(extensions)) ??
        (await this.#load(extensions, limitMs)),
    );
    this.#turn = loading.catch(() => {});
    return loading;
  }

  /** Forgets all of them, after Chromium was rid of them. */
  forget(): void {
    this.#loaded = [];
  }

  async #load(extensions: readonly ExtensionDirectory[], limitMs: Millis): Promise<LoadResult> {
    const twice = extensions.find(({ path }) => this.#loaded.some((loaded) => loaded.path === path));
    if (twice) throw new Error(`extension ${twice.name} is loaded already`);
    const deadline = this.clock.monotonic() + limitMs;
    const [first] = extensions;
    if (first === undefined) return { kind: "loaded" };
    const before = await installedIn(this.cdp, { limitMs }).catch((error: unknown) =>
      failureOf(error, first.name),
    );
    if ("kind" in before) return before;
    const added = await this.#loadAll(extensions, before, deadline);
    if ("kind" in added) return await this.#undo(added, before);
    this.#loaded = [...this.#loaded, ...added];
    return { kind: "loaded" };
  }

  async #loadAll(
    extensions: readonly ExtensionDirectory[],
    before: InstalledExtensions,
    deadline: Millis,
  ): Promise<readonly LoadedExtension[] | Failure> {
    const added: LoadedExtension[] = [];
    const leftMs = (): Millis => Math.max(1, deadline - this.clock.monotonic());
    for (const extension of extensions) {
      const id = await findUnpackedId(extension);
      if (id === undefined)
        return { kind: "refused", name: extension.name, message: "The key in its manifest cannot be read" };
      // Two manifests with one key have one id, so the second would take the place of the first.
      const other = before.get(id)?.path ?? added.find((each) => each.id === id)?.path ?? extension.path;
      if (other !== extension.path)
        return {
          kind: "refused",
          name: extension.name,
          message: "Another extension of this browser has the same key",
        };
      const failure = await this.#loadOne({ ...extension, id }, before, leftMs()).catch((error: unknown) =>
        failureOf(error, extension.name),
      );
      if (failure) return failure;
      added.push({ ...extension, id });
    }
    const now = await installedIn(this.cdp, { limitMs: leftMs() }).catch((error: unknown) =>
      failureOf(error, added.at(-1)?.name ?? ""),
    );
    if ("kind" in now) return now;
    // It gives an id to those that it does not run, too (Chromium 156, docs/chromium.md#extensions).
    const idle = added.find(({ id }) => now.get(id)?.isEnabled !== true);
    return idle
      ? { kind: "needs-restart", why: `Chromium does not enable the extension ${idle.name}` }
      : added;
  }

  /** The second of two with one key takes the first's place (Chromium 156, docs/chromium.md#extensions). */
  async #findTwin(extensions: readonly ExtensionDirectory[]): Promise<Failure | undefined> {
    const ids = new Set(this.#loaded.map(({ id }) => id));
    for (const extension of extensions) {
      const id = await findUnpackedId(extension);
      if (id !== undefined && ids.has(id))
        return {
          kind: "refused",
          name: extension.name,
          message: "Another extension of this browser has the same key",
        };
      ids.add(id ?? "");
    }
    return undefined;
  }

  /** An extension that the browser still has from its last start is not loaded a second time. */
  async #loadOne(
    { path, id, name }: LoadedExtension,
    before: InstalledExtensions,
    limitMs: Millis,
  ): Promise<Failure | undefined> {
    if (before.get(id)?.isEnabled === true) return undefined;
    await makeRulesDirectory(path);
    if (!this.withoutFiles.delete(id))
      return {
        kind: "needs-restart",
        why: `Chromium has to know before that the extension ${name} reads no files`,
      };
    const loaded = await this.cdp.send(
      "Extensions.loadUnpacked",
      { path, enableInIncognito: true },
      { limitMs },
    );
    if (loaded.id === id) return undefined;
    return {
      kind: "refused",
      name,
      message: `Chromium calls it ${loaded.id} instead of ${id}, and would let it read files`,
    };
  }

  async #undo(failure: Failure, before: InstalledExtensions): Promise<Failure> {
    const isUndone = await restoreInstalled(this.cdp, this.clock, before).then(
      () => true,
      (error: unknown) => {
        if (error instanceof PipeClosed) throw error;
        return false;
      },
    );
    if (isUndone) return failure;
    return {
      kind: "needs-restart",
      why: `${reasonOf(failure)}, and what was loaded before it could not be taken back`,
    };
  }
}

/** An extension that policy has to install needs a restart, since Chromium reads policy at its start. */
async function whyNotLive(extensions: readonly ExtensionDirectory[]): Promise<Failure | undefined> {
  try {
    const demanding = (await withForced(extensions)).find(({ forced }) => forced);
    return (
      demanding && {
        kind: "needs-restart",
        why: `the extension ${demanding.name} has to be installed by policy`,
      }
    );
  } catch (error) {
    if (error instanceof NotInstallable)
      return { kind: "refused", name: error.extension, message: error.message };
    throw error;
  }
}

/** Why it was not loaded, in words for people. */
export const reasonOf = (failure: Failure): string =>
  failure.kind === "refused"
    ? `Chromium refuses the extension ${failure.name}: ${failure.message}`
    : failure.why;

function failureOf(error: unknown, name: string): Failure {
  if (error instanceof CdpRefused) return { kind: "refused", name, message: error.reason };
  if (error instanceof TimeLimitReached)
    return { kind: "needs-restart", why: `Chromium did not load the extension ${name} in time` };
  throw error;
}
