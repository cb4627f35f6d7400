import type { Clock, Millis } from "../base/clock.js";
import { refusal, type Refusal, RemudaError } from "../base/errors.js";
import type { ControlId, LeaseId, RequestId } from "../base/ids.js";
import { type LeasedBrowser, leasedParser } from "../pool/browser.js";
import type { SessionReader } from "../pool/launch-templates.js";
import type { Waiters, WaitHandle, WaitResult } from "./waiters.js";
import type { Grants } from "./grants.js";
import type { LeaseRequest } from "./lease-request.js";
import type { Granted } from "../pool/operations.js";
import type { PoolStore } from "../pool/ports/pool-store.js";
import type { ProjectStore } from "../pool/ports/project-store.js";
import type { ControlMessage } from "../pool/ports/messages.js";
import type { WaitingReply } from "../pool/ports/store-replies.js";

/**
 * What acquire and POST /browsers share: both reserve a name and a place in line for the lease, wait, and are
 * granted it.
 */
export interface LendPorts {
  readonly poolStore: PoolStore;
  readonly projects: ProjectStore;
  readonly waiters: Waiters;
  readonly grants: Grants;
  readonly configs: SessionReader;
  readonly control: ControlId;
  readonly clock: Clock;
}

interface GrantedBrowser {
  readonly browser: LeasedBrowser;
  readonly at: Millis;
}
/** What a source replies to a request: a browser, a place in line, or an answer that is final. */
export type LeaseReply<Answer> =
  | ({ readonly kind: "granted" } & GrantedBrowser)
  | WaitingReply
  | { readonly kind: "answered"; readonly answer: Answer };

/** A wait that gave no browser, and why. The place is given up, or kept for a retry under its key. */
export interface NotServed {
  readonly kind: "unserved";
  readonly why: "timeout" | "gone" | "stopping" | "superseded" | "deleted" | "failed" | "forgotten";
}
type LendResult<Answer> = Granted | NotServed | Extract<LeaseReply<Answer>, { kind: "answered" }>;

/** A pool, or a launch on demand: how a lease is requested of it, and how long the caller waits. */
export interface LeaseSource<Answer> {
  requestLease(): Promise<LeaseReply<Answer>>;
  limitMs(): Promise<Millis>;
  /** Tries a launch that has failed on another node; false where nothing is left to try. */
  retryLaunch?(wanted: LeaseRequest, failed: LaunchFailure): Promise<boolean>;
}

/** A launch that failed on a node, and what Chromium said. */
export type LaunchFailure = Extract<ControlMessage, { kind: "failed" }>;

export const finalAnswer = <Answer>(answer: Answer): LeaseReply<Answer> => ({ kind: "answered", answer });

/** Reserves the name, if there is one, then asks and waits. */
export async function lend<Answer>(
  ports: LendPorts,
  wanted: LeaseRequest,
  source: LeaseSource<Answer>,
): Promise<Granted | NotServed | Refusal | Answer> {
  if (await wanted.caller.hasEnded?.()) return refusal("unauthorized");
  const { name, lease } = wanted.waiter;
  const reserved = name === undefined ? "kept" : await reserve(ports, wanted, name);
  if (!reserved) return refusal("name_taken");
  const result = await askAndWait(ports, wanted, source);
  if (name !== undefined && reserved === "own" && isNameUnused(result, lease))
    await passNameOn(ports, wanted, { name, result });
  return result.kind === "answered" ? result.answer : result;
}

/** The name goes to the lease that an attempt under the same key was granted meanwhile, or is free. */
async function passNameOn(
  { projects }: LendPorts,
  { partition, waiter, keyed }: LeaseRequest,
  { name, result }: { name: string; result: LendResult<unknown> },
): Promise<void> {
  const other = result.kind === "granted" ? result.session.browser.lease : undefined;
  if (!keyed || other?.name !== name)
    return await projects.freeName({ kind: "session", name, owner: waiter.lease });
  const { key } = keyed;
  await projects.reserveName({ kind: "session", name, owner: other.id, partition, key, takesOver: true });
}

/** `kept`: an earlier attempt under the same key has the name for its lease or its place. */
async function reserve(
  ports: LendPorts,
  wanted: LeaseRequest,
  name: string,
): Promise<"own" | "kept" | undefined> {
  const { partition, waiter, keyed } = wanted;
  const ask = {
    kind: "session",
    name,
    owner: waiter.lease,
    partition,
    ...(keyed && { key: keyed.key }),
  } as const;
  if (await ports.projects.reserveName(ask)) return "own";
  if (!keyed) return undefined;
  if (await isRepeat(ports, wanted)) return "kept";
  // The control that reserved it has died before it asked for a browser.
  return (await ports.projects.reserveName({ ...ask, takesOver: true })) && "own";
}

/** The name may be taken by this very request's first attempt: then its key finds that lease or place. */
async function isRepeat(
  { projects, poolStore }: LendPorts,
  { partition, keyed, waiter }: LeaseRequest,
): Promise<boolean> {
  const held = keyed && (await projects.findName("session", waiter.name ?? ""));
  const earlier = held && (await poolStore.findKeyed(partition, keyed.key));
  return earlier !== undefined && earlier.lease === held?.owner;
}

