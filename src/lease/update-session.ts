import type { Millis } from "../base/clock.js";
import { type Detail, done, type Done, refusal, type Refusal } from "../base/errors.js";
import { newRequestId, partitionOf } from "../base/ids.js";
import type { NodeReply, NodeRequest, RunningChange } from "../pool/ports/messages.js";
import type { LeasedBrowser } from "../pool/browser.js";
import type { SessionPatch } from "../spec/bodies.js";
import type { SessionReader } from "../pool/launch-templates.js";
import {
  checkNetwork,
  checkProxy,
  checkSelector,
  checkStartHost,
  checkStartUrl,
  fieldFault,
} from "../spec/field-checks.js";
import { findSession, findTombstone } from "../pool/lookup.js";
import { refreshRateOf } from "../spec/launch-template.js";
import type { SessionOrTombstone } from "../pool/operations.js";
import type { Caller } from "../spec/caller.js";
import { allowedHostsOf } from "../pool/network.js";
import type { PoolStore, LeaseChange } from "../pool/ports/pool-store.js";
import type { ProjectStore } from "../pool/ports/project-store.js";
import type { NodeReports } from "../pool/ports/node-reports.js";
import { checkTelemetry } from "../spec/telemetry.js";
import { checkWebRtc } from "../spec/policies/policy-checks.js";
import type { LoadedProfile } from "../pool/session-profile.js";
import { type References, resolveReferences } from "../registry/references.js";
import { capturingLease, type Session } from "../pool/session.js";
import { askNetwork, changeNetwork, networkOf } from "./change-network.js";
import { changeTelemetry } from "./telemetry/change-telemetry.js";
import { changeRunning, refusedProfile } from "./change-running.js";
import {
  networkInForce,
  rethrowUnlessStoreAway,
  withBrowserChanged,
  withNetworkInForce,
} from "./refused-change.js";

interface UpdateSessionPorts extends References {
  readonly poolStore: PoolStore;
  readonly projects: ProjectStore;
  readonly sessionReader: SessionReader;
  readonly reports: Pick<NodeReports, "applied">;
  /** The browser's node ends Chromium and starts it again within. */
  readonly restartLimitMs: Millis;
  /** Asks the browser's node to do something for this lease; waits for its answer within a limit. */
  askNode(browser: LeasedBrowser, what: NodeRequest, limitMs?: Millis): Promise<NodeReply>;
}

/** GET /browsers/{id_or_name}: leased browsers; what is kept of those that are over only where asked for. */
export const makeGetSession =
  (ports: UpdateSessionPorts) =>
  async (ref: string, options: { includeDeleted: boolean }): Promise<Done<SessionOrTombstone> | Refusal> => {
    const found = await findSession(ports, ref);
    const session = found && (await ports.sessionReader.findSession(found.browser, found.at));
    if (session) return done({ kind: "session", session });
    const tombstone = options.includeDeleted ? await findTombstone(ports.projects, ref) : undefined;
    return tombstone ? done({ kind: "deleted", tombstone }) : refusal("browser_not_found");
  };

/**
 * PATCH /browsers/{id_or_name} changes a lease's name and tags, its start page, viewport and profile, what it
 * may reach and through which proxy.
 */
export const makeUpdateSession =
  (ports: UpdateSessionPorts) =>
  async (ref: string, body: SessionPatch, caller: Caller): Promise<Done<Session> | Refusal> => {
    const { proxy_id, profile } = body;
    const {
      body: { proxy, profile_id, telemetry },
      faults,
    } = await resolveReferences(ports, { proxy: body.proxy, proxy_id, profile, telemetry: body.telemetry });
    const patch = { ...body, ...(proxy && { proxy }), ...(telemetry && { telemetry }) };
    const refused = refusedPatch(patch, faults);
    if (refused) return refused;
    const found = await findSession(ports, ref);
    const session = found && (await ports.sessionReader.findSession(found.browser, found.at));
    if (!session) return refusal("browser_not_found");
    const { browser } = session;
    if (caller.lease && caller.lease !== browser.lease.id) return refusal("lease_superseded");
    caller.concerns?.(capturingLease(session));
    const wanted = profile_id && { id: profile_id, save: profile?.save_changes ?? false };
    return (
      refusedHosts(session, patch) ??
      refusedProfile(session, wanted, caller) ??
      (await withName(ports, { session, patch, wanted, caller }))
    );
  };

