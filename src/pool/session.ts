import { type Static, Type } from "typebox";
import type { Millis } from "../base/clock.js";
import { BrowserId, LeaseId, PoolId, ProfileId, VaultId } from "../base/ids.js";
import { parserOf, readonlyList } from "../base/parser.js";
import { memoryClasses, type Telemetry, Viewport } from "../spec/bodies.js";
import { type LeasedBrowser, retireReasons, TrafficUsage } from "./browser.js";
import type { LaunchTemplate } from "../spec/launch-template.js";
import type { ProfileFacts } from "../registry/profiles/selectors.js";
import type { CapturingLease } from "../spec/caller.js";
import type { LoadedProfile } from "./session-profile.js";

/** What a session (docs/api.md#sessions) is made from while it is leased. */
export interface Session {
  readonly browser: LeasedBrowser;
  readonly launch: LaunchTemplate;
  readonly pool?: { readonly id: PoolId; readonly name?: string };
  /** What its holder has captured; absent where that is nothing. */
  readonly telemetry?: Telemetry;
  /** What the proxy in force is called now; absent where there is none, or it has no name. */
  readonly proxyName?: string;
  /** The profile in force; `facts` as they are now, absent where it was deleted since. */
  readonly profile?: LoadedProfile & { readonly facts?: ProfileFacts };
  /** Redis's time at the reading, for `usage.uptime_ms`. */
  readonly at: Millis;
}

/** The lease among whose events a call that manages this session is told. */
export const capturingLease = ({ browser, telemetry }: Session): CapturingLease => ({
  browser: browser.id,
  lease: browser.lease.id,
  telemetry,
  trace: browser.lease.trace,
});

/** Texts of a lease's record, which Lua passes on as they came. */
export const tagsParser = parserOf("the tags of a session", Type.Record(Type.String(), Type.String()));
export const viewportParser = parserOf("the viewport of a session", Type.Required(Viewport));

/** What is kept of a session that is over, for a day: at most 1 KiB, and 2 KiB where it had vaults. */
const TombstoneRecord = Type.Object({
  id: BrowserId,
  lease: LeaseId,
  deletedAt: Type.Number(),
  createdAt: Type.Number(),
  reason: Type.Enum([...retireReasons]),
  headless: Type.Boolean(),
  stealth: Type.Boolean(),
  kiosk_mode: Type.Boolean(),
  memory: Type.Enum([...memoryClasses]),
  timeoutSeconds: Type.Number(),
  name: Type.Optional(Type.String()),
  /** JSON text; left out where it would not fit. */
  tags: Type.Optional(Type.String()),
  /** Absent where nothing was counted. */
  usage: Type.Optional(TrafficUsage),
  /** The usage is the last that comes. */
  isCounted: Type.Optional(Type.Boolean()),
  profileId: Type.Optional(ProfileId),
  /** A read of it is judged by these as one of the session was; absent where it had none. */
  vaultIds: Type.Optional(readonlyList(VaultId)),
  poolId: Type.Optional(PoolId),
  poolName: Type.Optional(Type.String()),
});
export type Tombstone = Readonly<Omit<Static<typeof TombstoneRecord>, "poolId" | "poolName">> &
  Pick<Session, "pool">;

/** What a policy judges a read of a tombstone by, which gives nobody more than one of the session did. */
export const guardedBy = ({ id, profileId, vaultIds = [] }: Tombstone) => ({
  id,
  ...(profileId && { profile: { id: profileId, save: false } }),
  vaults: vaultIds,
});

const tombstoneParser = parserOf("what is kept of a session", TombstoneRecord);
export function parseTombstone(text: string): Tombstone {
  const { poolId, poolName, ...tombstone } = tombstoneParser.json(text);
  return {
    ...tombstone,
    ...(poolId && { pool: { id: poolId, ...(poolName !== undefined && { name: poolName }) } }),
  };
}
