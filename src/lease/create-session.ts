import type { Clock, Millis } from "../base/clock.js";
import { refusal, type Refusal } from "../base/errors.js";
import {
  type LeaseId,
  newBrowserId,
  newRequestId,
  type NodeId,
  onDemandIn,
  type Partition,
} from "../base/ids.js";
import { memoryBytes, type SessionCreate } from "../spec/bodies.js";
import { launchJob } from "../pool/fill.js";
import type { LaunchTemplate } from "../spec/launch-template.js";
import { type LeaseRequest, waiterOf } from "./lease-request.js";
import { answerOf, noRoom, refusedLaunch, tooMany } from "./session-answers.js";
import {
  lendStandby,
  refilledAfter,
  type ReservedSession,
  sessionFactsOf,
  type StandbyPorts,
} from "./lend-standby.js";
import {
  finalAnswer,
  isLaunchFailure,
  type LeaseReply,
  LeaseAttempt,
  type LendPorts,
  type LendResult,
} from "./lease-attempt.js";
import { type SpecDefaults, createSessionTemplate } from "../pool/merge-spec.js";
import type { Granted } from "../pool/operations.js";
import { type Caller, idempotencyKeyOf } from "../spec/caller.js";
import { makePlaceByReading, Placement, type PlaceByReading } from "../pool/placement.js";
import type { LaunchFailure } from "../pool/ports/messages.js";
import type { NodeStore } from "../pool/ports/node-store.js";
import type { LaunchCandidate, Jobs } from "../pool/ports/pool-store.js";
import type { SessionReservation } from "../pool/ports/project-store.js";
import { withFaults } from "../registry/proxies/selectors.js";
import { type References, resolveReferences } from "../registry/references.js";
import { notSupported, unsupportedOfCreate } from "../spec/unsupported-fields.js";

interface SessionPorts extends LendPorts, References, StandbyPorts {
  readonly nodes: NodeStore;
  readonly jobs: Jobs;
  readonly defaults: SpecDefaults;
  readonly region: string;
  readonly clock: Clock;
  /** Sessions on demand of the project; null: no limit. */
  readonly maxSessions: number | null;
  /** How long a launch may take in all, the wait for its turn included. */
  readonly launchWaitMs: Millis;
}

const defaultTimeoutSeconds = 60;

/** POST /browsers: the machinery of pools, without a pool: a launch is claimed for a waiter bound to it. */
export function makeCreateSession(
  ports: SessionPorts,
): (body: SessionCreate, caller: Caller) => Promise<Granted | Refusal> {
  const placeByReading = makePlaceByReading(ports.nodes, ports.clock);
  return (body, caller) => create({ ...ports, placeByReading }, body, caller);
}

interface Creating extends SessionPorts {
  readonly placeByReading: PlaceByReading;
}

async function create(ports: Creating, body: SessionCreate, caller: Caller): Promise<Granted | Refusal> {
  const resolved = await resolveReferences(ports, body);
  const merged = withFaults(createSessionTemplate(resolved.body, ports.defaults), resolved.faults);
  const template = merged.kind === "refused" ? merged : (refusedHere(ports, body) ?? merged);
  const request = leaseRequestOf(ports, { ...body, telemetry: resolved.body.telemetry }, { body, caller });
  if (template.kind === "refused") return await repeated(ports, request, template);
  const opened = await LeaseAttempt.open(ports, request);
  if (opened.kind === "refused") return opened;
  const launch: Launch = { attempt: opened.value, template: template.value, failures: [] };
  const result = await launch.attempt.end(lendLaunched(ports, launch));
  if (result.kind !== "unserved") return result;
  await ports.projects.settleSession(request.waiter.lease, request.waiter.id);
  return refusedLaunch(result, launch.failures);
}

/**
 * What a first request is refused for now is no matter to its repeat: it is given what its key was given
 * before. Nothing is launched for it: where its launch has failed it is refused as a first request.
 */
async function repeated(
  ports: Creating,
  request: LeaseRequest,
  refused: Refusal,
): Promise<Granted | Refusal> {
  const { partition, idempotencyKey } = request;
  if (!idempotencyKey || !(await ports.poolStore.findByKey(partition, idempotencyKey.key))) return refused;
  const opened = await LeaseAttempt.open(ports, request);
  if (opened.kind === "refused") return opened;
  const result = await opened.value.end(lendEarlier(ports, opened.value, refused));
  if (result.kind !== "unserved") return result;
  return result.why === "failed" ? refused : refusedLaunch(result, []);
}

