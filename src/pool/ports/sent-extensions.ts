import type { Done, Refusal } from "../../base/errors.js";
import type { Digest } from "../../base/ids.js";

/** An extension whose archive has arrived whole and lies in a file of ours. */
export interface SentExtension {
  readonly name: string;
  readonly path: string;
  readonly digest: Digest;
}

/** In load order; at least one, none named as another. */
export interface SentExtensions {
  readonly items: readonly SentExtension[];
  /** Removes the files. */
  discard(): Promise<void>;
}

/** Reads what a caller sends; where it refuses or throws nothing is kept. */
export type ReceiveExtensions = () => Promise<Done<SentExtensions> | Refusal>;
