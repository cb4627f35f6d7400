import type { Millis } from "../base/clock.js";
import type { BrowserId, LeaseId, PoolId, ProfileId } from "../base/ids.js";
import type { Browser, RetireReason, TrafficUsage } from "./browser.js";
import type { LaunchTemplate } from "../spec/launch-template.js";
import type { ProfileFacts } from "../registry/profiles/selectors.js";
import type { LoadedProfile } from "./session-profile.js";

/** What a session (docs/api.md#sessions) is made from while it is leased. */
export interface Session {
  readonly browser: Browser;
  readonly launch: LaunchTemplate;
  readonly pool?: { readonly id: PoolId; readonly name?: string };
  /** What the proxy in force is called now; absent where there is none, or it has no name. */
  readonly proxyName?: string;
  /** The profile in force; `facts` as they are now, absent where it was deleted since. */
  readonly profile?: LoadedProfile & { readonly facts?: ProfileFacts };
  /** Redis's time at the reading, for `usage.uptime_ms`. */
  readonly at: Millis;
}

/** What is kept of a session that is over: at most 1 KiB, for a day. */
export interface Tombstone {
  readonly id: BrowserId;
  readonly lease: LeaseId;
  readonly deletedAt: Millis;
  readonly createdAt: Millis;
  readonly reason: RetireReason;
  readonly headless: boolean;
  readonly stealth: boolean;
  readonly kiosk_mode: boolean;
  readonly memory: LaunchTemplate["memory"];
  readonly timeoutSeconds: number;
  readonly name?: string;
  /** JSON text; left out where it would not fit. */
  readonly tags?: string;
  /** Absent where nothing was counted. */
  readonly usage?: TrafficUsage;
  readonly pool?: { readonly id: PoolId; readonly name?: string };
  readonly profileId?: ProfileId;
}