interface SessionChange {
  readonly session: Session;
  readonly patch: SessionPatch;
  readonly wanted: LoadedProfile | undefined;
  readonly caller: Caller;
}

function refusedPatch(patch: SessionPatch, named: readonly Detail[]): Refusal | undefined {
  const faults: Detail[] = [...named];
  checkStartUrl(faults, patch.start_url ?? "");
  checkNetwork(faults, listed(patch.network));
  checkTelemetry(faults, patch.telemetry);
  if (patch.profile) checkSelector(faults, "profile", patch.profile);
  if (patch.proxy) checkProxy(faults, patch.proxy);
  if (patch.proxy && patch.proxy_id) fieldFault(faults, "proxy", "cannot be combined with proxy_id");
  return faults.length > 0 ? refusal("bad_request", { details: faults }) : undefined;
}

/** `null` removes the list. */
const listed = (network: SessionPatch["network"]): { allowed_hosts?: string[] } =>
  network?.allowed_hosts ? { allowed_hosts: network.allowed_hosts } : {};

/** Checks hosts against the list that will be in force, and against the policy that is. */
function refusedHosts({ browser, launch }: Session, patch: SessionPatch): Refusal | undefined {
  const faults: Detail[] = [];
  const allowed =
    patch.network?.allowed_hosts === undefined
      ? allowedHostsOf(launch, browser.lease)
      : patch.network.allowed_hosts;
  checkStartHost(faults, patch.start_url, allowed ? { allowed_hosts: [...allowed] } : undefined);
  checkWebRtc(faults, launch.browser_policy, listed(patch.network));
  return faults.length > 0 ? refusal("bad_request", { details: faults }) : undefined;
}

/**
 * A new name is reserved first, and given back where the change is refused; the old one goes with the change.
 */
async function withName(ports: UpdateSessionPorts, change: SessionChange): Promise<Done<Session> | Refusal> {
  const {
    session: {
      browser: { id, lease },
    },
    patch: { name },
  } = change;
  if (!name || name === lease.name) return await changeBrowser(ports, change);
  const owner = lease.id;
  const reserve = () =>
    ports.projects.reserveName({ kind: "session", name, owner, partition: partitionOf(id) });
  const reserved = await reserve();
  if (!reserved) return refusal("name_taken");
  const outcome = await changeBrowser(ports, change);
  // A refused PATCH to this very name may have given it back meanwhile.
  if (outcome.kind === "done") await reserve();
  // Another PATCH may have given the lease this very name meanwhile.
  const isUnused = async (): Promise<boolean> =>
    (await ports.poolStore.findHeld(partitionOf(id), owner))?.browser.lease.name !== name;
  const giveBack = async (): Promise<void> =>
    void (
      (await isUnused()) && (await ports.projects.freeName({ kind: "session", name, owner, only: reserved }))
    );
  // A reservation that cannot be given back now is void when its time is up. The caller still has to learn
  // why the change was refused.
  if (outcome.kind === "refused") await giveBack().catch(rethrowUnlessStoreAway);
  return outcome;
}

/**
 * Changes first what the browser may refuse, all of it or nothing, then the record, and the start page last,
 * since only its dispatch is waited for. A refusal that comes after the browser has changed tells so. Where
 * nothing but the network is to change, the node refuses it when the record asks for it.
 */
async function changeBrowser(
  ports: UpdateSessionPorts,
  change: SessionChange,
): Promise<Done<Session> | Refusal> {
  const {
    session: { browser, profile },
    patch,
    wanted,
  } = change;
  const network = networkOf(patch);
  const attached = profile ? undefined : wanted;
  const isRunning = Boolean(patch.viewport ?? attached);
  const refused = isRunning
    ? await changeRunning(ports, browser, {
        ...runningOf(patch),
        ...(attached && { profile: attached }),
        ...(network && { network }),
      })
    : await changeNetwork(ports, browser, network);
  if (refused) return refused;
  const isInForce = network !== undefined && !isRunning;
  const record = async (): Promise<Done<Session> | Refusal> => {
    const unheard = await askTelemetry(ports, change, attached);
    if (unheard) return isInForce ? { ...unheard, details: [networkInForce] } : unheard;
    return await changeRecord(ports, change, { attached, network: isRunning ? network : undefined });
  };
  if (isRunning) return await withBrowserChanged(record);
  return isInForce ? await withNetworkInForce(record) : await record();
}

