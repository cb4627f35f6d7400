import { Type, type Static } from "typebox";
import { NodeSelector } from "./node-labels.js";

/** The bounds of docs/api.md#bounds-of-fields. */
export const bounds = {
  namePattern: "^[a-zA-Z0-9._-]{1,255}$",
  /** The same, or empty: where an empty name leaves it as it is or takes it away. */
  clearableNamePattern: "^[a-zA-Z0-9._-]{0,255}$",
  timeoutSeconds: { minimum: 10, maximum: 259_200 },
  startUrlLength: 2048,
  extensions: 20,
  policyBytes: 5 * 1024 * 1024,
  /** No X server is started with a larger screen than this; the interface names no bound. */
  viewportPixels: 8192,
  refreshRate: 240,
  allowedHosts: { items: 100, length: 253 },
  privateHosts: { items: 32, length: 253 },
  proxyRoutes: 32,
  tags: 50,
  tagKeyLength: 128,
  tagValuePattern: "^[A-Za-z0-9 _.:/=+@-]{0,256}$",
  vaults: 20,
  poolSize: 100_000,
} as const;

export const memoryClasses = ["1GiB", "2GiB", "4GiB", "8GiB", "16GiB"] as const;
export type MemoryClass = (typeof memoryClasses)[number];
export const headlessMemory: readonly MemoryClass[] = ["1GiB", "2GiB", "4GiB"];
export const headfulMemory: readonly MemoryClass[] = ["8GiB", "16GiB"];
export const memoryBytes = (memory: MemoryClass): number => Number.parseInt(memory, 10) * 1024 ** 3;

export const regions = ["us-east", "us-west", "eu-west", "ap-southeast"] as const;
export const engines = ["chromium", "headless-shell"] as const;
/** The kinds of isolation, the strongest first; src/browser/isolation/rungs.ts says what each means. */
export const rungNames = ["root-mounts", "user-namespace", "shared-proc", "no-sandbox", "none"] as const;
export type RungName = (typeof rungNames)[number];
export const resets = ["none", "state", "relaunch"] as const;
export type ResetMode = (typeof resets)[number];

const closed = { additionalProperties: false } as const;
const text = (maxLength: number) => Type.String({ maxLength });

/**
 * Names something by id or by name. The operation that reads the body checks that one of the two was sent.
 */
export const Selector = Type.Object({ id: Type.Optional(text(255)), name: Type.Optional(text(255)) }, closed);
const ProfileSelector = Type.Object(
  {
    id: Type.Optional(text(255)),
    name: Type.Optional(text(255)),
    save_changes: Type.Optional(Type.Boolean()),
  },
  closed,
);
export const Viewport = Type.Object(
  {
    width: Type.Integer({ minimum: 1, maximum: bounds.viewportPixels }),
    height: Type.Integer({ minimum: 1, maximum: bounds.viewportPixels }),
    refresh_rate: Type.Optional(Type.Integer({ minimum: 1, maximum: bounds.refreshRate })),
  },
  closed,
);
export const Network = Type.Object(
  {
    allowed_hosts: Type.Optional(
      Type.Array(Type.String({ minLength: 1, maxLength: bounds.allowedHosts.length }), {
        maxItems: bounds.allowedHosts.items,
      }),
    ),
    private_hosts: Type.Optional(
      Type.Array(Type.String({ minLength: 1, maxLength: bounds.privateHosts.length }), {
        maxItems: bounds.privateHosts.items,
      }),
    ),
    proxy_routes: Type.Optional(
      Type.Array(
        Type.Object(
          {
            hosts: Type.Array(Type.String({ minLength: 1, maxLength: 253 }), { minItems: 1, maxItems: 100 }),
            proxy: Selector,
          },
          closed,
        ),
        { maxItems: bounds.proxyRoutes },
      ),
    ),
  },
  closed,
);

