import type { ExtensionId, ProfileId } from "../base/ids.js";
import type { MemoryClass, Network, ResetMode, Selector, Telemetry, Viewport } from "./bodies.js";

/** The viewport in force: the default is 1920x1080 at 25 (docs/api.md#sessions). */
export const defaultViewport = { width: 1920, height: 1080 } as const;

/** docs/api.md#sessions: an omitted rate is 10 above 1920x1200 pixels, 25 above 1280x800, else 60. */
export function refreshRateOf(viewport: Viewport): number {
  if (viewport.refresh_rate !== undefined) return viewport.refresh_rate;
  const pixels = viewport.width * viewport.height;
  if (pixels > 1920 * 1200) return 10;
  return pixels > 1280 * 800 ? 25 : 60;
}

/** Everything a browser is launched from; immutable, kept in Redis under a key that browsers name. */
export interface LaunchTemplate {
  readonly headless: boolean;
  readonly stealth: boolean;
  readonly kiosk_mode: boolean;
  readonly engine: "chromium" | "headless-shell";
  readonly memory: MemoryClass;
  readonly viewport: Required<Viewport>;
  readonly start_url?: string;
  readonly browser_policy?: Record<string, unknown>;
  readonly extensions?: readonly Selector[];
  readonly profile?: Selector & { readonly save_changes?: boolean };
  /** What `extensions` names, in load order; absent where there is none. */
  readonly extension_ids?: readonly ExtensionId[];
  /** What `profile` names. */
  readonly profile_id?: ProfileId;
  readonly proxy_id?: string;
  /** Of a session that asked for no proxy of the registry by name or id, but for one of these. */
  readonly proxy_mode?: "direct" | "default";
  readonly network?: Network;
  readonly telemetry?: Telemetry;
}

/** A pool's whole configuration: `browser_pool_config` with every default applied, clearing values gone. */
export interface PoolSpec extends LaunchTemplate {
  readonly size: number;
  readonly fill_rate_per_minute: number;
  readonly timeout_seconds: number;
  readonly reset_on_release: ResetMode;
  readonly name?: string;
  readonly refresh_on_profile_update?: boolean;
  /** A caller has named the engine: else it gives way where it cannot do what is asked for. Not shown. */
  readonly is_engine_named?: true;
}

/**
 * How its browsers are made ready for the next holder: clearing one that started from a profile would not
 * bring that state back.
 */
export const resetModeOf = ({
  reset_on_release,
  profile_id,
}: Pick<PoolSpec, "reset_on_release" | "profile_id">): ResetMode =>
  reset_on_release === "state" && profile_id !== undefined ? "relaunch" : reset_on_release;
