import type { Millis } from "../base/clock.js";
import type { Digest } from "../base/ids.js";
import type { Archives } from "./archives.js";

/** What a store of archives can do beside what all may ask of it. */
export interface ArchiveBackend extends Archives {
  /** Removes it unless it was put again since it was listed with this time. */
  removeStale(digest: Digest, putAt: Millis): Promise<"removed" | "fresh">;
  /**
   * Removes what puts that never ended have left, where `isOld` says so; none of it counts as an archive.
   * `isOld` is told of each what stays the same as long as nobody works on it.
   */
  tidy(isOld: (leftover: string) => boolean): Promise<void>;
  /**
   * Makes `path`, which is not there yet, a file with the archive's bytes, verified. Throws
   * `archive_missing`.
   */
  place(digest: Digest, path: string): Promise<void>;
}
