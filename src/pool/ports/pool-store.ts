import type { Millis } from "../../base/clock.js";
import type { Refusal } from "../../base/errors.js";
import type {
  BrowserId,
  ClaimId,
  ControlId,
  Partition,
  LeaseId,
  NodeId,
  PoolId,
  RequestId,
} from "../../base/ids.js";
import type { Browser, LaunchingBrowser, LeasedBrowser, RetireReason } from "../browser.js";
import type { LaunchTemplate, PoolSpec } from "../../spec/launch-template.js";
import type { Caller } from "../../spec/caller.js";
import type { PartitionOverview } from "./partition-overview.js";
import type { Pool } from "../pool.js";
import type { AcquireReply, CreateReply, FailedWaiter, RejoinReply, WithdrawReply } from "./store-replies.js";

/** An acquire that waits, or was granted at once. Stored as JSON. */
export interface Waiter {
  /** The id of the first request that asked. */
  readonly id: RequestId;
  /** The id its lease will have. */
  readonly lease: LeaseId;
  readonly control: ControlId;
  /**
   * The request whose connection the answer goes to. After a retry under the same key it is another one than
   * the first.
   */
  readonly connection: RequestId;
  /** Digest of the idempotency key. */
  readonly key?: string;
  readonly name?: string;
  readonly tags?: string;
  readonly startUrl?: string;
  /** JSON text of the `Telemetry` by which its lease changes the browser's. */
  readonly telemetry?: string;
  /** Pages that a vault fills under its lease are not read back, also where the launch does not say so. */
  readonly protectFilled?: true;
  /** The span of the call, which its lease is part of. */
  readonly trace?: string;
  /** The API key that asks. */
  readonly holder?: string;
  /** The timeout of an on-demand session, which has no pool to tell it. */
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
export interface IdempotencyKey {
  readonly key: string;
  readonly body: string;
}

/** A browser to be, for which room on its node is reserved. */
export interface LaunchCandidate {
  readonly id: BrowserId;
  readonly node: NodeId;
  /** JSON of what a tombstone repeats of the launch. */
  readonly facts: string;
  /** Redis's time from which it counts as old. */
  readonly recycleAt?: Millis;
}

export interface PoolWrite {
  readonly spec: PoolSpec;
  readonly template: LaunchTemplate;
  readonly unsupported: readonly string[];
}

/** A browser of a pool that is to be lent. */
export interface AcquireRequest {
  readonly pool: PoolId;
  /** What the caller calls the pool by, where that is not its id: a pool of another name is `missing`. */
  readonly name?: string;
  readonly waiter: Waiter;
  readonly idempotencyKey?: IdempotencyKey;
  readonly mayWait: boolean;
  readonly isRepeatOnly?: boolean;
  /** Set where the caller may be let in along the way; a refusal says that they were not. */
  readonly admission?: Caller["admission"];
}

/** A session on demand that is to be launched. */
export interface CreateRequest {
  /** Absent where nothing is launched: then only a repeat is answered, and none whose launch has failed. */
  readonly candidate?: LaunchCandidate;
  readonly waiter: Waiter;
  /** Absent where only a repeat is answered. */
  readonly template?: LaunchTemplate;
  readonly idempotencyKey?: IdempotencyKey;
  /** Names a request of a waiter whose launch has failed: another is claimed for its place alone. */
  readonly relaunch?: RequestId;
  /** From then on the reservation of the session is void, where there is one: nothing is claimed under it. */
  readonly reservedUntil?: Millis;
  /** The shape of which one that stands by will do; JSON of what its record is to repeat of `template`. */
  readonly standby?: { readonly key: string; readonly facts: string };
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
  /** As that of an acquire. */
  readonly admission?: Caller["admission"];
}

/** A lease that is over and may have captured events: what its launch and it have said of that. */
export interface CapturedEnd {
  readonly lease: LeaseId;
  /** Key of the launch template. */
  readonly templateKey: string;
  readonly telemetry?: string;
  /** What it was part of, as its record had it. */
  readonly trace?: string;
}

export interface ReleaseReply {
  readonly kind: "released" | "saving" | "already" | "superseded" | "unknown" | "elsewhere";
  readonly captured?: CapturedEnd;
}

/** `changed`: the telemetry is another than the one that was merged over. */
export type TouchReply =
  | { readonly kind: "touched"; readonly browser: LeasedBrowser; readonly at: Millis }
  | { readonly kind: "changed" | "superseded" | "unknown" };

export interface LeaseChange {
  readonly set: Readonly<Record<string, string>>;
  readonly clear: readonly string[];
  /** Whether the browser itself was changed, and not only its record. */
  readonly touched: boolean;
  /** A browser that nobody else may get: it is retired at its release, however the pool resets. */
  readonly altered?: boolean;
  /** It was given extensions, which no reset takes from it: it is retired where the pool resets state. */
  readonly uploaded?: boolean;
  /** What was asked of its node; texts as in `NetworkChange`. */
  readonly network?: { readonly allowedHosts?: string; readonly proxy?: string };
  /** What the lease captures; `over` is the revision that it was merged over, 0 before the first. */
  readonly telemetry?: { readonly text: string; readonly over: number };
}

/**
 * The number of launches that a fill would claim now. None is claimed on nodes that are `resting`, and one on
 * each that is `trying`; where one has `failedLately`, only if no other node has room.
 */
export interface LaunchDemand {
  readonly count: number;
  readonly resting: readonly NodeId[];
  readonly trying: readonly NodeId[];
  readonly failedLately: boolean;
}

/** Leases and waiters inside one partition; each method is one atomic script or one read. */
export interface LeaseStore {
  acquire(partition: Partition, ask: AcquireRequest): Promise<AcquireReply>;
  createSession(partition: Partition, ask: CreateRequest): Promise<CreateReply>;
  withdraw(
    partition: Partition,
    ask: { waiter: RequestId; connection: RequestId; lease: LeaseId },
  ): Promise<WithdrawReply>;
  /** What an idempotency key (its digest) was given, if it is remembered. */
  findByKey(partition: Partition, key: string): Promise<{ lease: LeaseId; waiter: RequestId } | undefined>;
  /** Which of the leases live. */
  heldAmong(partition: Partition, leases: readonly LeaseId[]): Promise<readonly LeaseId[]>;
  /** The browser of a live lease. */
  findHeld(partition: Partition, lease: LeaseId): Promise<{ browser: LeasedBrowser; at: Millis } | undefined>;
  confirm(partition: Partition, leases: readonly LeaseId[]): Promise<void>;
  undo(
    partition: Partition,
    lease: LeaseId,
    request: RequestId,
  ): Promise<"undone" | "kept" | "opened" | "over">;
  /** `saving`: released, and what its browser leaves is saved as a profile. */
  release(partition: Partition, ask: ReleaseRequest): Promise<ReleaseReply | Refusal>;
  touch(
    partition: Partition,
    ask: { browser: BrowserId; lease?: LeaseId; change: LeaseChange; request: RequestId },
  ): Promise<TouchReply>;
  /** Which of the waiters are in line, or have a launch on demand, and are not given up. */
  waitingAmong(partition: Partition, waiters: readonly RequestId[]): Promise<readonly RequestId[]>;
  /** Which of the waiters had a launch on demand that has failed, and have no other yet. */
  failedAmong(partition: Partition, waiters: readonly RequestId[]): Promise<readonly FailedWaiter[]>;
  /** Puts back into a pool's line, each at its rank, waiters as they were stored; of each what it is now. */
  rejoin(partition: Partition, stored: readonly string[]): Promise<readonly RejoinReply[]>;
  /**
   * Which of the browsers have had their last lease, and were neither cut nor ended by their node yet, as far
   * as is known.
   */
  unfinished(partition: Partition, browsers: readonly BrowserId[]): Promise<readonly BrowserId[]>;
  /** Says that this control lives and looks after its waiters and grants here. */
  beat(partition: Partition, control: ControlId): Promise<void>;
}

/** How far a refresh has come in the line of idle browsers; `from` is absent at its end. */
export interface RefreshPlace {
  readonly from?: string;
  /** Whether it has found nothing to retire. */
  readonly isClean: boolean;
}

/** Everything that happens inside one partition. */
export interface PoolStore extends LeaseStore, PartitionOverview {
  createPool(partition: Partition, ask: { id: PoolId; write: PoolWrite; request: RequestId }): Promise<void>;
  updatePool(
    partition: Partition,
    ask: {
      revision: number;
      /** When that was written, where there was a change before. */
      revisedAt?: number;
      write: PoolWrite;
      isNewLaunch: boolean;
      isNewNetwork: boolean;
      discard: boolean;
      request: RequestId;
      /** The pool begins to follow the saves of a profile that it did not follow before. */
      isNewRefresh?: boolean;
    },
  ): Promise<"updated" | "changed" | "busy" | "missing">;
  deletePool(
    partition: Partition,
    ask: { force: boolean; request: RequestId },
  ): Promise<"deleted" | "leased" | "missing">;
  /**
   * Discards all idle browsers: none of them is lent any more. `busy`, here and of a change: what was
   * discarded before is to be retired first.
   */
  flush(partition: Partition, request: RequestId): Promise<"flushed" | "busy" | "missing">;
  /**
   * Retires some of those that were discarded, or are above the size, or of a deleted pool. `isToSize`: the
   * pool has shrunk, and keeps nothing for what is to be replaced.
   */
  retireLeft(partition: Partition, ask: { isToSize: boolean; request: RequestId }): Promise<"more" | "rid">;
  /** Retires some idle browsers that were claimed before an instant of Redis's time. */
  refresh(
    partition: Partition,
    ask: { before: Millis; after?: RefreshPlace; request: RequestId },
  ): Promise<RefreshPlace>;
  findPool(partition: Partition): Promise<Pool | undefined>;
  /** The time of Redis's clock. */
  now(): Promise<Millis>;

