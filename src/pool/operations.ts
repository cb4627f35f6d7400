import type { Readable } from "node:stream";
import type { Millis } from "../base/clock.js";
import type { Done, Refusal } from "../base/errors.js";
import type { Digest } from "../base/ids.js";
import type {
  AcquireBody,
  PoolCreate,
  PoolPatch,
  ReleaseBody,
  SessionCreate,
  SessionPatch,
} from "../spec/bodies.js";
import type { CaptchaResult } from "../spec/captcha-result.js";
import type { CurlBody } from "../spec/curl.js";
import type { FlightRecording } from "../spec/flight-recording.js";
import type { Pool, PoolBrowser } from "./pool.js";
import type { Session, Tombstone } from "./session.js";
import type { Caller } from "../spec/caller.js";
import type { Page, PoolListQuery, SessionListQuery } from "../spec/paging.js";

/**
 * A lease that was granted but whose caller may not know it yet. The HTTP layer says how the reply fared:
 * `delivered` once it was flushed to the socket (confirms the grant, batched), `lost` when the connection
 * closed before (undoes it). A grant that is a repeat under an idempotency key settles the same way.
 */
export interface Granted {
  readonly kind: "granted";
  readonly session: Session;
  readonly timing?: LendTiming;
  settle(outcome: "delivered" | "lost"): void;
}
/** Instants of the monotonic clock; `waited` is absent where a browser was there at once. */
export interface LendTiming {
  readonly grantedAt: Millis;
  readonly waited?: { readonly from: Millis; readonly until: Millis };
}
/** Nothing became free in time: the caller is answered 204 with `Retry-After: 0`. */
export interface TimedOut {
  readonly kind: "timed-out";
}
export type SessionOrTombstone =
  | { readonly kind: "session"; readonly session: Session }
  | { readonly kind: "deleted"; readonly tombstone: Tombstone };

/** An extension whose archive has arrived whole and lies in a file of ours. */
export interface SentExtension {
  readonly name: string;
  readonly path: string;
  readonly digest: Digest;
}

/** `ref` is an id or a name; ids win. Every refusal has changed nothing. */
export interface PoolOperations {
  create(body: PoolCreate, caller: Caller): Promise<Done<Pool> | Refusal>;
  list(query: PoolListQuery): Promise<Page<Pool>>;
  get(ref: string): Promise<Done<Pool> | Refusal>;
  update(ref: string, patch: PoolPatch, caller: Caller): Promise<Done<Pool> | Refusal>;
  remove(ref: string, options: { force: boolean }, caller: Caller): Promise<Done<null> | Refusal>;
  acquire(ref: string, body: AcquireBody, caller: Caller): Promise<Granted | TimedOut | Refusal>;
  release(ref: string, body: ReleaseBody, caller: Caller): Promise<Done<null> | Refusal>;
  flush(ref: string, caller: Caller): Promise<Done<null> | Refusal>;
  browsers(ref: string): Promise<Done<readonly PoolBrowser[]> | Refusal>;
  recordings(ref: string): Promise<Done<readonly FlightRecording[]> | Refusal>;
}

export interface SessionOperations {
  create(body: SessionCreate, caller: Caller): Promise<Granted | Refusal>;
  list(query: SessionListQuery): Promise<Page<SessionOrTombstone>>;
  get(ref: string, options: { includeDeleted: boolean }): Promise<Done<SessionOrTombstone> | Refusal>;
  update(ref: string, patch: SessionPatch, caller: Caller): Promise<Done<Session> | Refusal>;
  remove(ref: string, caller: Caller): Promise<Done<null> | Refusal>;
  /** A request through the browser's own way out. */
  /** The JSON of a `CurlReply`, as it comes. */
  curl(ref: string, body: CurlBody, caller: Caller): Promise<Done<Readable> | Refusal>;
  /** What a solver outside says came of a captcha, told among the session's events. */
  reportCaptcha(ref: string, result: CaptchaResult, caller: Caller): Promise<Done<null> | Refusal>;
  recording(ref: string, caller: Caller): Promise<Done<FlightRecording> | Refusal>;
  /** The session that extensions may be loaded into: asked before their archives are read. */
  findUploadTarget(ref: string, caller: Caller): Promise<Done<Session> | Refusal>;
  /**
   * Loads archives into the running browser of a session that was found so: all of them, or nothing. The
   * files remain whose they are.
   */
  addExtensions(
    meant: Session,
    items: readonly SentExtension[],
    caller: Caller,
  ): Promise<Done<null> | Refusal>;
}

/** What `/readyz` asks. */
export interface Readiness {
  /** Undefined when ready, else why not. */
  unready(): string | undefined;
  /** Whether Redis is there; sockets are served without it. */
  hasStore(): boolean;
  /** Whether what vaults acknowledge outlives a loss of power; undefined where it is not known yet. */
  vaultSafety(): "durable" | "lossy" | "refused" | undefined;
}
