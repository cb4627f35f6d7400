import type { Readable } from "node:stream";
import type { Millis } from "../../base/clock.js";
import type { Done, Refusal } from "../../base/errors.js";
import type { Digest, ExtensionId } from "../../base/ids.js";
import type { Page, Paging } from "../../spec/paging.js";

/** An archive of an unpacked extension that pools and sessions can name. It never changes under its id. */
export interface Extension {
  readonly id: ExtensionId;
  readonly name?: string;
  /**
   * SHA-256 of the exact bytes that were uploaded: the contract's `checksum`, and what the archive is kept
   * under.
   */
  readonly digest: Digest;
  readonly sizeBytes: number;
  readonly createdAt: Millis;
  /** When a browser was launched with it last. */
  readonly lastUsedAt?: Millis;
}

/** `name` exactly, without regard to case and accents; `query` a part of the name, or the id. */
export interface NamedQuery extends Paging {
  readonly name?: string;
  readonly query?: string;
}

/** Keeps extensions; instants are Redis's. */
export interface ExtensionStore {
  /** `taken`: another has this name. A repeat with the same id changes nothing. */
  create(ask: {
    id: ExtensionId;
    name?: string;
    digest: Digest;
    sizeBytes: number;
    most: number;
  }): Promise<"created" | "taken" | "many">;
  find(id: ExtensionId): Promise<Extension | undefined>;
  findNamed(name: string): Promise<ExtensionId | undefined>;
  /** All, newest first: there are few enough. */
  all(): Promise<readonly Extension[]>;
  noteUse(id: ExtensionId): Promise<void>;
  remove(id: ExtensionId): Promise<"removed" | "missing">;
}

/**
 * What the operations of /extensions do; a `ref` is an id or a name, ids win. Every refusal has changed and
 * kept nothing.
 */
export interface ExtensionOperations {
  /**
   * `file` is read to its end or destroyed; `name` is asked for after that, since an upload may tell it after
   * the file.
   */
  create(ask: {
    name: () => Promise<string | undefined>;
    file: Readable;
    signal: AbortSignal;
  }): Promise<Done<Extension> | Refusal>;
  list(query: NamedQuery): Promise<Page<Extension>>;
  get(ref: string): Promise<Done<Extension> | Refusal>;
  /** The archive itself. */
  download(ref: string): Promise<Done<{ readonly extension: Extension; readonly bytes: Readable }> | Refusal>;
  remove(ref: string): Promise<Done<null> | Refusal>;
  /**
   * GET /extensions/from_chrome_store: the zip of an extension of the Chrome Web Store; nothing is
   * registered.
   */
  fromStore(ask: {
    url: string;
    os: "win" | "mac" | "linux";
    signal: AbortSignal;
  }): Promise<Done<{ readonly bytes: Readable; readonly sizeBytes: number }> | Refusal>;
}
