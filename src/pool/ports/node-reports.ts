import type { BrowserId, ClaimId, LeaseId, NodeId, Partition } from "../../base/ids.js";
import type {
  LaunchingBrowser,
  LeasedBrowser,
  RetireReason,
  UnknownLeaseOutcome,
  TrafficUsage,
} from "../browser.js";

export interface LeaseUsage {
  readonly lease: LeaseId;
  readonly usage: TrafficUsage;
}

/** What a node reports of its browsers; a claim that is not the record's changes nothing. */
export interface NodeReports {
  connect(
    browser: BrowserId,
    lease: LeaseId,
  ): Promise<{ kind: "connected"; browser: LeasedBrowser } | { kind: "over"; why: string }>;
  /**
   * Tells which browsers a node has, and which leases clients have opened there, with the records as it has
   * read them last. Undefined where no other epoch has begun since it last did. `resumed`: leases that go on;
   * `void`: those that nobody had opened, and that may have been another's.
   */
  register(
    partition: Partition,
    word: { node: NodeId; present: readonly BrowserId[]; opened: readonly LeasedBrowser[] },
  ): Promise<{ resumed: readonly LeaseId[]; void: readonly LeaseId[] } | undefined>;
  expire(ask: { browser: BrowserId; lease: LeaseId; registrations: number }): Promise<boolean>;
  /**
   * Takes a launch up; the record, or undefined where the claim is not its own. `mayReset`: its first holder
   * need not be its last.
   */
  beginLaunch(
    browser: BrowserId,
    claim: ClaimId,
  ): Promise<{ browser: LaunchingBrowser; mayReset: boolean } | undefined>;
  launched(browser: BrowserId, claim: ClaimId, isolation: string): Promise<"launched" | "stale">;
  launchFailed(browser: BrowserId, claim: ClaimId, text: string): Promise<"failed" | "stale">;
  freed(browser: BrowserId, claim: ClaimId): Promise<"freed" | "stale">;
  end(
    browser: BrowserId,
    why: RetireReason,
    text: string,
  ): Promise<{ kind: "retiring" | "already"; claim: ClaimId } | { kind: "unknown" }>;
  /**
   * A lease was cut that the record does not name. `kept`: what it left may be the next holder's;
   * `isAltered`: no pool takes that back.
   */
  unknownLease(
    browser: BrowserId,
    cut: { lease: LeaseId; isAltered: boolean },
  ): Promise<{ kind: UnknownLeaseOutcome; claim?: ClaimId }>;
  /** `used`: what the last lease has used in all. */
  gone(browser: BrowserId, claim: ClaimId, used?: LeaseUsage): Promise<void>;
  used(browser: BrowserId, used: LeaseUsage): Promise<void>;
  /**
   * What a lease asked of its network is in force, or cannot be; `stale` where something else is asked for by
   * now.
   */
  applied(ask: {
    browser: BrowserId;
    lease: LeaseId;
    revision: number;
    outcome: "applied" | "refused";
  }): Promise<"applied" | "stale">;
}
