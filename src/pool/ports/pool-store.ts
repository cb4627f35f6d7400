import type { Millis } from "../../base/clock.js";
import type { ErrorCode } from "../../base/errors.js";
import type { BrowserId, ClaimId, ControlId, Digest, Home, LeaseId, NodeId, PoolId, ProfileId, RequestId } from "../../base/ids.js";
import type { Browser, NetworkChange, RetireReason, Strayed, Usage } from "../browser.js";
import type { LaunchConfig, PoolConfig } from "../../spec/launch-template.js";
import type { Overview } from "./partition-overview.js";
import type { Pool } from "../pool.js";
import type { AcquireReply, CreateReply, WithdrawReply } from "./store-replies.js";
import type { Tombstone } from "../session.js";

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

export interface LeaseUsage {
  readonly lease: LeaseId;
  readonly usage: Usage;
}

/** What a node reports of its browsers; a claim that is not the record's changes nothing. */
export interface NodeReports {
  connect(browser: BrowserId, lease: LeaseId): Promise<{ kind: "connected"; registrations: number; startUrl?: string } | { kind: "over"; why: string }>;
  expire(ask: { browser: BrowserId; lease: LeaseId; registrations: number }): Promise<boolean>;
  /** Takes a launch up; the record, or undefined where the claim is not its own. `mayReset`: its first holder need not be its last. */
  beginLaunch(browser: BrowserId, claim: ClaimId): Promise<{ browser: Browser; mayReset: boolean } | undefined>;
  launched(browser: BrowserId, claim: ClaimId, isolation: string): Promise<"launched" | "stale">;
  launchFailed(browser: BrowserId, claim: ClaimId, text: string): Promise<"failed" | "stale">;
  freed(browser: BrowserId, claim: ClaimId): Promise<"freed" | "stale">;
  end(browser: BrowserId, why: RetireReason, text: string): Promise<{ kind: "retiring" | "already"; claim: ClaimId } | { kind: "unknown" }>;
  /** A lease was cut that the record does not name. `kept`: what it left may be the next holder's; `isAltered`: no pool takes that back. */
  strayed(browser: BrowserId, cut: { lease: LeaseId; isAltered: boolean }): Promise<{ kind: Strayed; claim?: ClaimId }>;
  /** `used`: what the last lease has used in all. */
  gone(browser: BrowserId, claim: ClaimId, used?: LeaseUsage): Promise<void>;
  used(browser: BrowserId, used: LeaseUsage): Promise<void>;
  /** What a lease asked of its network is in force, or cannot be; `stale` where something else is asked for by now. */
  applied(ask: { browser: BrowserId; lease: LeaseId; revision: number; outcome: "applied" | "refused" }): Promise<"applied" | "stale">;
}

/** One reservation of a name: another of the same owner has a later deadline. */
export interface Reservation {
  readonly deadline: Millis;
}

/** What all pools of a project may have together. */
export interface PoolBounds {
  /** The sum of their sizes, null without a limit. */
  readonly pooledSessions: number | null;
  readonly maxPools: number;
}