const Switch = Type.Object({ enabled: Type.Optional(Type.Boolean()) }, closed);
const Control = Type.Object(
  {
    enabled: Type.Optional(Type.Boolean()),
    cdp: Type.Optional(
      Type.Object({ excluded_methods: Type.Optional(Type.Array(text(128), { maxItems: 200 })) }, closed),
    ),
  },
  closed,
);
export const telemetryCategories = [
  "captcha",
  "connection",
  "console",
  "control",
  "interaction",
  "network",
  "page",
  "platform",
  "screenshot",
  "system",
] as const;
const Categories = Type.Object(
  {
    captcha: Type.Optional(Switch),
    connection: Type.Optional(Switch),
    console: Type.Optional(Switch),
    control: Type.Optional(Control),
    interaction: Type.Optional(Switch),
    network: Type.Optional(Switch),
    page: Type.Optional(Switch),
    platform: Type.Optional(Switch),
    screenshot: Type.Optional(Switch),
    system: Type.Optional(Switch),
  },
  closed,
);
export const Telemetry = Type.Object(
  {
    enabled: Type.Optional(Type.Boolean()),
    browser: Type.Optional(Categories),
    export: Type.Optional(
      Type.Object(
        {
          otlp: Type.Optional(
            Type.Object(
              { enabled: Type.Optional(Type.Boolean()), destination: Type.Optional(Selector) },
              closed,
            ),
          ),
        },
        closed,
      ),
    ),
    storage: Type.Optional(Type.Object({ enabled: Type.Optional(Type.Boolean()) }, closed)),
  },
  closed,
);
export type Telemetry = Static<typeof Telemetry>;
export type Network = Static<typeof Network>;
export type Viewport = Static<typeof Viewport>;

export const BrowserPolicy = Type.Record(Type.String(), Type.Unknown());
export const Name = Type.String({ pattern: bounds.namePattern });
const StartUrl = Type.String({ maxLength: bounds.startUrlLength });
const TimeoutSeconds = Type.Integer(bounds.timeoutSeconds);
const Tags = Type.Record(
  Type.String(),
  Type.String({ pattern: bounds.tagValuePattern }),
  // TypeBox can not state bounds of a record's keys, so plain JSON Schema does.
  { maxProperties: bounds.tags, propertyNames: { minLength: 1, maxLength: bounds.tagKeyLength } },
);
const ExtensionSelectors = Type.Array(Selector, { maxItems: bounds.extensions });
/** Fields that a caller may send both for a pool's browsers and for one created on demand. */
const browserFields = {
  browser_policy: Type.Optional(BrowserPolicy),
  chrome_policy: Type.Optional(BrowserPolicy),
  engine: Type.Optional(Type.Enum([...engines])),
  extensions: Type.Optional(ExtensionSelectors),
  headless: Type.Optional(Type.Boolean()),
  kiosk_mode: Type.Optional(Type.Boolean()),
  memory: Type.Optional(Type.Enum([...memoryClasses])),
  network: Type.Optional(Network),
  profile: Type.Optional(ProfileSelector),
  protect_filled: Type.Optional(
    Type.Boolean({ description: "Clients read back no page that a vault has filled (docs/vault.md)" }),
  ),
  proxy_id: Type.Optional(text(255)),
  start_url: Type.Optional(StartUrl),
  stealth: Type.Optional(Type.Boolean()),
  telemetry: Type.Optional(Type.Union([Telemetry, Type.Null()])),
  timeout_seconds: Type.Optional(TimeoutSeconds),
  /** Its pages may be filled from these. */
  vaults: Type.Optional(Type.Array(Selector, { maxItems: bounds.vaults })),
  viewport: Type.Optional(Viewport),
};
const poolFields = {
  ...browserFields,
  node_selector: Type.Optional(NodeSelector),
  fill_rate_per_minute: Type.Optional(Type.Number({ minimum: 0 })),
  refresh_on_profile_update: Type.Optional(Type.Boolean()),
  reset_on_release: Type.Optional(Type.Enum([...resets])),
};

