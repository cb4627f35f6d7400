import type { ApiKeyOperations } from "../access/api-key.js";
import type { GuardedLookup } from "../access/authorize.js";
import type { Removal } from "../access/first-removals.js";
import type { FailedLogins } from "../access/failed-logins.js";
import type { ProjectOperations } from "../access/project.js";
import type { Authenticator } from "../access/principal.js";
import type { Entitlements } from "../access/entitlements.js";
import type { LimitOperations } from "../access/organization-limits.js";
import type { RateLimiter } from "../access/rate-limiter.js";
import type { DestinationOperations } from "../audit/export/destination.js";
import type { AuditReader } from "../audit/read-page.js";
import type { AuditRecorder } from "../audit/writer.js";
import type { Clock, Millis } from "../base/clock.js";
import type { ProjectId } from "../base/ids.js";
import type { Log } from "../base/log.js";
import type { Staging } from "../archive/archives.js";
import type { ReadScaling } from "../pool/scaling.js";
import type { NodeOperations } from "../pool/node-operations.js";
import type { PoolOperations, Readiness, SessionOperations } from "../pool/operations.js";
import type { OtlpDestinationOperations } from "../registry/destinations/destination.js";
import type { ExtensionOperations } from "../registry/extensions/extension.js";
import type { ProfileOperations } from "../registry/profiles/profile.js";
import type { ProxyOperations } from "../registry/proxies/proxy.js";
import type { ItemOperations } from "../vault/items.js";
import type { VaultOperations } from "../vault/vault.js";
import type { WireNames } from "../vault/wire-names.js";
import type { EventOperations } from "../telemetry/read-events.js";
import type { TellPlatformCall } from "../telemetry/platform-calls.js";
import type { RequestInterceptor } from "./request-interceptor.js";
import type { ViewContext } from "./views/views.js";

/** How much one upload may send, and how long it may take; in place of the limits for ordinary bodies. */
export interface UploadLimits {
  readonly maxFileBytes: number;
  /** The longest time without a byte. */
  readonly stallMs: Millis;
  readonly limitMs: Millis;
}

export interface HttpOptions {
  readonly host: string;
  /** 0 takes any free one. */
  readonly port: number;
  /** The URL at which the API is reached from outside; the OpenAPI document names it. */
  readonly publicUrl?: string;
  /** The URL at which other daemons reach it, where that is another one. */
  readonly nodeUrl?: string;
  /** Addresses and ranges of proxies whose X-Forwarded-For is believed. */
  readonly trustedProxies: readonly string[];
  readonly region: ViewContext["region"];
  readonly version: string;
  /** The limit of bodies that may carry an enterprise policy (up to 5 MiB); all others have a smaller one. */
  readonly bodyLimitBytes: number;
  readonly uploads: UploadLimits;
  /**
   * Until a request's headers, and its whole body, have arrived; says nothing of how long the answer may
   * take.
   */
  readonly headersTimeoutMs: number;
  readonly requestTimeoutMs: number;
  readonly keepAliveTimeoutMs: number;
  /** A connection on which nothing moves for so long is cut; longer than any reply waits. */
  readonly silenceTimeoutMs: number;
  /** Connections beyond this are not accepted. */
  readonly maxConnections: number;
  /** How long `close` lets replies in flight end. */
  readonly closeLimitMs: number;
  /** Set to log one line per request at debug level. */
  readonly logsRequests: boolean;
}

/** The text that `/metrics` answers. */
interface MetricsPage {
  readonly contentType: string;
  text(): Promise<string>;
}

/** What the API does in one project, and with nothing of any other. */
export interface OperationsInProject {
  readonly pools: PoolOperations;
  readonly sessions: SessionOperations;
  readonly proxies: ProxyOperations;
  readonly extensions: ExtensionOperations;
  readonly profiles: ProfileOperations;
  readonly events: EventOperations;
  readonly otlpDestinations: OtlpDestinationOperations;
  readonly vaults: VaultOperations;
  readonly vaultItems: ItemOperations;
}

export interface HttpDeps {
  readonly authenticator: Authenticator;
  /** Judges how often credentials may fail from one address. */
  readonly failedLogins: FailedLogins;
  /** Which of these API keys let nobody in any more. */
  endedAmong(ids: readonly string[]): Promise<readonly string[]>;
  /** The id of what a deletion means, or what it was called where there is no such thing. */
  findRemoved(removal: Removal): Promise<string>;
  /** What policies name in a project. */
  thingsIn(project: ProjectId): GuardedLookup;
  readonly apiKeys: ApiKeyOperations;
  /** Undefined where projects are not enabled. */
  readonly projects: ProjectOperations | undefined;
  readonly nodes: NodeOperations;
  readonly limits: LimitOperations;
  readonly entitlements: Entitlements;
  /** Holds POST /browsers to its rate, where one is set. */
  readonly creations?: RateLimiter | undefined;
  /** What the API does in a project. */
  operationsIn(project: ProjectId): OperationsInProject;
  /** Holds archives that were sent with a request, until its operation has taken them. */
  readonly staging: Staging;
  /** Takes what each request leaves in the audit log; undefined where there is none. */
  readonly audit: AuditRecorder | undefined;
  readonly auditLog: AuditReader;
  readonly destinations: DestinationOperations;
  /** What providers and operations of vaults are called in answers. */
  readonly wireNames: WireNames;
  readonly tellPlatformCall: TellPlatformCall;
  readonly links: ViewContext["links"];
  readonly drainsUntil: ViewContext["drainsUntil"];
  readonly readiness: Readiness;
  readonly metrics: MetricsPage;
  readonly readScaling: ReadScaling;
  readonly interceptor: RequestInterceptor;
  readonly clock: Clock;
  readonly log: Log;
}
