import type { Millis } from "../../base/clock.js";
import type { BrowserId, Partition, LeaseId, NodeId } from "../../base/ids.js";
import type { NodeMessage } from "./messages.js";

/** What became known through effects of scripts: for metrics and logs. */
export interface PoolSignals {
  "lease.ended": {
    readonly partition: Partition;
    readonly lease: LeaseId;
    readonly node: NodeId;
    readonly why: string;
    readonly hadClient: boolean;
    readonly heldMs: Millis;
  };
  /** Its node has been told, if Redis brings it the message. */
  "lease.cut": LeaseCut;
  /** The browser's pool may now lack one. */
  "browser.retiring": { readonly partition: Partition };
  /** The room it had on its node is free. */
  "browser.gone": { readonly partition: Partition; readonly browser: BrowserId };
}

/** The end of a lease as its node is told of it. */
export interface LeaseCut {
  readonly partition: Partition;
  readonly node: NodeId;
  readonly message: Extract<NodeMessage, { kind: "fence" | "cut" }>;
}
