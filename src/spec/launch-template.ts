import { type Static, Type } from "typebox";
import { ExtensionId, ProfileId, VaultId } from "../base/ids.js";
import { readonlyList } from "../base/parser.js";
import {
  BrowserPolicy,
  engines,
  memoryClasses,
  type ResetMode,
  resets,
  type Telemetry,
  type Viewport,
} from "./bodies.js";

/** The default viewport; it is refreshed at 25 Hz (docs/api.md#sessions). */
export const defaultViewport = { width: 1920, height: 1080 } as const;

/**
 * The rate to use where none was sent: 10 above 1920x1200 pixels, 25 above 1280x800, else 60
 * (docs/api.md#sessions).
 */
export function refreshRateOf(viewport: Viewport): number {
  if (viewport.refresh_rate !== undefined) return viewport.refresh_rate;
  const pixels = viewport.width * viewport.height;
  if (pixels > 1920 * 1200) return 10;
  return pixels > 1280 * 800 ? 25 : 60;
}

/** A selector as requests have it, but without their bounds: those may change while a record exists. */
const Chosen = Type.Object({ id: Type.Optional(Type.String()), name: Type.Optional(Type.String()) });
const Hosts = Type.Array(Type.String());
const StoredNetwork = Type.Object({
  allowed_hosts: Type.Optional(Hosts),
  private_hosts: Type.Optional(Hosts),
  proxy_routes: Type.Optional(Type.Array(Type.Object({ hosts: Hosts, proxy: Chosen }))),
});
const launchFields = {
  headless: Type.Boolean(),
  stealth: Type.Boolean(),
  kiosk_mode: Type.Boolean(),
  engine: Type.Enum([...engines]),
  memory: Type.Enum([...memoryClasses]),
  viewport: Type.Object({ width: Type.Number(), height: Type.Number(), refresh_rate: Type.Number() }),
  start_url: Type.Optional(Type.String()),
  browser_policy: Type.Optional(BrowserPolicy),
  extensions: Type.Optional(readonlyList(Chosen)),
  profile: Type.Optional(Type.Object({ ...Chosen.properties, save_changes: Type.Optional(Type.Boolean()) })),
  /** The ids of what `extensions` names, in load order; absent where there are none. */
  extension_ids: Type.Optional(readonlyList(ExtensionId)),
  /** The id of what `profile` names. */
  profile_id: Type.Optional(ProfileId),
  vaults: Type.Optional(readonlyList(Chosen)),
  /** The ids of what `vaults` names: its pages may be filled from these. */
  vault_ids: Type.Optional(readonlyList(VaultId)),
  /** Set where clients may not read pages that a vault has filled. */
  protect_filled: Type.Optional(Type.Literal(true)),
  proxy_id: Type.Optional(Type.String()),
  /** Set where a session asked for no proxy, or for the operator's, instead of a proxy of the registry. */
  proxy_mode: Type.Optional(Type.Enum(["direct", "default"])),
  network: Type.Optional(StoredNetwork),
  /** What its leases capture unless they say otherwise. */
  telemetry: Type.Optional(Type.Unsafe<Telemetry>(Type.Object({}))),
  /** Labels that a node must have to launch it; only browsers of pools have such a selector. */
  node_selector: Type.Optional(Type.Record(Type.String(), Type.String())),
};

/**
 * Everything that a browser is launched from. It never changes, and Redis keeps it under a key that browsers
 * name.
 */
export const LaunchTemplate = Type.Object(launchFields);
export type LaunchTemplate = Readonly<Static<typeof LaunchTemplate>>;

/**
 * A pool's whole specification: `browser_pool_config` with every default applied and without the values that
 * clear a field.
 */
export const PoolSpec = Type.Object({
  ...launchFields,
  size: Type.Number(),
  fill_rate_per_minute: Type.Number(),
  timeout_seconds: Type.Number(),
  reset_on_release: Type.Enum([...resets]),
  name: Type.Optional(Type.String()),
  refresh_on_profile_update: Type.Optional(Type.Boolean()),
  /**
   * True where the caller has named the engine. Otherwise another engine is taken where this one can not do
   * what is asked for. It is not shown.
   */
  is_engine_named: Type.Optional(Type.Literal(true)),
});
export type PoolSpec = Readonly<Static<typeof PoolSpec>>;

/**
 * How a pool's browsers are made ready for the next holder. One that started from a profile can not be
 * cleared, since that would not bring the profile's state back.
 */
export const resetModeOf = ({
  reset_on_release,
  profile_id,
}: Pick<PoolSpec, "reset_on_release" | "profile_id">): ResetMode =>
  reset_on_release === "state" && profile_id !== undefined ? "relaunch" : reset_on_release;