/** A place in line gives its name back itself, in the script in which it goes: it may be kept for a retry. */
function isNameUnused(result: LendResult<unknown>, lease: LeaseId): boolean {
  if (result.kind === "granted") return result.session.browser.lease.id !== lease;
  return result.kind === "answered";
}

async function askAndWait<Answer>(
  ports: LendPorts,
  wanted: LeaseRequest,
  source: LeaseSource<Answer>,
): Promise<LendResult<Answer>> {
  const place = ports.waiters.open(wanted.caller.request);
  try {
    const reply = await source.requestLease();
    switch (reply.kind) {
      case "answered":
        return reply;
      case "granted":
        return await granted(ports, wanted, reply);
      case "waiting":
        return await waitAt(ports, atRecordedPlace(wanted, reply), { place, source, reply });
    }
  } catch (error) {
    // Whether a script has run that never answered cannot be known.
    ports.grants.abandon(wanted);
    throw error;
  } finally {
    place.close();
  }
}

/** A retry under its key has its first attempt's place. */
const atRecordedPlace = (
  wanted: LeaseRequest,
  { waiter: id, lease }: { waiter: RequestId; lease: LeaseId },
): LeaseRequest => ({ ...wanted, waiter: { ...wanted.waiter, id, lease } });

interface OpenWait {
  readonly place: WaitHandle;
  readonly source: LeaseSource<unknown>;
  readonly reply: WaitingReply;
}

async function waitAt(
  ports: LendPorts,
  wanted: LeaseRequest,
  { place, source, reply }: OpenWait,
): Promise<Granted | NotServed> {
  const { partition, waiter, caller } = wanted;
  const { stored } = reply;
  const stopWaiting = ports.grants.watchWaiter({
    partition,
    lease: waiter.lease,
    connection: caller.request,
    waiter: waiter.id,
    ...(waiter.name !== undefined && { name: waiter.name }),
    ...(stored !== undefined && { stored }),
  });
  try {
    const limitMs = await source.limitMs();
    const from = ports.clock.monotonic();
    const end = await endOf(wanted, source, () => place.wait(limitMs, caller.gone));
    const until = ports.clock.monotonic();
    if (isFailure(end)) return await withdraw(ports, wanted, "failed");
    const result =
      end.kind === "message"
        ? await resultOf(ports, wanted, end.message)
        : await withdraw(ports, wanted, end.kind);
    return result.kind === "granted"
      ? { ...result, timing: { grantedAt: until, waited: { from, until } } }
      : result;
  } finally {
    stopWaiting();
  }
}

/** A launch that fails does not end the wait as long as there is another to try. */
async function endOf(
  wanted: LeaseRequest,
  source: LeaseSource<unknown>,
  wait: () => Promise<WaitResult>,
): Promise<WaitResult> {
  const end = await wait();
  return isFailure(end) && (await source.retryLaunch?.(wanted, end.message))
    ? await endOf(wanted, source, wait)
    : end;
}

const isFailure = (end: WaitResult): end is { readonly kind: "message"; readonly message: LaunchFailure } =>
  end.kind === "message" && end.message.kind === "failed";

async function resultOf(
  ports: LendPorts,
  wanted: LeaseRequest,
  message: ControlMessage,
): Promise<Granted | NotServed> {
  switch (message.kind) {
    case "granted":
      return await granted(ports, wanted, { browser: leasedParser.json(message.browser), at: message.at });
    case "deleted":
    case "superseded":
    case "forgotten":
    case "failed":
      return { kind: "unserved", why: message.kind };
    case "answer":
      throw new Error("an answer to a question came for a waiter");
  }
}

async function withdraw(
  ports: LendPorts,
  wanted: LeaseRequest,
  why: "timeout" | "gone" | "stopping" | "failed",
): Promise<Granted | NotServed> {
  const { partition, waiter, caller } = wanted;
  const reply = await ports.poolStore.withdraw(partition, {
    waiter: waiter.id,
    connection: caller.request,
    lease: waiter.lease,
  });
  if (reply.kind !== "granted") return { kind: "unserved", why };
  const late = await granted(ports, wanted, reply);
  if (why !== "gone") return late;
  late.settle("lost");
  return { kind: "unserved", why };
}

async function granted(
  { configs, grants, clock }: LendPorts,
  { partition, caller }: LeaseRequest,
  { browser, at }: GrantedBrowser,
): Promise<Granted> {
  const timing = { grantedAt: clock.monotonic() };
  if (await caller.hasEnded?.()) throw new RemudaError("unauthorized");
  const session = await configs.findSession(browser, at);
  const lease = browser.lease.id;
  if (!session) throw new RemudaError("unavailable", { message: "The browser ended as it was granted" });
  grants.opened(partition, lease, browser.id);
  return { kind: "granted", session, timing, settle: (outcome) => grants.settle(partition, lease, outcome) };
}
