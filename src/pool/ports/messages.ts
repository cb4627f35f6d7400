import type { Done, ErrorCode, Refusal } from "../../base/errors.js";
import type { Browser, NetworkChange } from "../browser.js";
import type { CurlBody, CurlReply } from "../../spec/curl.js";
import type { Millis } from "../../base/clock.js";
import type {
  BrowserId,
  ClaimId,
  ControlId,
  Digest,
  LeaseId,
  NodeId,
  ProfileId,
  RequestId,
} from "../../base/ids.js";
import type { LeaseChange } from "./pool-store.js";

/** Asks the browser's node, for the lease that the browser has now. */
export type AskCurl = (
  browser: Browser,
  body: CurlBody,
  gone: AbortSignal,
) => Promise<Done<CurlReply> | Refusal>;

/**
 * `text`: why it failed, for people; `code`: what that is answered as, where the node can tell whose fault it
 * is.
 */
export type NodeReply =
  | { readonly kind: "done" | "silent" }
  | { readonly kind: "failed"; readonly text?: string; readonly code?: ErrorCode };

/**
 * Tells a node a message without Redis, over HTTP. Never throws: undefined where the node could not be told.
 */
export type SendDirectly = (
  node: NodeId,
  message: NodeMessage,
  limitMs: Millis,
) => Promise<NodeReply | undefined>;

/** Messages between roles: hints, each repeated by a tick when lost. */
export type ControlMessage =
  | {
      readonly kind: "granted";
      readonly waiter: RequestId;
      readonly connection: RequestId;
      readonly browser: string;
      readonly at: Millis;
    }
  /** `forgotten`: the place was given up while its control stood still, and cannot be had again. */
  | {
      readonly kind: "superseded" | "deleted" | "forgotten";
      readonly waiter: RequestId;
      readonly connection: RequestId;
    }
  | {
      readonly kind: "failed";
      readonly waiter: RequestId;
      readonly connection: RequestId;
      readonly node: NodeId;
      readonly error: string;
    }
  /**
   * `text`: why not, for people. `code`: what that is answered as, where the node can tell whose fault it is.
   */
  | {
      readonly kind: "answer";
      readonly question: RequestId;
      readonly ok: boolean;
      readonly text?: string;
      readonly code?: ErrorCode;
    };

export type NodeMessage =
  | {
      readonly kind: "fence";
      readonly browser: BrowserId;
      readonly lease: LeaseId;
      readonly claim: ClaimId;
      readonly mode: "none" | "state";
    }
  | { readonly kind: "cut"; readonly browser: BrowserId; readonly lease: LeaseId; readonly why: string }
  | { readonly kind: "start"; readonly browser: BrowserId; readonly lease: LeaseId; readonly url: string }
  | {
      readonly kind: "ask";
      readonly question: RequestId;
      readonly control: ControlId;
      readonly browser: BrowserId;
      readonly lease: LeaseId;
      readonly what: NodeRequest;
    };

export type NodeRequest =
  | { readonly kind: "navigate"; readonly url: string }
  /**
   * To put in force what the lease's record asks of its network: the record is the truth, whatever order
   * messages come in.
   */
  /** `change` is what the record asks, for a node that cannot read it there. */
  | { readonly kind: "network"; readonly revision: number; readonly change?: NetworkChange }
  /** To load archives into the running browser: all of them, or none. */
  | { readonly kind: "extensions"; readonly items: readonly UploadedExtension[] }
  /**
   * All of it, or nothing: a viewport, the state of a profile, which a restart brings, and what `network`
   * will ask for is made ready.
   */
  | ({ readonly kind: "change" } & RunningChange);

/** What a PATCH asks of a running browser; texts as in `NetworkChange`. */
export interface RunningChange {
  readonly viewport?: { readonly width: number; readonly height: number };
  /** It had none. */
  readonly profile?: { readonly id: ProfileId; readonly save: boolean };
  readonly network?: LeaseChange["network"];
}

/**
 * An extension that a holder has given a running browser, staged and checked; its bytes are in the archives.
 */
export interface UploadedExtension {
  readonly name: string;
  readonly digest: Digest;
}

/** Carries messages; `onMessage` listeners must not throw. */
export interface Messages {
  toNode(node: NodeId, message: NodeMessage): Promise<void>;
  toControl(control: ControlId, message: ControlMessage): Promise<void>;
}