async function lendEarlier(
  { poolStore, launchWaitMs }: Creating,
  attempt: LeaseAttempt,
  refused: Refusal,
): Promise<LendResult<Refusal>> {
  const { partition, waiter, idempotencyKey } = attempt.request;
  const asked = { waiter, ...(idempotencyKey && { idempotencyKey }) };
  const found = await attempt.ask(() => poolStore.createSession(partition, asked));
  const reply =
    found.kind === "none" ? finalAnswer(refused) : answerOf(found, { full: refused, obstacle: "" });
  if (reply.kind === "granted") return await attempt.grant(reply);
  return reply.kind === "waiting" ? await attempt.wait(reply, launchWaitMs) : reply;
}

/** The lease's own telemetry is what counts, so `details` name its destination by its id. */
function leaseRequestOf(
  ports: SessionPorts,
  details: Parameters<typeof waiterOf>[1],
  { body, caller }: { readonly body: SessionCreate; readonly caller: Caller },
): LeaseRequest {
  const idempotencyKey = idempotencyKeyOf(caller, "create session", body);
  const sent = { caller, ...(idempotencyKey ? { idempotencyKey } : {}) };
  const timeoutSeconds = body.timeout_seconds ?? defaultTimeoutSeconds;
  return {
    ...sent,
    partition: onDemandIn(ports.projects.project),
    waiter: { ...waiterOf(ports, details, sent), timeoutSeconds },
  };
}

interface Launch {
  readonly attempt: LeaseAttempt;
  readonly template: LaunchTemplate;
  /** The launches that have failed so far, each on another node. */
  readonly failures: LaunchFailure[];
}

/**
 * Waits for the browser that was claimed; a launch that fails is tried on another node, while there is one.
 */
async function lendLaunched(ports: Creating, launch: Launch): Promise<LendResult<Refusal>> {
  const { attempt, template } = launch;
  const reply = await claim(ports, attempt, template);
  if (reply.kind === "answered") return reply;
  if (reply.kind === "granted")
    return refilledAfter(await attempt.grant(reply), ports, attempt.request.partition);
  const standing = attempt.standInLine(reply);
  let end = await attempt.nextEnd(ports.launchWaitMs);
  while (isLaunchFailure(end) && (await isTriedAgain(ports, standing, { launch, failure: end.message })))
    end = await attempt.nextEnd(ports.launchWaitMs);
  return await attempt.resultOf(end);
}

/** Whether another launch is under way. A message that is late, or comes twice, ends none. */
async function isTriedAgain(
  ports: Creating,
  standing: LeaseRequest,
  { launch: { template, failures }, failure }: { launch: Launch; failure: LaunchFailure },
): Promise<boolean> {
  const { browser } = failure;
  if (browser !== undefined && failures.some((known) => known.browser === browser)) return true;
  failures.push(failure);
  return await claimElsewhere(ports, standing, { template, failures });
}

function refusedHere(ports: SessionPorts, body: SessionCreate): Refusal | undefined {
  if (body.region !== undefined && body.region !== ports.region) {
    return refusal("not_supported", { message: `This deployment is in ${ports.region}` });
  }
  const unsupported = unsupportedOfCreate(body);
  if (unsupported.length > 0) return notSupported(unsupported);
  return body.gpu ? refusal("insufficient_plan", { message: "No node here has a GPU" }) : undefined;
}

/** Where no limit is reached, the reservation has become void before the claim. */
const tooManyOnDemand = ({ maxSessions }: SessionPorts): Refusal =>
  maxSessions === null
    ? refusal("too_many_sessions", { retryAfterSeconds: 5 })
    : tooMany("onDemand", maxSessions);

/**
 * A session is reserved before it is claimed, and given back where nothing was claimed for it: what a key was
 * given before has a reservation of its own.
 */
