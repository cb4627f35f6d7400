import { join } from "node:path";
import type { Readable } from "node:stream";
import type { ExtensionId, ProfileId } from "../base/ids.js";
import { type Log, textOf } from "../base/log.js";
import type { ArchiveCache } from "../archive/archives.js";
import type { ExtensionDirectory, StartDirectories } from "../browser/chromium.js";
import type { LaunchTemplate } from "../spec/launch-template.js";
import type { ExtensionStore } from "../registry/extensions/extension.js";
import type { ProfileArchives, ProfileStore } from "../registry/profiles/profile.js";

/**
 * Fills the profile's directory, where the browser starts from a profile, and says which extensions lie below
 * `directories.extensions`, in load order. Throws, with a text for people, where it cannot.
 */
export type FillWorkspace = (room: StartDirectories) => Promise<readonly ExtensionDirectory[]>;

export interface BrowserAssetPorts {
  readonly extensions: Pick<ExtensionStore, "find" | "noteUse">;
  readonly profiles: Pick<ProfileStore, "find" | "noteUse">;
  readonly archives: Pick<ProfileArchives, "open">;
  readonly cache: ArchiveCache;
  /** `into` is not there yet; nothing of it is where it throws. */
  unpackExtension(path: string, into: string): Promise<void>;
  /** Unpacks into the room's profile, which is empty; the files become the browser's own. */
  unpackProfile(tar: Readable, room: StartDirectories): Promise<void>;
  readonly log: Log;
}

/** Puts into browsers what they are made of. A browser that lacks any of it is not started. */
export class BrowserAssets {
  constructor(private readonly ports: BrowserAssetPorts) {}

  of({ extension_ids: extensions = [], profile_id: profile }: LaunchTemplate): FillWorkspace | undefined {
    if (extensions.length === 0 && profile === undefined) return undefined;
    return async (room) => {
      if (profile !== undefined) await this.profile(profile, room);
      const loaded: ExtensionDirectory[] = [];
      for (const id of extensions) loaded.push(await this.#extension(id, room));
      return loaded;
    };
  }

  /**
   * The state of the profile's last save; nothing where there is none. Throws where there is no such profile.
   */
  async profile(id: ProfileId, room: StartDirectories): Promise<void> {
    const { profiles, archives } = this.ports;
    if (!(await profiles.find(id))) throw new Error(`the profile ${id} does not exist any more`);
    const tar = await archives.open(id);
    try {
      room.signal.throwIfAborted();
      if (tar) await this.ports.unpackProfile(tar, room);
    } finally {
      // It holds its archive in the cache until then.
      tar?.destroy();
    }
    this.#note(profiles.noteUse(id));
  }

  async #extension(id: ExtensionId, { directories, signal }: StartDirectories): Promise<ExtensionDirectory> {
    const { extensions, cache, unpackExtension } = this.ports;
    const extension = await extensions.find(id);
    if (!extension) throw new Error(`the extension ${id} does not exist any more`);
    const path = join(directories.extensions, id);
    const archive = await cache.take(extension.digest);
    try {
      signal.throwIfAborted();
      await unpackExtension(archive.path, path);
    } finally {
      archive.release();
    }
    this.#note(extensions.noteUse(id));
    return { name: extension.name ?? id, path };
  }

  #note(noting: Promise<void>): void {
    noting.catch((error: unknown) => this.ports.log.debug({ error: textOf(error) }, "use not noted"));
  }
}
