import type { Millis } from "../base/clock.js";
import type { BrowserId, ConnectionId, LeaseId, RequestId } from "../base/ids.js";
import type { TraceContext } from "../base/trace-context.js";
import type { Chromium } from "../browser/chromium.js";
import type { CurlAnswer, CurlRequest } from "../egress/parts.js";
import type { ReportedCommand } from "../telemetry/commands/tell.js";
import type { Activity } from "./activity.js";
import type { Bridge } from "./cdp/bridge.js";

/** A browser of this node. */
export interface LocalBrowser {
  readonly chromium: Pick<Chromium, "pipe" | "directories" | "version" | "startSidecar" | "allowDownloads">;
  readonly bridge: Bridge;
  readonly activity: Activity;
  /**
   * While its Chromium is being replaced: settles when that is over. `chromium` and `bridge` are others then.
   */
  readonly restarting?: Promise<void> | undefined;
  /** Asked anew for each message; absent while nothing of what clients do is captured. */
  readonly clientObserver?: ClientObserver | undefined;
  /** A request of our own through the browser's way out, under its rules and into its counts. */
  curl(request: CurlRequest, gone: AbortSignal): Promise<CurlAnswer>;
}

/** One connection of a client. */
export interface ClientIdentity {
  readonly id: ConnectionId;
  readonly lease: LeaseId;
  readonly protocol: "cdp" | "bidi";
  /** When its upgrade came; monotonic clock. */
  readonly arrivedAt: Millis;
  /** Monotonic clock. */
  readonly openedAt: Millis;
  /** What its upgrade is part of. */
  readonly trace?: TraceContext | undefined;
}

/**
 * Why a client is no longer there.
 *
 * - `left`: it closed its connection, asked to be disconnected, or was lost.
 * - `restart`: its Chromium was restarted.
 * - `browser`: its Chromium is gone, or the target that it was attached to.
 * - `cut`: its lease is over, the daemon stops, or it was beyond a limit.
 */
export type ClientEnd = "left" | "restart" | "browser" | "cut";

/** A request through the browser's way out that was answered. */
interface ObservedRequest {
  readonly lease: LeaseId;
  readonly request: RequestId;
  /** The operation's id in the API's description. */
  readonly operation: string;
  readonly status: number;
  readonly durationMs: Millis;
}

/** Hears what the clients of one browser do. It never throws and never waits. */
export interface ClientObserver {
  opened(client: ClientIdentity): void;
  /** A message has come from the client or was given to it. */
  message(client: ClientIdentity): void;
  /** A command has gone to Chromium, or was carried out in its place. */
  command(client: ClientIdentity, told: ReportedCommand): void;
  /** Nothing of the client reaches the browser any more. */
  closed(client: ClientIdentity, end: ClientEnd): void;
  requested(request: ObservedRequest): void;
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
      /** Settles when what the lease captures of pages is in force, or after a limit; never rejects. */
      readonly inForce?: Promise<void> | undefined;
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

/** Counts for the metrics. */
export interface TrafficMeter {
  received(bytes: number): void;
  sent(bytes: number): void;
  refused(method: string): void;
}

export interface GatewayMetrics extends TrafficMeter {
  clientOpened(): void;
  clientClosed(): void;
}
