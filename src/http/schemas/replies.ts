import { type Static, Type } from "typebox";
import { errors } from "../../base/errors.js";
import { retireReasons, browserStates } from "../../pool/browser.js";
import { CurlReply } from "../../spec/curl.js";
import { FlightRecording } from "../../spec/flight-recording.js";
import {
  engines,
  memoryClasses,
  Network,
  BrowserPolicy,
  PoolCreate,
  regions,
  Viewport,
} from "../../spec/bodies.js";
import {
  ApiKeyReply,
  AuthContextReply,
  CreatedApiKeyReply,
  EntitlementsReply,
  OrganizationLimitsReply,
  ProjectLimitsReply,
  ProjectReply,
} from "./access-replies.js";
import { ListedNode } from "./listed-node.js";
import { OtlpDestinationReply, TelemetryEnvelope, TelemetryReply } from "./telemetry-replies.js";
import { ScalingReply } from "./scaling-replies.js";
import { vaultComponents } from "./vault-replies.js";
import { AuditEntryReply, DestinationReply, DestinationTestReply } from "./audit-replies.js";
import { proxyProtocols, proxyTypes } from "../../registry/proxies/proxy.js";

const Instant = Type.String({ format: "date-time" });
const Count = Type.Integer({ minimum: 0 });
const Region = Type.Enum([...regions]);
const Memory = Type.Enum([...memoryClasses]);

const Detail = Type.Object({ code: Type.Optional(Type.String()), message: Type.Optional(Type.String()) });
/** The one shape of a failure (docs/errors.md). */
const ErrorReply = Type.Object(
  {
    code: Type.Enum(Object.keys(errors)),
    message: Type.String(),
    details: Type.Optional(Type.Array(Detail)),
    inner_error: Type.Optional(Detail),
  },
  { $id: "Error" },
);

const { size: _size, ...optionalConfig } = PoolCreate.properties;
const ConfigReply = Type.Object({
  ...optionalConfig,
  size: Type.Integer({ minimum: 1 }),
  telemetry: Type.Optional(TelemetryReply),
});
/** A pool as docs/api.md#pools has it. */
export const PoolReply = Type.Object(
  {
    id: Type.String(),
    name: Type.Optional(Type.String()),
    region: Region,
    created_at: Instant,
    acquired_count: Count,
    available_count: Count,
    launching_count: Count,
    resetting_count: Count,
    stale_count: Count,
    waiting_count: Count,
    fill: Type.Optional(
      Type.Object(
        {
          reason: Type.Enum(["rate", "capacity", "launch_failing", "rate_zero", "not_supported"]),
          fields: Type.Optional(Type.Array(Type.String())),
          last_error: Type.Optional(Type.String()),
        },
        { description: "Why the pool is below its size; absent when it is full or launches are under way" },
      ),
    ),
    extension_ids: Type.Array(Type.String()),
    profile_id: Type.Optional(Type.String()),
    browser_pool_config: ConfigReply,
  },
  { $id: "BrowserPool" },
);

export const PoolBrowserReply = Type.Object(
  {
    session_id: Type.String(),
    state: Type.Enum([...browserStates]),
    node: Type.String(),
    generation: Count,
    stale: Type.Boolean({ description: "Launched under an older configuration than the pool's" }),
    age_ms: Count,
    leases_served: Count,
    last_error: Type.Optional(Type.String()),
  },
  { $id: "PoolBrowser" },
);

const SessionNetwork = Type.Object(
  {
    ...Network.properties,
    isolation: Type.Optional(
      Type.Enum(["namespace", "proxy", "none"], {
        description:
          "What holds the browser to its proxy: a network namespace, or switches, policy and the gateway",
      }),
    ),
    attested: Type.Optional(
      Type.String({
        format: "date-time",
        description: "When it was last proved from inside that what is closed is closed",
      }),
    ),
    generation: Count,
  },
  { description: "What is in force for this lease" },
);

/** A profile as docs/extensions-and-profiles.md#profiles has it. */
export const ProfileReply = Type.Object(
  {
    id: Type.String(),
    name: Type.Optional(Type.String()),
    created_at: Instant,
    updated_at: Type.Optional(
      Type.String({ format: "date-time", description: "Of its last save, or of its last new name" }),
    ),
    last_used_at: Type.Optional(
      Type.String({ format: "date-time", description: "When a browser was launched from it last" }),
    ),
  },
  { $id: "Profile" },
);

const SessionProfile = Type.Object(
  { ...ProfileReply.properties, created_at: Type.Optional(Instant) },
  { description: "As it is now; of one that was deleted since, the id" },
);