/** The body of POST /browser_pools (docs/api.md#pools). */
export const PoolCreate = Type.Object(
  {
    ...poolFields,
    name: Type.Optional(Name),
    region: Type.Optional(Type.Enum([...regions])),
    size: Type.Integer({ minimum: 1, maximum: bounds.poolSize }),
  },
  closed,
);
/**
 * The body of PATCH /browser_pools/{id_or_name} (docs/api.md#changing-a-pool). An empty name changes nothing.
 */
export const PoolPatch = Type.Object(
  {
    ...poolFields,
    discard_all_idle: Type.Optional(Type.Boolean()),
    expected_network: Type.Optional(Network),
    name: Type.Optional(Type.String({ pattern: bounds.clearableNamePattern })),
    size: Type.Optional(Type.Integer({ minimum: 1, maximum: bounds.poolSize })),
  },
  closed,
);
export const ProxyChoice = Type.Object(
  {
    mode: Type.Optional(Type.Enum(["direct", "default"])),
    id: Type.Optional(text(255)),
    name: Type.Optional(text(255)),
  },
  closed,
);
/** The body of POST /browsers (docs/api.md#sessions). */
export const SessionCreate = Type.Object(
  {
    ...browserFields,
    gpu: Type.Optional(Type.Boolean()),
    invocation_id: Type.Optional(text(255)),
    name: Type.Optional(Name),
    proxy: Type.Optional(ProxyChoice),
    region: Type.Optional(Type.Enum([...regions])),
    tags: Type.Optional(Tags),
    video_memory: Type.Optional(Type.Enum(["2GiB", "4GiB"])),
  },
  closed,
);
/** The body of PATCH /browsers/{id_or_name} (docs/api.md#sessions). */
export const SessionPatch = Type.Object(
  {
    disable_default_proxy: Type.Optional(Type.Boolean()),
    name: Type.Optional(Type.String({ pattern: bounds.clearableNamePattern })),
    network: Type.Optional(
      Type.Object(
        {
          allowed_hosts: Type.Optional(
            Type.Union([
              Type.Array(Type.String({ minLength: 1, maxLength: 253 }), { maxItems: 100 }),
              Type.Null(),
            ]),
          ),
        },
        closed,
      ),
    ),
    profile: Type.Optional(ProfileSelector),
    proxy: Type.Optional(ProxyChoice),
    proxy_id: Type.Optional(text(255)),
    start_url: Type.Optional(StartUrl),
    tags: Type.Optional(Tags),
    telemetry: Type.Optional(Type.Union([Telemetry, Type.Null()])),
    viewport: Type.Optional(
      Type.Object({ ...Viewport.properties, force: Type.Optional(Type.Boolean()) }, closed),
    ),
  },
  closed,
);
/** The body of POST /browser_pools/{id_or_name}/acquire (docs/api.md#acquire). */
export const AcquireBody = Type.Object(
  {
    acquire_timeout_seconds: Type.Optional(Type.Integer({ minimum: 0, maximum: 3600 })),
    name: Type.Optional(Name),
    profile: Type.Optional(ProfileSelector),
    protect_filled: browserFields.protect_filled,
    start_url: Type.Optional(StartUrl),
    tags: Type.Optional(Tags),
    telemetry: Type.Optional(Type.Union([Telemetry, Type.Null()])),
  },
  closed,
);
export const ReleaseBody = Type.Object(
  {
    session_id: Type.String({ minLength: 1, maxLength: 255 }),
    reuse: Type.Optional(Type.Boolean()),
    lease_id: Type.Optional(text(255)),
  },
  closed,
);

export type PoolCreate = Static<typeof PoolCreate>;
export type PoolPatch = Static<typeof PoolPatch>;
export type SessionCreate = Static<typeof SessionCreate>;
export type SessionPatch = Static<typeof SessionPatch>;
export type AcquireBody = Static<typeof AcquireBody>;
export type ReleaseBody = Static<typeof ReleaseBody>;
export type ProxyChoice = Static<typeof ProxyChoice>;
export type Selector = Static<typeof Selector>;
