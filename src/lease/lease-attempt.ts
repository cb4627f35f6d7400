import type { Clock, Millis } from "../base/clock.js";
import { type Done, done, refusal, type Refusal, RemudaError } from "../base/errors.js";
import type { ControlId, LeaseId } from "../base/ids.js";
import { wasNeverSent } from "../base/store-fault.js";
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
  readonly sessionReader: SessionReader;
  readonly control: ControlId;
  readonly clock: Clock;
}

interface GrantedBrowser {
  readonly browser: LeasedBrowser;
  readonly at: Millis;
}
/** What became of a request: a browser, a place in line, or an answer that is final. */
export type LeaseReply<Answer> = GrantedReply | WaitingReply | Answered<Answer>;

type GrantedReply = { readonly kind: "granted" } & GrantedBrowser;
interface Answered<Answer> {
  readonly kind: "answered";
  readonly answer: Answer;
}
export const finalAnswer = <Answer>(answer: Answer): Answered<Answer> => ({ kind: "answered", answer });

/** A wait that gave no browser, and why. The place is given up, or kept for a retry under its key. */
export interface NotServed {
  readonly kind: "unserved";
  readonly why: "timeout" | "gone" | "stopping" | "superseded" | "deleted" | "failed" | "forgotten";
  /** Its place was lost before, so that no script has given its name back. */
  readonly isPlaceLost: boolean;
}
export type LendResult<Answer> = Granted | NotServed | Answered<Answer>;

interface FailedWait {
  readonly kind: "message";
  readonly message: Extract<ControlMessage, { kind: "failed" }>;
}

/**
 * One request for a lease, from the reservation of its name to its end. Whoever opens it asks the store,
 * gives it the reply, and hands that work to `end`, which gives back what was not used.
 */
export class LeaseAttempt {
  /**
   * The request whose place this one has: after a retry under an idempotency key that of the first attempt.
   */
  #standing: LeaseRequest;
  #waitsSince: Millis = 0;
  /** Whether a script may have granted it, or put it in line. */
  #mayHold = false;
  #stopWatching = (): void => {};
  readonly #handle: WaitHandle;

  private constructor(
    private readonly ports: LendPorts,
    readonly request: LeaseRequest,
    private readonly name: NameReservation,
  ) {
    this.#standing = request;
    this.#handle = ports.waiters.open(request.caller.request);
  }

  /** Reserves the name, if there is one, and listens for messages: the store may be asked now. */
  static async open(ports: LendPorts, request: LeaseRequest): Promise<Done<LeaseAttempt> | Refusal> {
    if (await request.caller.hasEnded?.()) return refusal("unauthorized");
    const { name } = request.waiter;
    // A name is reserved before the script that lends could judge.
    const admitted = name === undefined ? undefined : await request.caller.admission?.judge();
    if (admitted?.kind === "refused") return admitted;
    const reserved = name === undefined ? "none" : await reserve(ports, request, name);
    return reserved ? done(new LeaseAttempt(ports, request, reserved)) : refusal("name_taken");
  }

  /** Asks the store for a browser or a place in line. */
  async ask<Reply>(work: () => Promise<Reply>): Promise<Reply> {
    try {
      const reply = await work();
      this.#mayHold = true;
      return reply;
    } catch (error) {
      // Whether a script has run that never answered cannot be known.
      if (!wasNeverSent(error)) this.#mayHold = true;
      throw error;
    }
  }

  /** A browser that the store has granted at once. */
  async grant(reply: GrantedReply): Promise<Granted> {
    return await granted(this.ports, this.request, reply);
  }

  /** Waits in line for a browser. */
  async wait(reply: WaitingReply, limitMs: Millis): Promise<Granted | NotServed> {
    this.standInLine(reply);
    return await this.resultOf(await this.nextEnd(limitMs));
  }

