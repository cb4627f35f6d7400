import { type Static, Type } from "typebox";
import { BrowserId, ClaimId, LeaseId, NodeId, PoolId, ProfileId, VaultId } from "../base/ids.js";
import { knownTexts, parserOf, readonlyList } from "../base/parser.js";
import { memoryClasses } from "../spec/bodies.js";

/**
 * The states of a browser.
 *
 * - `launching`: claimed, its node is starting Chromium. Becomes idle when proved healthy.
 * - `idle`: proved healthy, not leased, may be handed out (the contract's `available_count`).
 * - `leased`: one lease holds it (the contract's `acquired_count`).
 * - `resetting`: its lease is over; its node cuts what is left of it and restores the pool's baseline.
 * - `retiring`: decided once that it is over; its node ends it and clears up. Then the record is gone.
 *
 * `store/lua/include/moves.lua` is the table of moves, and refuses any other.
 *
 * `launching`, `resetting` and `retiring` carry a claim and a deadline; past it the tick issues a new claim.
 */
export const browserStates = ["launching", "idle", "leased", "resetting", "retiring"] as const;
export type BrowserState = (typeof browserStates)[number];

/** Why a browser is over. */
export const retireReasons = [
  "launch_failed",
  "crashed",
  "unhealthy",
  "node_lost",
  "drained",
  "stopped",
  "released",
  "deleted",
  "expired",
  "flushed",
  "discarded",
  "stale_network",
  "above_size",
  "recycled",
  "not_clean",
  "altered",
  "pool_deleted",
  "reset_failed",
  "unwanted",
  "memory_exceeded",
  "storage_exceeded",
  "missing",
  "unconfirmed",
] as const;
export type RetireReason = (typeof retireReasons)[number];

/** What a PATCH asks of a lease's network. */
const networkSettings = {
  /** JSON text of `allowed_hosts`, `null` where it was removed; absent where the launch's own stands. */
  allowedHosts: Type.Optional(Type.String()),
  /** JSON text of a `ProxyChoice` by mode or id; absent where the launch's own stands. */
  proxy: Type.Optional(Type.String()),
};
export const NetworkSettings = Type.Object(networkSettings);
export type NetworkSettings = Readonly<Static<typeof NetworkSettings>>;

/** What a PATCH has changed of a lease's network; `revision` counts all such changes of a partition. */
export const NetworkChange = Type.Object({ ...networkSettings, revision: Type.Number() });
export type NetworkChange = Readonly<Static<typeof NetworkChange>>;

/** What one lease has used, as its node counted it at most one tick ago. */
export const TrafficUsage = Type.Object({
  requests: Type.Number(),
  denied: Type.Number(),
  bytesSent: Type.Number(),
  bytesReceived: Type.Number(),
});
export type TrafficUsage = Readonly<Static<typeof TrafficUsage>>;
export const noTraffic: TrafficUsage = { requests: 0, denied: 0, bytesSent: 0, bytesReceived: 0 };

/** One holder's exclusive right to one browser, as its record tells. */
const Lease = Type.Object({
  id: LeaseId,
  grantedAt: Type.Number(),
  timeoutSeconds: Type.Number(),
  name: Type.Optional(Type.String()),
  /** JSON text of a map of string to string. */
  tags: Type.Optional(Type.String()),
  startUrl: Type.Optional(Type.String()),
  /** JSON text of the viewport a PATCH has set. */
  viewport: Type.Optional(Type.String()),
  /** The change that is in force at its node. */
  network: Type.Optional(NetworkChange),
  /** The change that was asked of its node, which has not yet reported it in force. */
  networkWanted: Type.Optional(NetworkChange),
  /** JSON text of the `LoadedProfile` a PATCH has attached. */
  profile: Type.Optional(Type.String()),
  /** JSON text of the `Telemetry` by which its acquire or a PATCH changes that of the launch. */
  telemetry: Type.Optional(Type.String()),
  /** Whether its acquire has asked that pages which a vault fills are not read back. */
  protectFilled: Type.Optional(Type.Literal(true)),
  /** Greater with each PATCH of it; absent before the first. */
  telemetryRevision: Type.Optional(Type.Number()),
  /** The span of the call that it was taken with, where that is traced (base/trace-context.ts). */
  trace: Type.Optional(Type.String()),
  usage: Type.Optional(TrafficUsage),
  /** The API key that it was taken with; absent for the root key and for people. */
  holder: Type.Optional(Type.String()),
  /** The pool's name at the grant. */
  pool: Type.Optional(Type.String()),
  /**
   * The number of clients and requests that were ever registered; at 0 nothing but the API has touched the
   * browser.
   */
  registrations: Type.Number(),
});
export type Lease = Readonly<Static<typeof Lease>>;

