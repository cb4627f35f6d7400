import type { Millis } from "../../base/clock.js";
import type { BrowserId, ClaimId, ControlId, Home, LeaseId, NodeId, PoolId, RequestId } from "../../base/ids.js";
import type { Browser, RetireReason } from "../browser.js";
import type { LaunchConfig, PoolConfig } from "../../spec/launch-template.js";
import type { Overview } from "./partition-overview.js";
import type { Pool } from "../pool.js";
import type { AcquireReply, CreateReply, WithdrawReply } from "./store-replies.js";

/** An acquire that waits, or was granted at once. Stored as JSON. */
export interface Waiter {
  /** Of the first request that asked. */
  readonly id: RequestId;
  /** The id its lease will have. */
  readonly lease: LeaseId;
  readonly control: ControlId;
  /** Of the request whose connection the answer goes to: another one than the first after a retry under the same key. */
  readonly connection: RequestId;
  /** Digest of the idempotency key. */
  readonly key?: string;
  readonly name?: string;
  readonly tags?: string;
  readonly startUrl?: string;
  /** Of an on-demand session, which has no pool to tell it. */
  readonly timeoutSeconds?: number;
}

/** Work for a node's queue: a hint, the record is the truth. */
export interface Job {
  readonly kind: "launch" | "reset" | "retire";
  readonly node: NodeId;
  readonly browser: BrowserId;
  readonly claim: ClaimId;
}

export interface Jobs {
  add(jobs: readonly Job[]): Promise<void>;
}

/** A repeat under an idempotency key: a digest of the key and one of the body. */
export interface Keyed {
  readonly key: string;
  readonly body: string;
}

/** A browser to be, for which room on its node is reserved. */
export interface Candidate {
  readonly id: BrowserId;
  readonly node: NodeId;
  /** JSON of what a tombstone repeats of the launch. */
  readonly facts: string;
  /** Redis's time from which it counts as old. */
  readonly recycleAt?: Millis;
}

export interface PoolWrite {
  readonly config: PoolConfig;
  readonly launchConfig: LaunchConfig;
  readonly unsupported: readonly string[];
}

export interface ReleaseRequest {
  readonly browser: BrowserId;
  /** What the caller calls the browser's pool by; absent where it is named by its id or not at all. */
  readonly name?: string;
  readonly lease?: LeaseId;
  readonly reuse: boolean;
  readonly why: RetireReason;
  readonly isRetry: boolean;
  readonly request: RequestId;
}

export interface Touch {
  readonly set: Readonly<Record<string, string>>;
  readonly clear: readonly string[];
  /** Whether the browser itself was changed, and not only what is said of it. */
  readonly touched: boolean;
  /** A browser that nobody else may get: it is retired at its release, however the pool resets. */
  readonly altered?: boolean;
  /** It was given extensions, which no reset takes from it: it is retired where the pool resets state. */
  readonly uploaded?: boolean;
  /** Asked of its node; texts as in `NetworkChange`. */
  readonly network?: { readonly allowedHosts?: string; readonly proxy?: string };
}

/** How many launches a fill would claim now; not on nodes that are `resting`, and with one on each it is `trying`. */
export interface Wanted {
  readonly count: number;
  readonly resting: readonly NodeId[];
  readonly trying: readonly NodeId[];
}

