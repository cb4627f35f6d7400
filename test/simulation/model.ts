import type {
  BrowserId,
  ClaimId,
  ControlId,
  Partition,
  LeaseId,
  NodeId,
  PoolId,
  RequestId,
} from "../../src/base/ids.js";
import type { PoolSpec } from "../../src/spec/launch-template.js";
import type { Waiter } from "../../src/pool/ports/pool-store.js";
import type { Slot } from "./begin.js";

/** A piece is smaller than most pools, so that everything else happens between two of them. */
export const simulatedLimits = {
  maxWaiters: 6,
  retiredAtOnce: 2,
  backoffInitialMs: 200,
  backoffMaxMs: 3000,
  earlyDeathMs: 5000,
  nodeLateMs: 3000,
};

export interface PoolModel {
  readonly id: PoolId;
  readonly partition: Partition;
  readonly name: string;
  spec: PoolSpec;
  revision: number;
  /** It has shrunk, and what is above its size is not all retired yet. */
  mayExceed?: boolean;
}

export interface Control {
  readonly id: ControlId;
  isAlive: boolean;
  /** It runs, but its beats do not arrive. */
  isPaused: boolean;
  /** It is stopped (SIGSTOP): it does nothing, and messages to it wait. */
  isStopped: boolean;
  /** The end of the last time in which no beat of it arrived. */
  unheardUntil: number;
  readonly delivered: { readonly partition: Partition; readonly lease: LeaseId }[];
  readonly lost: { readonly partition: Partition; readonly lease: LeaseId }[];
}

/** One HTTP request, as the control that received it knows it. */
export interface Caller {
  readonly connection: RequestId;
  readonly control: Control;
  readonly partition: Partition;
  readonly ask: Ask;
  readonly waiter: RequestId;
  readonly lease: LeaseId;
  /** The waiter as its control was told that Redis stores it. */
  readonly stored?: string;
  phase: "waiting" | "granted" | "over";
  /**
   * A retry under its key has taken its place and gone again: what it waits for is kept for the next one,
   * for a while, unless a tick tells it before that it is served.
   */
  isDisplaced?: boolean;
}

/** What a caller wants, in one request or in several retries. */
export interface Ask {
  readonly waiter: Waiter;
  readonly partition: Partition;
  readonly body: string;
  requests: number;
}

export interface Holder {
  readonly lease: LeaseId;
  readonly browser: BrowserId;
  readonly partition: Partition;
  readonly name?: string;
}

export interface Release {
  readonly holder: Holder;
  readonly isNamed: boolean;
  readonly isRetry: boolean;
  readonly since: number;
}

export interface FakeNode {
  readonly id: NodeId;
  /** Names one run of the daemon; the same id with another run is another daemon. */
  run: string;
  isAlive: boolean;
  /** It does not reach Redis, nor Redis it; its clients stay connected. */
  isFrozen: boolean;
  /** Its last beat was accepted, so the node's name is its own. */
  isNamed: boolean;
  /** Its launches fail; `failures` counts those in a row. */
  isSick: boolean;
  failures: number;
  /** When its drain began, and when the drain ends its leases. */
  drain: { readonly since: number; readonly until: number } | undefined;
  maxBrowsers: number;
  readonly slots: Map<BrowserId, Slot>;
  readonly launching: Map<BrowserId, ClaimId>;
}

/** True where the node reaches Redis. */
export const isHeard = ({ isFrozen }: FakeNode): boolean => !isFrozen;

/**
 * Whether a control has requests or grants there. Only then it beats (lease/grants.ts), so that what a
 * failover has brought back of it, and it knows nothing of, is taken back.
 */
export const isBusyIn = (partition: Partition, control: Control, callers: readonly Caller[]): boolean =>
  [...control.delivered, ...control.lost].some((grant) => grant.partition === partition) ||
  callers.some((one) => one.control === control && one.partition === partition && one.phase !== "over");