/**
 * Comes before the record: where the node does not answer, nothing more is changed. What the browser has
 * taken by then is noted first, since it is so.
 */
async function askTelemetry(
  ports: UpdateSessionPorts,
  { session, patch: { viewport, telemetry } }: SessionChange,
  attached: LoadedProfile | undefined,
): Promise<Refusal | undefined> {
  if (!telemetry) return undefined;
  const { browser } = session;
  if (viewport || attached) {
    const noted = await ports.poolStore.touch(partitionOf(browser.id), {
      browser: browser.id,
      change: touchOf(viewport ? { viewport } : {}, attached, undefined),
      request: newRequestId(),
      lease: browser.lease.id,
    });
    if (noted.kind !== "touched") return goneMeanwhile(noted);
  }
  return await changeTelemetry(ports, session, telemetry);
}

const goneMeanwhile = ({ kind }: { readonly kind: string }): Refusal =>
  refusal(kind === "superseded" ? "lease_superseded" : "browser_not_found");

interface Recorded {
  readonly attached: LoadedProfile | undefined;
  /** What the record has still to ask for, and the node to put in force. */
  readonly network: LeaseChange["network"];
}

async function changeRecord(
  ports: UpdateSessionPorts,
  { session, patch, caller }: SessionChange,
  { attached, network }: Recorded,
): Promise<Done<Session> | Refusal> {
  const { browser } = session;
  const reply = await ports.poolStore.touch(partitionOf(browser.id), {
    browser: browser.id,
    change: touchOf(patch, attached, network),
    request: caller.request,
    lease: browser.lease.id,
  });
  if (reply.kind !== "touched") return goneMeanwhile(reply);
  const late = network && (await askNetwork(ports, reply.browser));
  if (late) return late;
  if (patch.start_url)
    await ports.askNode(reply.browser, { kind: "navigate", url: patch.start_url }).catch(() => {});
  if (!network) return await shown(ports, reply);
  // What its node has put in force since is part of the answer.
  return await withNetworkInForce(async () =>
    shown(ports, await ports.poolStore.findHeld(partitionOf(browser.id), browser.lease.id)),
  );
}

async function shown(
  { sessionReader }: UpdateSessionPorts,
  found: { readonly browser: LeasedBrowser; readonly at: Millis } | undefined,
): Promise<Done<Session> | Refusal> {
  const session = found && (await sessionReader.findSession(found.browser, found.at));
  return session ? done(session) : refusal("browser_not_found");
}

const runningOf = ({ viewport }: SessionPatch): RunningChange =>
  viewport ? { viewport: { width: viewport.width, height: viewport.height } } : {};

function touchOf(
  { name, tags, start_url, viewport }: SessionPatch,
  profile: LoadedProfile | undefined,
  network: LeaseChange["network"],
): LeaseChange {
  const hasTags = tags !== undefined && Object.keys(tags).length > 0;
  const rate = viewport && {
    width: viewport.width,
    height: viewport.height,
    refresh_rate: refreshRateOf(viewport),
  };
  return {
    set: {
      ...(name ? { name } : {}),
      ...(hasTags ? { tags: JSON.stringify(tags) } : {}),
      ...(start_url ? { startUrl: start_url } : {}),
      ...(rate ? { viewport: JSON.stringify(rate) } : {}),
      ...(profile ? { profile: JSON.stringify(profile) } : {}),
    },
    clear: [...(name === "" ? ["name"] : []), ...(tags !== undefined && !hasTags ? ["tags"] : [])],
    touched: Boolean(viewport) || Boolean(start_url),
    ...(network && { network }),
  };
}
