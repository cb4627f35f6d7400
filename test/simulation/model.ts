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

export interface PoolModel {
  readonly id: PoolId;
  readonly partition: Partition;
  readonly name: string;
  spec: PoolSpec;
  revision: number;
}

export interface Control {
  readonly id: ControlId;
  isAlive: boolean;
  /** It runs but is not heard of. */
  isPaused: boolean;
  /** It does nothing, and what comes for it waits (SIGSTOP). */
  isStopped: boolean;
  /** Until when it was last not heard of. */
  unheardUntil: number;
  readonly delivered: { readonly partition: Partition; readonly lease: LeaseId }[];
  readonly lost: { readonly partition: Partition; readonly lease: LeaseId }[];
}

/** One HTTP request of a caller, as its control knows it. */
export interface Caller {
  readonly connection: RequestId;
  readonly control: Control;
  readonly partition: Partition;
  readonly ask: Ask;
  readonly waiter: RequestId;
  readonly lease: LeaseId;
  /** Its place in line, as its control has been told. */
  readonly stored?: string;
  phase: "waiting" | "granted" | "over";
}

/** What a caller wants, over all its requests. */
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
  /** Names its start: another of the same id is another daemon. */
  run: string;
  isAlive: boolean;
  /** Neither it nor Redis hears of the other; its clients stay. */
  isFrozen: boolean;
  /** Its last beat counted: its name is its own. */
  isNamed: boolean;
  /** Its launches fail; so many have. */
  isSick: boolean;
  failures: number;
  /** Since when it drains, and when that ends its leases. */
  drain: { readonly since: number; readonly until: number } | undefined;
  maxBrowsers: number;
  readonly slots: Map<BrowserId, Slot>;
  readonly launching: Map<BrowserId, ClaimId>;
}

/** Redis and it hear of each other. */
export const isHeard = ({ isFrozen }: FakeNode): boolean => !isFrozen;
