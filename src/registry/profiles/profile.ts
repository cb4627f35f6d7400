import type { Readable } from "node:stream";
import type { Millis } from "../../base/clock.js";
import type { Done, Refusal } from "../../base/errors.js";
import type { Digest, ProfileId } from "../../base/ids.js";
import type { Page, Paging } from "../../spec/paging.js";
import type { NamedQuery } from "../extensions/extension.js";

/** A user-data directory that sessions start from; without an archive until its first save. */
export interface Profile {
  readonly id: ProfileId;
  readonly name?: string;
  readonly createdAt: Millis;
  /** The instant of its last save, or of its last new name. */
  readonly updatedAt?: Millis;
  readonly lastUsedAt?: Millis;
  /** The last save: a tar, compressed with zstd and sealed (archive/profile-archives.ts). */
  readonly archive?: { readonly digest: Digest; readonly sizeBytes: number; readonly savedAt: Millis };
}

/** Keeps profiles; instants are Redis's. */
export interface ProfileStore {
  /** `taken`: another has this name. A repeat with the same id changes nothing. */
  create(ask: { id: ProfileId; name?: string; most: number }): Promise<"created" | "taken" | "many">;
  find(id: ProfileId): Promise<Profile | undefined>;
  findNamed(name: string): Promise<ProfileId | undefined>;
  /** The newest come first. */
  page(paging: Paging): Promise<Page<Profile>>;
  /**
   * What each is called, newest first: what a search looks through, at a tenth of the cost of reading all.
   */
  index(): Promise<readonly { readonly id: ProfileId; readonly name?: string }[]>;
  /** All, newest first; takes its time where there are many. */
  all(): Promise<readonly Profile[]>;
  rename(id: ProfileId, name: string): Promise<"changed" | "missing" | "taken">;
  /**
   * The whole save in one step, last writer wins; `missing`: it was deleted meanwhile. A repeat with the same
   * digest changes nothing.
   */
  commit(id: ProfileId, archive: { digest: Digest; sizeBytes: number }): Promise<"committed" | "missing">;
  noteUse(id: ProfileId): Promise<void>;
  remove(id: ProfileId): Promise<"removed" | "missing">;
}

/**
 * What the operations of /profiles do; a `ref` is an id or a name, ids win. Every refusal has changed
 * nothing.
 */
export interface ProfileOperations {
  create(body: { name?: string }): Promise<Done<Profile> | Refusal>;
  list(query: NamedQuery): Promise<Page<Profile>>;
  get(ref: string): Promise<Done<Profile> | Refusal>;
  rename(ref: string, name: string): Promise<Done<Profile> | Refusal>;
  remove(ref: string): Promise<Done<null> | Refusal>;
  /** Undefined where nothing was saved yet (202). */
  download(
    ref: string,
    format: "zstd" | "tar",
  ): Promise<Done<{ readonly bytes: Readable } | undefined> | Refusal>;
}

export interface SaveOptions {
  readonly signal: AbortSignal;
  /** Called once the archive is kept, and only the commit is left to do. */
  readonly packed?: () => void;
}

/** How a node gets a profile's state, and gives it back. Both are streams. */
export interface ProfileArchives {
  /**
   * The tar of the profile's last save; undefined where there is none, or no such profile. Throws
   * `secret_unreadable`.
   */
  open(id: ProfileId): Promise<Readable | undefined>;
  /**
   * Compresses, seals, keeps and commits the tar as the profile's state. Rejects where the stream fails or is
   * cut: then the profile is as it was. `missing`: the profile was deleted.
   */
  save(id: ProfileId, tar: Readable, options: SaveOptions): Promise<"committed" | "missing">;
}
