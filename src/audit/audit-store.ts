import type { Millis } from "../base/clock.js";
import type { Entry, NewEntry, Position } from "./entry.js";
import type { SealedSegment } from "./segment.js";

/** Entries of one writer, in the order in which their requests ended. */
export interface EntryBatch {
  readonly writer: string;
  /** Counts the writer's batches; one that comes again is taken once. */
  readonly number: number;
  readonly entries: readonly NewEntry[];
  /** Now, by the clock of their times. */
  readonly sentAt: Millis;
}

/** A change that is about to be made. */
export interface Intent {
  readonly id: string;
  readonly entry: NewEntry;
  /** The writer's monotonic time now. */
  readonly sentAt: Millis;
}

/** Where the newest part of the log is kept, and what is known of the segments that hold the rest. */
export interface AuditStore {
  /** `full`: nothing of it was taken. */
  append(batch: EntryBatch): Promise<"appended" | "full">;
  /**
   * Puts on record that a change is about to be made, as the entry that it leaves if nothing more is heard of
   * it. An entry that names the intent takes its place. `full`: nothing was noted.
   */
  noteIntent(intent: Intent): Promise<"noted" | "full">;
  /** Makes entries of intents of which nothing was heard for so long; how many. */
  settleIntents(silentMs: Millis): Promise<number>;
  /** Reads the newest part before a position and not before an instant: newest first, and at most `most`. */
  newest(before: Position, since: Millis, most: number): Promise<readonly Entry[]>;
  /** Reads the newest part from its oldest entry on, after a position: oldest first, and at most `most`. */
  oldest(after: Position | undefined, most: number): Promise<readonly Entry[]>;
  size(): Promise<{ readonly entries: number; readonly bytes: number; readonly at: Millis }>;
  /** The most that positions were ever ahead of the store's clock, which may be set back. */
  aheadMs(): Promise<Millis>;
  /** Numbers and hash of what the manifest holds. */
  manifest(): Promise<LogManifest>;
  /** Segments by their numbers, both included, oldest first. */
  segments(from: number, to: number): Promise<readonly SealedSegment[]>;
  /**
   * Puts a segment at the end of the manifest and takes its entries out of the newest part, both at once.
   * `readAt`: when the entries were read, by the store's clock. `stale`: somebody else has sealed entries
   * since, some of them are gone, or it was too long ago for its archives to be still there for certain.
   */
  commit(
    segment: SealedSegment,
    entries: readonly [Entry, ...Entry[]],
    readAt: Millis,
  ): Promise<"committed" | "stale">;
  /** Forgets a segment and those before it. */
  drop(upTo: Pick<SealedSegment, "number" | "last">): Promise<void>;
}

export interface LogManifest {
  /** The number of the oldest segment that is kept; `last + 1` where there is none. */
  readonly first: number;
  /** 0 where nothing was ever sealed. */
  readonly last: number;
  /** The newest segment's hash; empty where nothing was ever sealed. */
  readonly hash: string;
  /** The last position that was forgotten. */
  readonly forgotten?: Position;
}