/** What spans homes: the project's pools and names. Reservations name an owner and are void after a deadline (design.md 4). */
export interface Projects {
  /** Reserves a name for an owner; undefined where another owner has it. Reserving again is harmless. */
  reserveName(ask: { kind: "pool" | "session"; name: string; owner: string; home: Home }): Promise<Reservation | undefined>;
  freeName(ask: { kind: "pool" | "session"; name: string; owner: string; only?: Reservation }): Promise<void>;
  findName(kind: "pool" | "session", name: string): Promise<{ owner: string; home: Home } | undefined>;
  /** Reserves a pool's size within the project's limit. */
  reserveSize(pool: PoolId, size: number, most: PoolBounds): Promise<"reserved" | "over" | "many">;
  /** Makes the size that is reserved the one of the pool's record, or gives it back where there is no such pool. */
  settleSize(pool: PoolId): Promise<void>;
  /** Notes a pool that is being created; void after a while unless it is opened. */
  addPool(pool: PoolId): Promise<void>;
  openPool(pool: PoolId): Promise<void>;
  /** Takes the pool out of every list; its home is still looked after until it is empty. */
  dropPool(pool: PoolId): Promise<void>;
  forgetPool(pool: PoolId): Promise<void>;
  /** Does what is left to do for a deleted pool whose deleter has died on the way. */
  settleHome(home: Home): Promise<void>;
  pools(): Promise<readonly PoolId[]>;
  /** Every home with anything in it: open pools, deleted ones not yet empty, on-demand. */
  homes(): Promise<readonly Home[]>;
  /** An answer kept under an idempotency key, or the place to keep it. */
  remember(keyed: Keyed, value: string): Promise<{ kind: "new" } | { kind: "same"; value: string } | { kind: "mismatch" }>;
  /** Gives what is kept another value, for as long as it is kept. */
  settleKey(keyed: Keyed, value: string): Promise<void>;
  forgetKey(keyed: Keyed): Promise<void>;
  sweepNames(): Promise<void>;
  /** Forgets pools that were never opened, and deleted ones whose home is empty. */
  sweepPools(): Promise<void>;
  /** Moves what homes have to bury to where it is looked up. */
  sweepGraves(): Promise<void>;
  findTombstone(id: BrowserId): Promise<Tombstone | undefined>;
  /** The last that bore the name. */
  findTombstoneNamed(name: string): Promise<Tombstone | undefined>;
  /** The last ended first: `count` of them after the first `from`. */
  tombstones(from: number, count: number): Promise<readonly Tombstone[]>;
  countTombstones(): Promise<number>;
  sweepTombstones(): Promise<void>;
  /** Cuts streams of events to what all of them may have together. */
  sweepEvents(): Promise<void>;
}

/** Messages between roles: hints, each repeated by a tick when lost. */
export type ControlMessage =
  | { readonly kind: "granted"; readonly waiter: RequestId; readonly connection: RequestId; readonly browser: string; readonly at: Millis }
  /** `forgotten`: the place was given up while its control stood still, and cannot be had again. */
  | { readonly kind: "superseded" | "deleted" | "forgotten"; readonly waiter: RequestId; readonly connection: RequestId }
  | { readonly kind: "failed"; readonly waiter: RequestId; readonly connection: RequestId; readonly node: NodeId; readonly error: string }
  /** `text`: why not, for people. `code`: what that is answered as, where the node can tell whose fault it is. */
  | { readonly kind: "answer"; readonly question: RequestId; readonly ok: boolean; readonly text?: string; readonly code?: ErrorCode };
export type NodeMessage =
  | { readonly kind: "fence"; readonly browser: BrowserId; readonly lease: LeaseId; readonly claim: ClaimId; readonly mode: "none" | "state" }
  | { readonly kind: "cut"; readonly browser: BrowserId; readonly lease: LeaseId; readonly why: string }
  | { readonly kind: "start"; readonly browser: BrowserId; readonly lease: LeaseId; readonly url: string }
  | { readonly kind: "ask"; readonly question: RequestId; readonly control: ControlId; readonly browser: BrowserId; readonly lease: LeaseId; readonly what: NodeQuestion };
export type NodeQuestion =
  | { readonly kind: "navigate"; readonly url: string }
  /** To put in force what the lease's record asks of its network: the record is the truth, whatever order messages come in. */
  /** `change` is what the record asks, for a node that cannot read it there. */
  | { readonly kind: "network"; readonly revision: number; readonly change?: NetworkChange }
  /** To load archives into the running browser: all of them, or none. */
  | { readonly kind: "extensions"; readonly items: readonly UploadedExtension[] }
  /** All of it, or nothing: a viewport, the state of a profile, which a restart brings, and what `network` will ask for is made ready. */
  | { readonly kind: "change" } & RunningChange;

/** What a PATCH asks of a running browser; texts as in `NetworkChange`. */
export interface RunningChange {
  readonly viewport?: { readonly width: number; readonly height: number };
  /** It had none. */
  readonly profile?: { readonly id: ProfileId; readonly save: boolean };
  readonly network?: Touch["network"];
}

/** An extension that a holder has given a running browser, staged and checked; its bytes are in the archives. */
export interface UploadedExtension {
  readonly name: string;
  readonly digest: Digest;
}

/** Carries messages; `onMessage` listeners must not throw. */
export interface Wire {
  toNode(node: NodeId, message: NodeMessage): Promise<void>;
  toControl(control: ControlId, message: ControlMessage): Promise<void>;
}
