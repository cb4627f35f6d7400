import type { Clock, Millis } from "../base/clock.js";
import { TimeLimitReached } from "../base/deadline.js";
import { type Cdp, CdpRefused } from "./cdp.js";
import type { ExtensionDirectory, Loading } from "./chromium.js";

interface Loaded extends ExtensionDirectory {
  readonly id: string;
}

/** The extensions of one browser: its own path gives each its id, unless its manifest has a key. */
export class Extensions {
  #loaded: readonly Loaded[] = [];

  constructor(private readonly cdp: Cdp, private readonly clock: Clock) {}

  /** In load order. */
  get loaded(): readonly ExtensionDirectory[] {
    return this.#loaded.map(({ name, path }) => ({ name, path }));
  }

  /** Loads all of them, in all contexts, or none. */
  async load(extensions: readonly ExtensionDirectory[], limitMs: Millis): Promise<Loading> {
    const deadline = this.clock.monotonic() + limitMs;
    const added: Loaded[] = [];
    for (const extension of extensions) {
      const id = await this.#loadOne(extension, deadline - this.clock.monotonic());
      if (typeof id !== "string") return await this.#undo(added, id);
      added.push({ ...extension, id });
    }
    const idle = await this.#findIdle(added, deadline - this.clock.monotonic());
    if (idle !== undefined) return await this.#undo(added, idle);
    this.#loaded = [...this.#loaded, ...added];
    return { kind: "loaded" };
  }

  async #loadOne({ name, path }: ExtensionDirectory, limitMs: Millis): Promise<string | Loading> {
    try {
      const { id } = await this.cdp.send("Extensions.loadUnpacked", { path, enableInIncognito: true }, { limitMs });
      return id;
    } catch (error) {
      if (error instanceof CdpRefused) return { kind: "refused", name, message: error.reason };
      if (error instanceof TimeLimitReached) return { kind: "needs-restart", why: `extension ${name} was not loaded in time` };
      throw error;
    }
  }

  /** Chromium gives an id to extensions that it does not run, too. */
  async #findIdle(added: readonly Loaded[], limitMs: Millis): Promise<Loading | undefined> {
    const { extensions } = await this.cdp.send("Extensions.getExtensions", {}, { limitMs });
    const enabled = new Set(extensions.filter((each) => each.enabled).map(({ id }) => id));
    const idle = added.find(({ id }) => !enabled.has(id));
    return idle && { kind: "needs-restart", why: `extension ${idle.name} is not enabled` };
  }

  async #undo(added: readonly Loaded[], because: Loading): Promise<Loading> {
    for (const { id } of added.toReversed()) await this.cdp.send("Extensions.uninstall", { id });
    return because;
  }
}