async function claim(
  ports: Creating,
  attempt: LeaseAttempt,
  template: LaunchTemplate,
): Promise<LeaseReply<Refusal>> {
  const { request } = attempt;
  const { lease } = request.waiter;
  const reserved = await ports.projects.reserveSession(lease);
  const reached = reachedBy(reserved);
  if (reached && !request.idempotencyKey) return finalAnswer(reached);
  const full = reached ?? tooManyOnDemand(ports);
  const reply = await claimReserved(ports, attempt, { template, full, ...untilOf(reserved) });
  if (leaseIn(reply) !== lease && reserved.kind === "reserved") await ports.projects.freeSession(lease);
  return reply;
}

/** The lease that a session has, or that will be its. */
function leaseIn(reply: LeaseReply<Refusal>): LeaseId | undefined {
  if (reply.kind === "granted") return reply.browser.lease.id;
  return reply.kind === "waiting" ? reply.lease : undefined;
}

const reachedBy = (reserved: SessionReservation): Refusal | undefined =>
  "most" in reserved ? tooMany(reserved.kind, reserved.most) : undefined;

/**
 * A reservation that was refused is void from the start: then nothing is claimed, and only a repeat is
 * answered.
 */
const untilOf = (reserved: SessionReservation): Pick<ReservedSession, "reservedUntil"> =>
  reserved.kind === "unlimited"
    ? {}
    : { reservedUntil: reserved.kind === "reserved" ? reserved.deadline : 0 };

async function claimReserved(
  ports: Creating,
  attempt: LeaseAttempt,
  { full, ...reserved }: ReservedSession & { readonly full: Refusal },
): Promise<LeaseReply<Refusal>> {
  const { poolStore, nodes, jobs, placeByReading } = ports;
  const { request } = attempt;
  const { partition, waiter, idempotencyKey } = request;
  const lent = await attempt.ask(() => lendStandby(ports, request, reserved));
  if (lent) return answerOf(lent, { full, obstacle: "" });
  const { candidate, obstacle } = await placed(placeByReading, { partition, template: reserved.template });
  if (!candidate && !idempotencyKey) return finalAnswer(noRoom(obstacle));
  const asked = {
    ...reserved,
    waiter,
    ...(candidate ? { candidate } : {}),
    ...(idempotencyKey ? { idempotencyKey } : {}),
  };
  const reply = await attempt.ask(() => poolStore.createSession(partition, asked));
  if (reply.kind === "claimed") await jobs.add([launchJob(reply.browser)]);
  else if (candidate) await nodes.freeRoom(candidate.node, candidate.id);
  return answerOf(reply, { full, obstacle });
}

/** A launch may be its node's fault; one that fails on so many is its own. */
const mostLaunches = 3;

async function claimElsewhere(
  { poolStore, nodes, jobs, placeByReading }: Creating,
  { partition, waiter }: LeaseRequest,
  { template, failures }: { template: LaunchTemplate; failures: readonly LaunchFailure[] },
): Promise<boolean> {
  if (failures.length >= mostLaunches) return false;
  const { candidate } = await placed(
    placeByReading,
    { partition, template },
    failures.map(({ node }) => node),
  );
  if (!candidate) return false;
  const reply = await poolStore.createSession(partition, {
    waiter,
    template,
    candidate,
    relaunch: newRequestId(),
  });
  if (reply.kind === "claimed") await jobs.add([launchJob(reply.browser)]);
  else await nodes.freeRoom(candidate.node, candidate.id);
  return reply.kind === "claimed";
}

/** Reserves room for a browser that is to be launched. `obstacle` says why some nodes launch nothing. */
async function placed(
  placeByReading: PlaceByReading,
  { partition, template }: { readonly partition: Partition; readonly template: LaunchTemplate },
  resting: readonly NodeId[] = [],
): Promise<{ candidate?: LaunchCandidate; obstacle: string }> {
  const { memory, engine } = template;
  const id = newBrowserId(partition);
  const facts = JSON.stringify(sessionFactsOf(template));
  let obstacle = "";
  const candidate = await placeByReading(async (capacities) => {
    obstacle = capacities.obstacle;
    const placement = new Placement(capacities, { engine, ofPool: new Map(), resting });
    const node = await placement.reserve(id, memoryBytes(memory));
    return node && { id, node, facts };
  });
  return { obstacle, ...(candidate && { candidate }) };
}
