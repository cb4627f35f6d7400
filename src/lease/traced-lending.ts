import type { Clock, Millis } from "../base/clock.js";
import { childOf, parseTrace, type TraceContext } from "../base/trace-context.js";
import type { Granted, PoolOperations, SessionOperations } from "../pool/operations.js";
import { capturingLease } from "../pool/session.js";
import type { Caller } from "../spec/caller.js";
import { type Span, wallTimes } from "../telemetry/traces/span.js";
import type { TellSpans } from "../telemetry/traces/tell-spans.js";

interface Tracing {
  readonly clock: Clock;
  readonly tellSpans: TellSpans;
}

/** What the spans of a call are called; a session on demand waits for its launch. */
interface Names {
  readonly call: "acquire" | "create";
  readonly wait: "wait" | "launch";
}

/**
 * Tells an acquire that a caller has in a trace: the wait, and the way of the answer
 * (docs/telemetry.md#traces).
 */
export const traceAcquire =
  (acquire: PoolOperations["acquire"], tracing: Tracing): PoolOperations["acquire"] =>
  async (ref, body, caller) => {
    const handOut = beginCall(tracing, caller, { call: "acquire", wait: "wait" });
    const outcome = await acquire(ref, body, caller);
    return handOut && outcome.kind === "granted" ? handOut(outcome) : outcome;
  };

/** The same for a session on demand. */
export const traceCreate =
  (create: SessionOperations["create"], tracing: Tracing): SessionOperations["create"] =>
  async (body, caller) => {
    const handOut = beginCall(tracing, caller, { call: "create", wait: "launch" });
    const outcome = await create(body, caller);
    return handOut && outcome.kind === "granted" ? handOut(outcome) : outcome;
  };

/**
 * Undefined where the caller wants no spans. The spans are told when it is known how the answer has fared.
 */
function beginCall(
  { clock, tellSpans }: Tracing,
  { trace: from, request }: Caller,
  names: Names,
): ((granted: Granted) => Granted) | undefined {
  if (!from?.isSampled) return undefined;
  const begunAt = clock.monotonic();
  const wall = wallTimes(clock);
  return (granted) => ({
    ...granted,
    settle(outcome) {
      granted.settle(outcome);
      // A lease that was taken without a trace may be handed out again to a repeat that has one.
      const own = parseTrace(granted.session.browser.lease.trace) ?? childOf(from);
      const call = {
        names,
        from,
        own,
        request,
        begunAt,
        endedAt: clock.monotonic(),
        isLost: outcome === "lost",
      };
      tellSpans(capturingLease(granted.session), spansOf(granted, call, wall));
    },
  });
}

interface TracedCall {
  readonly names: Names;
  /** The caller's span. */
  readonly from: TraceContext;
  /** That of the call, which the lease's record names. */
  readonly own: TraceContext;
  readonly request: string;
  readonly begunAt: Millis;
  readonly endedAt: Millis;
  readonly isLost: boolean;
}

function spansOf({ timing }: Granted, call: TracedCall, wall: (at: Millis) => Millis): readonly Span[] {
  const { names, from, own, request, begunAt, endedAt, isLost } = call;
  const failure = isLost ? "the caller had gone" : undefined;
  const [startedAt, end] = [wall(begunAt), wall(endedAt)];
  // A repeat under a key is given the lease of the first attempt, which may be part of another trace.
  const isSame = from.traceId === own.traceId;
  const above = isSame ? { parent: from } : { link: from };
  const attributes = { "remuda.request.id": request };
  const spans: Span[] = [
    {
      name: names.call,
      context: own,
      ...above,
      isServer: true,
      startedAt,
      endedAt: end,
      attributes,
      failure,
    },
  ];
  const child = { parent: own };
  const { waited, grantedAt = begunAt } = timing ?? {};
  if (waited)
    spans.push({
      ...child,
      name: names.wait,
      context: childOf(own),
      startedAt: wall(waited.from),
      endedAt: wall(waited.until),
    });
  spans.push({
    ...child,
    name: "hand-out",
    context: childOf(own),
    startedAt: wall(waited?.until ?? grantedAt),
    endedAt: end,
    failure,
  });
  return spans;
}
