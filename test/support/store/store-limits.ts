import type { StoreLimits } from "../../../src/store/limits.js";

/** The limits of the default configuration. */
export const defaultLimits: StoreLimits = {
  maxWaiters: 1000,
  requestsPerMinute: null,
  maxSessions: null,
  concurrentSessions: null,
  idempotencyMs: 600_000,
  keyedGraceMs: 10_000,
  controlLostMs: 5000,
  provisionalMs: 30_000,
  retryWindowMs: 120_000,
  // Every end of a lease is noted, so that a recycling may ask for any number.
  maxLeases: 1,
  retiredAtOnce: 20,
  eventsKept: 10_000,
  eventsKeptInAll: 200_000,
  launchPickupMs: 60_000,
  launchClaimMs: 60_000,
  backoffInitialMs: 1000,
  backoffMaxMs: 60_000,
  earlyDeathMs: 60_000,
  nodeLostMs: 15_000,
  // A node of a test beats once, and is late by real time.
  nodeLateMs: 600_000,
  tombstoneMs: 86_400_000,
  maxTombstones: 100_000,
  maxRecordings: 1000,
  vaultBytes: 8 * 2 ** 20,
  projectVaultBytes: 256 * 2 ** 20,
};
