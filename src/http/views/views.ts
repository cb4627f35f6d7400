import { type Static, Type } from "typebox";
import { type Millis, timestampOf } from "../../base/clock.js";
import { knownTexts, parserOf } from "../../base/parser.js";
import type { BrowserId, LeaseId, NodeId } from "../../base/ids.js";
import { noTraffic, type TrafficUsage } from "../../pool/browser.js";
import { allowedHostsOf, proxyOf } from "../../pool/network.js";
import type { SessionOrTombstone } from "../../pool/operations.js";
import type { Page } from "../../spec/paging.js";
import type { Telemetry } from "../../spec/bodies.js";
import type { PoolSpec } from "../../spec/launch-template.js";
import type { Pool, PoolBrowser } from "../../pool/pool.js";
import { proxyFields } from "../../registry/proxies/selectors.js";
import { type Session, tagsParser, type Tombstone, viewportParser } from "../../pool/session.js";
import { profileView } from "./profile-view.js";
import type { PoolBrowserReply, PoolReply, SessionReply } from "../schemas/replies.js";
import type { TelemetryReply } from "../schemas/telemetry-replies.js";

interface Links {
  readonly cdp_ws_url: string;
  readonly webdriver_ws_url: string;
}
/** What a view needs beyond the thing it shows. */
export interface ViewContext {
  readonly region: SessionReply["region"];
  /**
   * The URLs of one lease. A lease that is over gets them as well: its gateway answers 410 with the reason.
   */
  links(browser: BrowserId, lease: LeaseId, node?: NodeId): Links;
  /** When the drain of a node ends; undefined where it does not drain, as far as is known here. */
  drainsUntil(node: NodeId): Millis | undefined;
}

/** A pool as docs/api.md#pools has it. */
export const poolView = (pool: Pool, { region }: ViewContext): PoolReply => ({
  id: pool.id,
  ...(pool.name !== undefined && { name: pool.name }),
  region,
  created_at: timestampOf(pool.createdAt),
  acquired_count: pool.counts.leased,
  available_count: pool.counts.idle,
  launching_count: pool.counts.launching,
  resetting_count: pool.counts.resetting,
  stale_count: pool.counts.stale,
  waiting_count: pool.counts.waiting,
  ...(pool.fill && { fill: fillView(pool.fill) }),
  extension_ids: [...(pool.spec.extension_ids ?? [])],
  ...(pool.spec.profile_id && { profile_id: pool.spec.profile_id }),
  browser_pool_config: configView(pool.spec),
});

const fillView = ({
  reason,
  fields,
  last_error,
}: NonNullable<Pool["fill"]>): NonNullable<PoolReply["fill"]> => ({
  reason,
  ...(fields && { fields: [...fields] }),
  ...(last_error !== undefined && { last_error }),
});

type ConfigReply = PoolReply["browser_pool_config"];
const configFields = [
  "size",
  "name",
  "browser_policy",
  "engine",
  "extensions",
  "fill_rate_per_minute",
  "headless",
  "kiosk_mode",
  "memory",
  "network",
  "node_selector",
  "profile",
  "protect_filled",
  "proxy_id",
  "refresh_on_profile_update",
  "reset_on_release",
  "start_url",
  "stealth",
  "timeout_seconds",
  "vaults",
  "viewport",
] as const satisfies readonly (keyof PoolSpec)[];

function configView(spec: PoolSpec): ConfigReply {
  const present = configFields
    .filter((field) => spec[field] !== undefined)
    .map((field) => [field, spec[field]]);
  const telemetry = spec.telemetry && { telemetry: telemetryView(spec.telemetry) };
  return { ...Object.fromEntries(present), ...telemetry } as ConfigReply;
}

/** The destination of an export is shown as a string. */
function telemetryView(telemetry: Telemetry): TelemetryReply {
  const otlp = telemetry.export?.otlp;
  if (!otlp?.destination) return telemetry as TelemetryReply;
  const { enabled, destination } = otlp;
  const shown = {
    ...(enabled !== undefined && { enabled }),
    destination: destination.id ?? destination.name,
  };
  return { ...telemetry, export: { otlp: shown } } as TelemetryReply;
}

export const poolBrowserView = (browser: PoolBrowser): PoolBrowserReply => ({
  session_id: browser.id,
  state: browser.state,
  node: browser.node,
  generation: browser.generation,
  stale: browser.stale,
  age_ms: Math.max(0, Math.round(browser.ageMs)),
  leases_served: browser.served,
  ...(browser.lastError !== undefined && { last_error: browser.lastError }),
});

/**
 * A session as docs/api.md#sessions has it. `created_at` and the uptime are the session's, which lives
 * through all its leases.
 */