/** What a record has in every state. All instants are Redis's `TIME` in ms. */
const always = {
  id: BrowserId,
  since: Type.Number(),
  createdAt: Type.Number(),
  node: NodeId,
  /** Key of the launch template it was started with. */
  templateKey: Type.String(),
  generation: Type.Number(),
  networkGeneration: Type.Number(),
  /** Leases served to their end. */
  served: Type.Number(),
  /** It stands by for sessions on demand of the launch template that this names (pool/standby). */
  standby: Type.Optional(Type.String()),
  /** It goes when its replacement is idle: it is old, or its node drains. */
  replaceable: Type.Optional(Type.Boolean()),
  lastError: Type.Optional(Type.String()),
  /** JSON text of `LaunchFacts`. */
  facts: Type.String(),
  lastLease: Type.Optional(LeaseId),
  lastLeaseEndedAt: Type.Optional(Type.Number()),
  /** JSON text of what isolates it, as its node reported. */
  isolation: Type.Optional(Type.String()),
};
const inState = <const State extends BrowserState>(state: State) => ({
  ...always,
  state: Type.Literal(state),
});

export const LaunchingBrowser = Type.Object({ ...inState("launching"), claim: ClaimId });
const IdleBrowser = Type.Object(inState("idle"));
const LeasedBrowser = Type.Object({ ...inState("leased"), lease: Lease });
/** `fence` is the lease to be cut. */
const ResettingBrowser = Type.Object({ ...inState("resetting"), claim: ClaimId, fence: LeaseId });
/** `saving`: what a released lease leaves of it is being saved as a profile. */
const RetiringBrowser = Type.Object({
  ...inState("retiring"),
  claim: ClaimId,
  why: Type.Enum([...retireReasons]),
  saving: Type.Optional(Type.Boolean()),
});
const AnyBrowser = Type.Union([
  LeasedBrowser,
  IdleBrowser,
  LaunchingBrowser,
  ResettingBrowser,
  RetiringBrowser,
]);

/** A browser's record, as Redis holds it: the truth. Each state has what is true in it, and no more. */
export type Browser = Readonly<Static<typeof AnyBrowser>>;
export type LaunchingBrowser = Readonly<Static<typeof LaunchingBrowser>>;
export type LeasedBrowser = Readonly<Static<typeof LeasedBrowser>>;

export const browserParser = parserOf("the record of a browser", AnyBrowser);
export const leasedParser = parserOf("the record of a leased browser", LeasedBrowser);

export const leaseOf = (browser: Browser | undefined): Lease | undefined =>
  browser?.state === "leased" ? browser.lease : undefined;

/**
 * What becomes of a browser whose node has cut a lease that the record does not name. `held`: the record does
 * name it.
 */
export type UnknownLeaseOutcome = "kept" | "retiring" | "already" | "held" | "unknown";

/** What a browser's record repeats of its launch, for the session object and the tombstone. */
const LaunchFacts = Type.Object({
  headless: Type.Boolean(),
  stealth: Type.Boolean(),
  kiosk_mode: Type.Boolean(),
  memory: Type.Enum([...memoryClasses]),
  poolId: Type.Optional(PoolId),
  profileId: Type.Optional(ProfileId),
  /** Absent where it has none. */
  vaultIds: Type.Optional(readonlyList(VaultId)),
  /** The end of the session saves its profile. */
  saves: Type.Optional(Type.Boolean()),
  /** Its leases capture something unless they say otherwise. */
  captures: Type.Optional(Type.Boolean()),
});
export type LaunchFacts = Readonly<Static<typeof LaunchFacts>>;

const factsParser = parserOf("what a record repeats of a launch", LaunchFacts);
const factsIn = knownTexts((text): LaunchFacts => factsParser.json(text));
export const launchFactsOf = (browser: Browser): LaunchFacts => factsIn(browser.facts);