/** Everything that happens inside one home; each method is one atomic script or one read. */
export interface Homes extends Overview {
  /** `name` is what the caller calls the pool by, where that is not its id: a pool of another name is `missing`. */
  acquire(home: Home, ask: { pool: PoolId; name?: string; waiter: Waiter; keyed?: Keyed; mayWait: boolean }): Promise<AcquireReply>;
  /**
   * Without a candidate, where no node has room, only what the key was given before is given again. `again`: a request of a waiter
   * whose launch has failed, and for whose place alone another is claimed.
   */
  createSession(home: Home, ask: { candidate?: Candidate; waiter: Waiter; config: LaunchConfig; keyed?: Keyed; again?: RequestId }): Promise<CreateReply>;
  withdraw(home: Home, ask: { waiter: RequestId; connection: RequestId; lease: LeaseId }): Promise<WithdrawReply>;
  /** What an idempotency key (its digest) was given, if it is remembered. */
  findKeyed(home: Home, key: string): Promise<{ lease: LeaseId; waiter: RequestId } | undefined>;
  /** Those of the leases that live. */
  heldAmong(home: Home, leases: readonly LeaseId[]): Promise<readonly LeaseId[]>;
  /** The browser of a live lease. */
  findHeld(home: Home, lease: LeaseId): Promise<{ browser: Browser; at: Millis } | undefined>;
  confirm(home: Home, leases: readonly LeaseId[]): Promise<void>;
  undo(home: Home, lease: LeaseId, request: RequestId): Promise<"undone" | "kept" | "opened" | "over">;
  /** `saving`: released, and what its browser leaves is saved as a profile. */
  release(home: Home, ask: ReleaseRequest): Promise<"released" | "saving" | "already" | "superseded" | "unknown" | "elsewhere">;
  touch(home: Home, ask: { browser: BrowserId; lease?: LeaseId; change: Touch; request: RequestId }): Promise<
    { kind: "touched"; browser: Browser; at: Millis } | { kind: "superseded" | "unknown" }
  >;
  /** Those of the places in line, or with a launch on demand, that are there and are not given up. */
  standingAmong(home: Home, waiters: readonly RequestId[]): Promise<readonly RequestId[]>;
  /** Puts back into a pool's line, each at its rank, waiters as they were stored; of each what it is now. */
  rejoin(home: Home, stored: readonly string[]): Promise<readonly ("waiting" | "held" | "superseded" | "over" | "deleted")[]>;
  /** Those whose last lease is over, and whose node has neither cut it nor ended them yet, as far as is known. */
  unfinished(home: Home, browsers: readonly BrowserId[]): Promise<readonly BrowserId[]>;
  /** Says that this control lives and looks after its waiters and grants here. */
  beat(home: Home, control: ControlId): Promise<void>;

  createPool(home: Home, ask: { id: PoolId; write: PoolWrite; request: RequestId }): Promise<void>;
  updatePool(
    home: Home,
    ask: {
      revision: number; write: PoolWrite; isNewLaunch: boolean; isNewNetwork: boolean; discard: boolean; request: RequestId;
      /** From now on it follows the saves of a profile that it did not follow before. */
      isNewRefresh?: boolean;
    },
  ): Promise<"updated" | "changed" | "missing">;
  deletePool(home: Home, ask: { force: boolean; request: RequestId }): Promise<"deleted" | "leased" | "missing">;
  /** Retires idle browsers: all, or those that were claimed before an instant of Redis's time. */
  flush(home: Home, request: RequestId, before?: Millis): Promise<"flushed" | "missing">;
  findPool(home: Home): Promise<Pool | undefined>;
  /** Redis's time. */
  now(): Promise<Millis>;

  findBrowser(id: BrowserId): Promise<{ browser: Browser; at: Millis } | undefined>;
  browsers(home: Home): Promise<{ browsers: readonly Browser[]; at: Millis }>;
  /** Another text after each change of a lease's network here: who has seen this one knows of every change. */
  networkChanges(home: Home): Promise<string>;
  /** A launch configuration never changes under its key. */
  findLaunchConfig(home: Home, key: string): Promise<LaunchConfig | undefined>;

  wanted(home: Home, most: number): Promise<Wanted>;
  /** Nothing is claimed where the pool is no longer at the generation that the candidates were made for. */
  /** `obstacle`: why nodes that could have room launch nothing; shown where capacity holds the pool up. */
  claimLaunches(
    home: Home, ask: { candidates: readonly Candidate[]; madeFor?: string; obstacle?: string; request: RequestId },
  ): Promise<readonly Browser[]>;
  /** `isOpen`: not of a pool that is deleted, or has never come to be. */
  reap(home: Home): Promise<{ launch: readonly Browser[]; isOpen: boolean }>;
  /** With `drains`, marks the browsers of a node that drains for at most so long: none of them is lent while others exist. */
  recycle(home: Home, ask: { maxLeases: number | null; drains?: { node: NodeId; ms: Millis }; request: RequestId }): Promise<number>;
  /** Lends no browser of a node that does not answer for so long; with 0 it answers again. */
  silenceNode(home: Home, node: NodeId, silentMs: Millis): Promise<void>;
  clearNode(home: Home, ask: { node: NodeId; why: RetireReason; which: "idle" | "all" | "lost"; request: RequestId }): Promise<number>;
}