export function sessionView(session: Session, { region, links, drainsUntil }: ViewContext): SessionReply {
  const { browser, launch, pool, at } = session;
  const { lease } = browser;
  const start = lease.startUrl ?? launch.start_url;
  const isolation = isolationOf(browser.isolation);
  const until = drainsUntil(browser.node);
  return {
    session_id: browser.id,
    created_at: timestampOf(browser.createdAt),
    ...links(browser.id, lease.id, browser.node),
    region,
    stealth: launch.stealth,
    headless: launch.headless,
    memory: launch.memory,
    timeout_seconds: lease.timeoutSeconds,
    ...(until !== undefined && { drains_until: timestampOf(until) }),
    kiosk_mode: launch.kiosk_mode,
    ...((launch.protect_filled ?? lease.protectFilled) && { protect_filled: true }),
    engine: launch.engine,
    lease_id: lease.id,
    ...(lease.name !== undefined && { name: lease.name }),
    ...(lease.tags !== undefined && { tags: tagsParser.json(lease.tags) }),
    ...(start !== undefined && { start_url: start }),
    viewport: lease.viewport === undefined ? launch.viewport : viewportParser.json(lease.viewport),
    ...(pool && { pool }),
    ...echoes(session),
    ...sessionProfile(session),
    ...networkView(session, isolation),
    usage: { uptime_ms: Math.max(0, at - browser.createdAt), ...usageView(lease.usage) },
    ...(browser.isolation !== undefined && { isolation }),
  };
}

/** What is in force, and what was proved of it before the browser was handed out. */
function networkView(
  { browser, launch, proxyName }: Session,
  { network: isolation, attested }: ReportedIsolation,
): Pick<SessionReply, "network" | "proxy" | "proxy_id"> {
  const { private_hosts, proxy_routes } = launch.network ?? {};
  const allowed = allowedHostsOf(launch, browser.lease);
  return {
    network: {
      ...(allowed && { allowed_hosts: [...allowed] }),
      ...(private_hosts && { private_hosts }),
      ...(proxy_routes && { proxy_routes }),
      ...(isolation && { isolation }),
      ...(attested && { attested }),
      generation: browser.networkGeneration,
    },
    ...proxyFields(proxyOf(launch, browser.lease), proxyName),
  };
}

/** The isolation that the browser's node has reported. */
const ReportedIsolation = Type.Object({
  network: Type.Optional(Type.Enum(["namespace", "proxy", "none"])),
  attested: Type.Optional(Type.String()),
});
type ReportedIsolation = Readonly<Static<typeof ReportedIsolation>>;
const isolationParser = parserOf("what isolates a browser", ReportedIsolation);
const isolationIn = knownTexts((text): ReportedIsolation => isolationParser.json(text));
const isolationOf = (text = "{}"): ReportedIsolation => isolationIn(text);

const usageView = ({ requests, denied, bytesSent, bytesReceived }: TrafficUsage = noTraffic): Omit<
  SessionReply["usage"] & object,
  "uptime_ms"
> => ({ requests, denied, bytes_sent: bytesSent, bytes_received: bytesReceived });

/** Shows only the id of a profile that was deleted since. */
const sessionProfile = ({ profile }: Session): Pick<SessionReply, "profile" | "profile_save_changes"> =>
  profile
    ? {
        profile: profile.facts ? profileView(profile.facts) : { id: profile.id },
        profile_save_changes: profile.save,
      }
    : {};

const echoes = ({
  launch: { browser_policy, vault_ids },
  telemetry,
}: Session): Pick<SessionReply, "browser_policy" | "telemetry" | "vaults"> => ({
  ...(browser_policy && { browser_policy }),
  ...(vault_ids && { vaults: vault_ids.map((id) => ({ id })) }),
  ...(telemetry && { telemetry: telemetryView(telemetry) }),
});

const tombstoneView = (dead: Tombstone, { region, links }: ViewContext): SessionReply => ({
  session_id: dead.id,
  created_at: timestampOf(dead.createdAt),
  ...links(dead.id, dead.lease),
  region,
  stealth: dead.stealth,
  headless: dead.headless,
  memory: dead.memory,
  timeout_seconds: dead.timeoutSeconds,
  kiosk_mode: dead.kiosk_mode,
  lease_id: dead.lease,
  ...(dead.name !== undefined && { name: dead.name }),
  ...(dead.tags !== undefined && { tags: tagsParser.json(dead.tags) }),
  ...(dead.pool && { pool: dead.pool }),
  usage: { uptime_ms: Math.max(0, dead.deletedAt - dead.createdAt), ...usageView(dead.usage) },
  deleted_at: timestampOf(dead.deletedAt),
  usage_status: "ready",
  reason: dead.reason,
});

export const anySessionView = (found: SessionOrTombstone, context: ViewContext): SessionReply =>
  found.kind === "session" ? sessionView(found.session, context) : tombstoneView(found.tombstone, context);

/**
 * A page that has more without saying where it goes on makes the official client throw (docs/api.md#lists).
 */
export const pagingHeaders = (
  page: Page<unknown>,
  asked: { limit: number; offset: number },
): Record<string, string> => ({
  "x-has-more": String(page.hasMore),
  "x-next-offset": String(page.nextOffset),
  "x-limit": String(asked.limit),
  "x-offset": String(asked.offset),
});
