import type { BrowserId, LeaseId } from "../base/ids.js";
import type { Chromium } from "../browser/chromium.js";
import type { CurlAnswer, CurlRequest } from "../egress/parts.js";
import type { Activity } from "./activity.js";
import type { Bridge } from "./cdp/bridge.js";
import type { TrafficMeter } from "./client.js";

/** A browser of this node. */
export interface LocalBrowser {
  readonly chromium: Pick<Chromium, "pipe" | "directories" | "version">;
  readonly bridge: Bridge;
  readonly activity: Activity;
  /**
   * While its Chromium is being replaced: settles when that is over. `chromium` and `bridge` are others then.
   */
  readonly restarting?: Promise<void> | undefined;
  /** A request of our own through the browser's way out, under its rules and into its counts. */
  curl(request: CurlRequest, gone: AbortSignal): Promise<CurlAnswer>;
}

/** What is to be registered in Redis before it may touch the browser. */
export interface Registration {
  readonly browser: BrowserId;
  readonly lease: LeaseId;
  readonly kind: "client" | "request";
}

export type RegistrationReply =
  | {
      readonly kind: "connected";
      /** Settles when the acquire's start_url was dispatched; absent where there is none. */
      readonly ready?: Promise<unknown>;
    }
  | { readonly kind: "gone"; readonly reason: string };

export interface NodeAddress {
  readonly host: string;
  readonly port: number;
  /** Set where the node is reached by TLS only. */
  readonly isSecure?: boolean;
}

/** What the gateway needs of the node around it. */
export interface GatewayPorts {
  findBrowser(browser: BrowserId): LocalBrowser | undefined;
  /** Registers a client or request, or says that its lease is over. Throws when Redis cannot be asked. */
  connect(visiting: Registration): Promise<RegistrationReply>;
  /** Why a lease is over, as far as that is remembered. */
  findEnd(browser: BrowserId, lease: LeaseId): Promise<string | undefined>;
  /** Finds the other node that serves the session; `undefined` where none does. */
  findAddress(browser: BrowserId): Promise<NodeAddress | undefined>;
  /** A node could not be reached at its address. */
  unreachable?(address: NodeAddress): void;
  readonly metrics: GatewayMetrics;
}

export interface GatewayMetrics extends TrafficMeter {
  clientOpened(): void;
  clientClosed(): void;
}