  /** Takes the place that the store has recorded, which is the request's from then on. */
  standInLine({ waiter: id, lease, stored }: WaitingReply): LeaseRequest {
    const { partition, waiter, caller } = this.request;
    const { name } = waiter;
    this.#standing = { ...this.request, waiter: { ...waiter, id, lease } };
    this.#stopWatching = this.ports.grants.watchWaiter({
      partition,
      lease,
      connection: caller.request,
      waiter: id,
      ...(name !== undefined && { name }),
      ...(stored !== undefined && { stored }),
    });
    this.#waitsSince = this.ports.clock.monotonic();
    return this.#standing;
  }

  /** What ends the wait, unless a launch that has failed is tried elsewhere. */
  nextEnd(limitMs: Millis): Promise<WaitResult> {
    return this.#handle.wait(limitMs, this.request.caller.gone);
  }

  async resultOf(end: WaitResult): Promise<Granted | NotServed> {
    const until = this.ports.clock.monotonic();
    const result = await resultOf(this.ports, this.#standing, end);
    return result.kind === "granted"
      ? { ...result, timing: { grantedAt: until, waited: { from: this.#waitsSince, until } } }
      : result;
  }

  /** Whatever the work came to, nothing of the request is left but what it was given. */
  async end<Answer>(work: Promise<LendResult<Answer>>): Promise<Granted | NotServed | Answer> {
    const result = await this.#closedAfter(work);
    const { name } = this.request.waiter;
    if (name !== undefined) await this.#settleName(name, result);
    return result.kind === "answered" ? result.answer : result;
  }

  async #settleName(name: string, result: LendResult<unknown>): Promise<void> {
    try {
      if (result.kind === "unserved" && result.isPlaceLost) await this.#freeName(name);
      if (this.name === "own" && isNameUnused(result, this.request.waiter.lease))
        await passNameOn(this.ports, this.request, { name, result });
    } catch (error) {
      // The caller is answered with a fault, and not told of the lease that an earlier attempt was granted.
      if (result.kind === "granted") result.settle("lost");
      this.ports.grants.abandon(this.request);
      throw error;
    }
  }

  /** A key may have given the request an earlier one's place, and its name with it. Another's name stays. */
  async #freeName(name: string): Promise<void> {
    for (const { waiter } of new Set([this.#standing, this.request]))
      await this.ports.projects.freeName({ kind: "session", name, owner: waiter.lease });
  }

  async #closedAfter<Result>(work: Promise<Result>): Promise<Result> {
    try {
      return await work;
    } catch (error) {
      if (this.#mayHold || this.name === "own") this.ports.grants.abandon(this.request);
      throw error;
    } finally {
      this.#stopWatching();
      this.#handle.close();
    }
  }
}

export const isLaunchFailure = (end: WaitResult): end is FailedWait =>
  end.kind === "message" && end.message.kind === "failed";

/** The name goes to the lease that an attempt under the same key was granted meanwhile, or is free. */
async function passNameOn(
  { projects }: LendPorts,
  { partition, waiter, idempotencyKey }: LeaseRequest,
  { name, result }: { name: string; result: LendResult<unknown> },
): Promise<void> {
  const other = result.kind === "granted" ? result.session.browser.lease : undefined;
  if (!idempotencyKey || other?.name !== name)
    return await projects.freeName({ kind: "session", name, owner: waiter.lease });
  const { key } = idempotencyKey;
  await projects.reserveName({ kind: "session", name, owner: other.id, partition, key, takesOver: true });
}

/** `kept`: an earlier attempt under the same key has the name for its lease or its place. */
type NameReservation = "none" | "own" | "kept";

/** Undefined where the name is another's. */
async function reserve(
  ports: LendPorts,
  request: LeaseRequest,
  name: string,
): Promise<NameReservation | undefined> {
  const { partition, waiter, idempotencyKey } = request;
  const reservation = {
    kind: "session",
    name,
    owner: waiter.lease,
    partition,
    ...(idempotencyKey && { key: idempotencyKey.key }),
  } as const;
  if (await ports.projects.reserveName(reservation)) return "own";
  if (!idempotencyKey) return undefined;
  if (await isRepeat(ports, request)) return "kept";
  // The control that reserved it has died before it asked for a browser.
  return (await ports.projects.reserveName({ ...reservation, takesOver: true })) && "own";
}

/** The name may be taken by this very request's first attempt: then its key finds that lease or place. */
async function isRepeat(
  { projects, poolStore }: LendPorts,
  { partition, idempotencyKey, waiter }: LeaseRequest,
): Promise<boolean> {
  const held = idempotencyKey && (await projects.findName("session", waiter.name ?? ""));
  const earlier = held && (await poolStore.findByKey(partition, idempotencyKey.key));
  return earlier !== undefined && earlier.lease === held?.owner;
}

/** A place in line gives its name back in the script in which it goes: it may be kept for a retry. */
function isNameUnused(result: LendResult<unknown>, lease: LeaseId): boolean {
  if (result.kind === "granted") return result.session.browser.lease.id !== lease;
  return result.kind === "answered";
}

async function resultOf(
  ports: LendPorts,
  request: LeaseRequest,
  end: WaitResult,
): Promise<Granted | NotServed> {
  if (end.kind !== "message") return await withdraw(ports, request, end.kind);
  const { message } = end;
  switch (message.kind) {
    case "granted":
      return await granted(ports, request, { browser: leasedParser.json(message.browser), at: message.at });
    case "failed":
      return await withdraw(ports, request, "failed");
    case "forgotten":
      // A place that was detached meanwhile is kept for a retry, and with it its name.
      return await withdraw(ports, request, "forgotten");
    case "deleted":
    case "superseded":
      return { kind: "unserved", why: message.kind, isPlaceLost: message.kind === "deleted" };
    case "answer":
      throw new Error("an answer to a question came for a waiter");
  }
}

async function withdraw(
  ports: LendPorts,
  request: LeaseRequest,
  why: "timeout" | "gone" | "stopping" | "failed" | "forgotten",
): Promise<Granted | NotServed> {
  const { partition, waiter, caller } = request;
  const reply = await ports.poolStore.withdraw(partition, {
    waiter: waiter.id,
    connection: caller.request,
    lease: waiter.lease,
  });
  if (reply.kind !== "granted") return { kind: "unserved", why, isPlaceLost: reply.kind === "unknown" };
  const late = await granted(ports, request, reply);
  if (why !== "gone") return late;
  late.settle("lost");
  return { kind: "unserved", why, isPlaceLost: false };
}

async function granted(
  { sessionReader, grants, clock }: LendPorts,
  { partition, caller }: LeaseRequest,
  { browser, at }: GrantedBrowser,
): Promise<Granted> {
  const timing = { grantedAt: clock.monotonic() };
  if (await caller.hasEnded?.()) throw new RemudaError("unauthorized");
  const session = await sessionReader.findSession(browser, at);
  const lease = browser.lease.id;
  if (!session) throw new RemudaError("unavailable", { message: "The browser ended as it was granted" });
  grants.opened(partition, lease, browser.id);
  return { kind: "granted", session, timing, settle: (outcome) => grants.settle(partition, lease, outcome) };
}