/** A session as docs/api.md#sessions has it. */
export const SessionReply = Type.Object(
  {
    session_id: Type.String(),
    created_at: Instant,
    cdp_ws_url: Type.String(),
    webdriver_ws_url: Type.String(),
    region: Region,
    stealth: Type.Boolean(),
    headless: Type.Boolean(),
    memory: Memory,
    timeout_seconds: Type.Integer(),
    drains_until: Type.Optional(
      Type.String({ format: "date-time", description: "Its node drains: it is ended then at the latest" }),
    ),
    kiosk_mode: Type.Optional(Type.Boolean()),
    engine: Type.Optional(Type.Enum([...engines])),
    lease_id: Type.Optional(Type.String()),
    name: Type.Optional(Type.String()),
    tags: Type.Optional(Type.Record(Type.String(), Type.String())),
    start_url: Type.Optional(Type.String()),
    vaults: Type.Optional(
      Type.Array(Type.Object({ id: Type.String() }), { description: "By what its pages may be filled" }),
    ),
    viewport: Type.Optional(Viewport),
    pool: Type.Optional(Type.Object({ id: Type.String(), name: Type.Optional(Type.String()) })),
    network: Type.Optional(SessionNetwork),
    proxy: Type.Optional(
      Type.Object(
        {
          mode: Type.Optional(Type.Enum(["direct", "default"])),
          id: Type.Optional(Type.String()),
          name: Type.Optional(Type.String()),
        },
        { description: "What carries the requests that no route names; absent where nothing was chosen" },
      ),
    ),
    browser_policy: Type.Optional(BrowserPolicy),
    profile: Type.Optional(SessionProfile),
    profile_save_changes: Type.Optional(
      Type.Boolean({
        description: "Whether the end of the session saves the profile; absent where there is none",
      }),
    ),
    protect_filled: Type.Optional(Type.Boolean()),
    proxy_id: Type.Optional(Type.String()),
    telemetry: Type.Optional(Type.Union([TelemetryReply, Type.Null()])),
    usage: Type.Optional(
      Type.Object(
        { uptime_ms: Count, requests: Count, denied: Count, bytes_sent: Count, bytes_received: Count },
        {
          description:
            "Uptime of the session through all its leases; the counts are of this lease, at most one look of its node late",
        },
      ),
    ),
    isolation: Type.Optional(
      Type.Unknown({ description: "What keeps the browser apart from the host, as its node reported" }),
    ),
    deleted_at: Type.Optional(Instant),
    usage_status: Type.Optional(Type.Enum(["pending", "ready"])),
    reason: Type.Optional(
      Type.Enum([...retireReasons], { description: "Of a deleted session: why it is over" }),
    ),
  },
  { $id: "BrowserSession" },
);

/** A proxy as docs/egress.md#proxies has it. */
export const ProxyReply = Type.Object(
  {
    id: Type.String(),
    name: Type.Optional(Type.String()),
    type: Type.Enum([...proxyTypes]),
    protocol: Type.Enum([...proxyProtocols]),
    bypass_hosts: Type.Array(Type.String()),
    status: Type.Optional(
      Type.Enum(["available", "unavailable"], {
        description: "What the last check found; absent before the first",
      }),
    ),
    last_checked: Type.Optional(Instant),
    ip_address: Type.Optional(
      Type.String({ description: "Where requests through it come from, where the last check was told" }),
    ),
    config: Type.Object({
      host: Type.String(),
      port: Type.Integer(),
      username: Type.Optional(Type.String()),
      has_password: Type.Boolean(),
      has_ca_bundle: Type.Boolean(),
    }),
  },
  { $id: "Proxy" },
);

/** An extension as docs/extensions-and-profiles.md#extensions has it. */
export const ExtensionReply = Type.Object(
  {
    id: Type.String(),
    name: Type.Optional(Type.String()),
    created_at: Instant,
    size_bytes: Count,
    checksum: Type.String({
      description: "SHA-256 of the bytes that were uploaded, in lower-case hexadecimal digits",
    }),
    last_used_at: Type.Optional(
      Type.String({ format: "date-time", description: "When a browser was launched with it last" }),
    ),
  },
  { $id: "Extension" },
);

const StatusReply = Type.Object(
  {
    status: Type.String(),
    store: Type.Optional(
      Type.Enum(["connected", "lost"], {
        description: "Of readiness: whether Redis is there. Sockets are served without it",
      }),
    ),
    vaults: Type.Optional(Type.Enum(["durable", "lossy", "refused"])),
  },
  { $id: "Status" },
);

/** Each is a component of the OpenAPI document. */
export const components = [
  ErrorReply,
  PoolReply,
  PoolBrowserReply,
  SessionReply,
  CurlReply,
  ProxyReply,
  ExtensionReply,
  ProfileReply,
  ApiKeyReply,
  CreatedApiKeyReply,
  ProjectReply,
  AuthContextReply,
  ListedNode,
  OrganizationLimitsReply,
  ProjectLimitsReply,
  EntitlementsReply,
  AuditEntryReply,
  DestinationReply,
  DestinationTestReply,
  OtlpDestinationReply,
  FlightRecording,
  TelemetryEnvelope,
  ...vaultComponents,
  ScalingReply,
  StatusReply,
] as const;

export type PoolReply = Static<typeof PoolReply>;
export type PoolBrowserReply = Static<typeof PoolBrowserReply>;
export type ProxyReply = Static<typeof ProxyReply>;
export type ExtensionReply = Static<typeof ExtensionReply>;
export type ProfileReply = Static<typeof ProfileReply>;
export type SessionReply = Static<typeof SessionReply>;
