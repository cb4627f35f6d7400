import { type DeferredAdmission, type Principal, principalKey } from "../access/principal.js";
import { requestDigests } from "../base/crypto/request-digests.js";
import type { BrowserId, LeaseId, RequestId } from "../base/ids.js";
import type { TraceContext } from "../base/trace-context.js";
import type { Telemetry } from "./bodies.js";

/** The lease that a request is about, and what it captures. */
export interface CapturingLease {
  readonly browser: BrowserId;
  readonly lease: LeaseId;
  readonly telemetry: Telemetry | undefined;
  /** What it is part of, as its record has it. */
  readonly trace?: string | undefined;
}

/** What an operation needs to know of the request: who sent it, and how. */
export interface Caller {
  readonly request: RequestId;
  readonly principal: Principal;
  /** Aborts when the caller's connection has gone. */
  readonly gone: AbortSignal;
  readonly idempotencyKey?: string;
  /** `X-Stainless-Retry-Count`: 0 for a first attempt. */
  readonly retryCount: number;
  /** `X-Remuda-Lease-Id` or the body's `lease_id`. */
  readonly lease?: LeaseId;
  /** The span of the caller that the request is part of. */
  readonly trace?: TraceContext | undefined;
  /**
   * Whether its credential has ended since it was let in; undefined where it was known to be good a moment
   * ago.
   */
  hasEnded?(): Promise<boolean> | undefined;
  /**
   * Set where its key is still to be judged, by the first script that is run for it: nothing is to be changed
   * before.
   */
  readonly admission?: DeferredAdmission | undefined;
  /** To be told whose browser the request manages, so that its holder can see the call among the events. */
  concerns?(lease: CapturingLease | Promise<CapturingLease>): void;
}

/**
 * What a caller's idempotency key is remembered by, where it has sent one: its own, so that nobody is lent a
 * browser that another was, by sending what that one has sent.
 */
export const idempotencyKeyOf = (
  caller: Caller,
  scope: string,
  body: unknown,
): ReturnType<typeof requestDigests> =>
  requestDigests(caller.idempotencyKey, `${scope} as ${principalKey(caller.principal)}`, body);