  findBrowser(id: BrowserId): Promise<{ browser: Browser; at: Millis } | undefined>;
  /** All of them; what changes meanwhile may be as it was before or after. */
  browsers(partition: Partition): Promise<{ browsers: readonly Browser[]; at: Millis }>;
  /**
   * Another text after each change of a lease's network here: who has seen this one knows of every change.
   */
  networkChanges(partition: Partition): Promise<string>;
  /** A launch template never changes under its key. */
  findTemplate(partition: Partition, key: string): Promise<LaunchTemplate | undefined>;

  wanted(partition: Partition, most: number): Promise<LaunchDemand>;
  /**
   * Claims nothing where the pool is no longer at the generation that the candidates were made for.
   * `obstacle` says why nodes that could have room launch nothing; it is shown where capacity holds the pool
   * up.
   */
  claimLaunches(
    partition: Partition,
    ask: { candidates: readonly LaunchCandidate[]; madeFor?: string; obstacle?: string; request: RequestId },
  ): Promise<readonly LaunchingBrowser[]>;
  /** `isOpen`: not of a pool that is deleted, or has never come to be. `isMore`: there is more to reap. */
  reap(
    partition: Partition,
  ): Promise<{ launch: readonly LaunchingBrowser[]; isOpen: boolean; isMore: boolean }>;
  /**
   * With `drains` it marks the browsers of a node that drains for at most so long: none of them is lent while
   * others exist.
   */
  recycle(
    partition: Partition,
    ask: { maxLeases: number | null; drains?: { node: NodeId; ms: Millis }; request: RequestId },
  ): Promise<number>;
  /** Lends no browser of a node that does not answer for so long; with 0 it answers again. */
  silenceNode(partition: Partition, node: NodeId, silentMs: Millis): Promise<void>;
  /** Lends what a node has again, which drains no more. */
  reopenNode(partition: Partition, node: NodeId): Promise<void>;
  clearNode(
    partition: Partition,
    ask: { node: NodeId; why: RetireReason; which: "idle" | "all" | "lost"; request: RequestId },
  ): Promise<number>;
}
