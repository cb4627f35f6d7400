import type { Millis } from "../base/clock.js";
import type { BrowserId, ClaimId, LeaseId, NodeId, PoolId, ProfileId } from "../base/ids.js";

/**
 * The states of a browser.
 *
 * - `launching`: claimed, its node is starting Chromium. Becomes idle when proved healthy.
 * - `idle`: proved healthy, not leased, may be handed out (the contract's `available_count`).
 * - `leased`: one lease holds it (the contract's `acquired_count`).
 * - `resetting`: its lease is over; its node cuts what is left of it and restores the pool's baseline.
 * - `retiring`: decided once that it is over; its node ends it and clears up. Then the record is gone.
 *
 * `launching`, `resetting` and `retiring` carry a claim and a deadline; past it the tick issues a new claim.
 */
export const browserStates = ["launching", "idle", "leased", "resetting", "retiring"] as const;
export type BrowserState = (typeof browserStates)[number];

/**
 * The table of moves; `store/lua/include/moves.lua` holds the same and refuses any other (a test compares
 * them).
 */
export const browserMoves: Record<BrowserState, readonly (BrowserState | "gone")[]> = {
  launching: ["idle", "retiring"],
  idle: ["leased", "retiring"],
  leased: ["idle", "resetting", "retiring"],
  resetting: ["idle", "retiring"],
  retiring: ["gone"],
};

/** Why a browser is over. */
export const retireReasons = [
  "launch_failed",
  "crashed",
  "unhealthy",
  "node_lost",
  "drained",
  "stopped",
  "released",
  "deleted",
  "expired",
  "flushed",
  "discarded",
  "stale_network",
  "above_size",
  "recycled",
  "not_clean",
  "altered",
  "pool_deleted",
  "reset_failed",
  "unwanted",
  "memory_exceeded",
  "storage_exceeded",
  "missing",
] as const;
export type RetireReason = (typeof retireReasons)[number];

export interface NetworkSettings {
  /** JSON text of `allowed_hosts`, `null` where it was removed; absent where the launch's own stands. */
  readonly allowedHosts?: string;
  /** JSON text of a `ProxyChoice` by mode or id; absent where the launch's own stands. */
  readonly proxy?: string;
}

/** What a PATCH has changed of a lease's network. */
export interface NetworkChange extends NetworkSettings {
  /** Counts all such changes of a partition. */
  readonly revision: number;
}

/** What one lease has used, as its node counted it at most one tick ago. */
export interface TrafficUsage {
  readonly requests: number;
  readonly denied: number;
  readonly bytesSent: number;
  readonly bytesReceived: number;
}
export const noTraffic: TrafficUsage = { requests: 0, denied: 0, bytesSent: 0, bytesReceived: 0 };

/** One holder's exclusive right to one browser, as its record tells. */
export interface Lease {
  readonly id: LeaseId;
  readonly grantedAt: Millis;
  readonly timeoutSeconds: number;
  readonly name?: string;
  /** JSON text of a map of string to string. */
  readonly tags?: string;
  readonly startUrl?: string;
  /** JSON text of the viewport a PATCH has set. */
  readonly viewport?: string;
  /** In force at its node. */
  readonly network?: NetworkChange;
  /** Asked of its node, which has not said yet that it is in force. */
  readonly networkWanted?: NetworkChange;
  /** JSON text of the `LoadedProfile` a PATCH has attached. */
  readonly profile?: string;
  readonly usage?: TrafficUsage;
  /** The pool's name at the grant. */
  readonly pool?: string;
  /**
   * How many clients or requests were ever registered; 0 means that nothing but the API has touched the
   * browser.
   */
  readonly registrations: number;
}

/** A browser's record, as Redis holds it: the truth. All instants are Redis's `TIME` in ms. */
export interface Browser {
  readonly id: BrowserId;
  readonly state: BrowserState;
  readonly since: Millis;
  readonly createdAt: Millis;
  readonly node: NodeId;
  /** Key of the launch configuration it was started with. */
  readonly config: string;
  readonly generation: number;
  readonly networkGeneration: number;
  /** Leases served to their end. */
  readonly served: number;
  readonly claim?: ClaimId;
  /** While resetting: the lease to be cut. */
  readonly fence?: LeaseId;
  readonly lease?: Lease;
  /** It goes when its replacement is idle: it is old, or its node drains. */
  readonly replaceable?: boolean;
  /** Why it is retiring. */
  readonly why?: RetireReason;
  /** What a released lease leaves of it is being saved as a profile. */
  readonly saving?: boolean;
  readonly lastError?: string;
  /** JSON text of `Facts`. */
  readonly facts: string;
  readonly lastLease?: LeaseId;
  readonly lastLeaseEndedAt?: Millis;
  /** JSON text of what isolates it, as its node reported. */
  readonly isolation?: string;
}

/**
 * What becomes of a browser whose node has cut a lease that the record does not name. `held`: the record does
 * name it.
 */
export type UnknownLeaseOutcome = "kept" | "retiring" | "already" | "held" | "unknown";

/** What a browser's record repeats of its launch, for the session object and the tombstone. */
export interface LaunchFacts {
  readonly headless: boolean;
  readonly stealth: boolean;
  readonly kiosk_mode: boolean;
  readonly memory: string;
  readonly poolId?: PoolId;
  readonly profileId?: ProfileId;
  /** The end of the session saves its profile. */
  readonly saves?: boolean;
}

export const launchFactsOf = (browser: Browser): LaunchFacts => JSON.parse(browser.facts) as LaunchFacts;
