import type { Millis } from "../base/clock.js";

/** The limits that scripts are given; all of them come from the configuration. */
export interface StoreLimits {
  readonly maxWaiters: number;
  /** How many of one caller; null: as many as come. */
  readonly requestsPerMinute: number | null;
  /** The most on-demand sessions at once; null: no limit. */
  readonly maxSessions: number | null;
  /** The most browsers of the organization: sessions on demand and the sizes of pools; null: no limit. */
  readonly concurrentSessions: number | null;
  readonly idempotencyMs: Millis;
  readonly keyedGraceMs: Millis;
  readonly controlLostMs: Millis;
  /** When a grant that nobody confirmed is looked at: it goes back if its control is lost. */
  readonly provisionalMs: Millis;
  /** For so long after a lease's end, a repeated release that names no lease ends nothing. */
  readonly retryWindowMs: Millis;
  /** A browser that has served so many leases is to be replaced; null without a limit. */
  readonly maxLeases: number | null;
  /** One script retires no more browsers than this where many are over, so that nobody waits long for it. */
  readonly retiredAtOnce: number;
  /** Moves kept in the stream of a partition. */
  readonly eventsKept: number;
  /** The same of all partitions together. */
  readonly eventsKeptInAll: number;
  /** A node has to take a launch up in this time: a lost job costs no more. */
  readonly launchPickupMs: Millis;
  /** A launch that was taken up may then take so long before it is claimed anew. */
  readonly launchClaimMs: Millis;
  readonly backoffInitialMs: Millis;
  readonly backoffMaxMs: Millis;
  readonly earlyDeathMs: Millis;
  readonly nodeLostMs: Millis;
  /** After so long without a beat a node lends nothing and launches nothing. */
  readonly nodeLateMs: Millis;
  readonly tombstoneMs: Millis;
  readonly maxTombstones: number;
  /** Recordings are kept as long as tombstones. */
  readonly maxRecordings: number;
  /** What the items of one vault may take, as they are encrypted, and those of all vaults of a project. */
  readonly vaultBytes: number;
  readonly projectVaultBytes: number;
}
