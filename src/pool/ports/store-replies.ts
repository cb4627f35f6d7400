import type { Refusal } from "../../base/errors.js";
import type { Millis } from "../../base/clock.js";
import type { LeaseId, RequestId } from "../../base/ids.js";
import type { LaunchFailure } from "./messages.js";
import type { LaunchingBrowser, LeasedBrowser } from "../browser.js";

/** A place in line, or with a launch on demand. `stored`: the waiter as the store keeps it. */
export interface WaitingReply {
  readonly kind: "waiting";
  readonly waiter: RequestId;
  readonly lease: LeaseId;
  readonly stored?: string;
}

/** Refused is whom the script itself was to let in, and did not. */
export type AcquireReply =
  | Refusal
  | { readonly kind: "granted"; readonly browser: LeasedBrowser; readonly at: Millis }
  | WaitingReply
  | { readonly kind: "unsupported"; readonly fields: readonly string[] }
  | { readonly kind: "none" | "full" | "missing" | "mismatch" | "over" };
export type CreateReply =
  | { readonly kind: "granted"; readonly browser: LeasedBrowser; readonly at: Millis }
  | WaitingReply
  | {
      readonly kind: "claimed";
      readonly browser: LaunchingBrowser;
      readonly waiter: RequestId;
      readonly lease: LeaseId;
    }
  | { readonly kind: "mismatch" | "over" | "full" | "none" | "superseded" };
/** A waiter whose launch has failed, by the connection that is to hear of it. */
export type FailedWaiter = LaunchFailure & { readonly connection: RequestId };
/** What a waiter that was to be put back in line is now. */
export type RejoinReply = "waiting" | "held" | "superseded" | "over" | "deleted";
export type WithdrawReply =
  | { readonly kind: "granted"; readonly browser: LeasedBrowser; readonly at: Millis }
  | { readonly kind: "withdrawn" | "kept" | "superseded" | "unknown" };
