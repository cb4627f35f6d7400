import type { Clock, Millis } from "../../base/clock.js";
import { childOf, type TraceContext } from "../../base/trace-context.js";
import type { LeaseSink } from "../event.js";
import { wallTimes } from "./span.js";

/** A client that has been accepted. */
interface TracedClient {
  readonly id: string;
  readonly protocol: "cdp" | "bidi";
  /** When its upgrade arrived, by the monotonic clock. */
  readonly arrivedAt: Millis;
  /** What its upgrade said of the trace that it is part of. */
  readonly trace?: TraceContext | undefined;
}

type SpanSink = Pick<LeaseSink, "span" | "trace" | "wants">;

/** A connection whose first command is still to come. */
export interface OpenedSpan {
  readonly context: TraceContext;
  readonly id: string;
  readonly acceptedAt: Millis;
  wall(monotonic: Millis): Millis;
}

/**
 * Tells that a client was connected. It is part of the trace of its upgrade, else of its lease's; a lease
 * without a trace joins that of the first client who has one. Undefined where it is in no trace.
 */
export function tellConnected(
  { id, protocol, arrivedAt, trace }: TracedClient,
  sink: SpanSink,
  clock: Pick<Clock, "now" | "monotonic">,
): OpenedSpan | undefined {
  if (trace?.isSampled === false) return undefined;
  const parent = trace ?? sink.trace;
  if (!parent) return undefined;
  const acceptedAt = clock.monotonic();
  const wall = wallTimes(clock);
  const isTold = sink.wants("connection");
  const context = isTold ? childOf(parent) : parent;
  if (isTold)
    sink.span({
      name: "connect",
      context,
      parent,
      isServer: true,
      link: trace && sink.trace,
      startedAt: wall(arrivedAt),
      endedAt: wall(acceptedAt),
      attributes: { "remuda.connection.id": id, "remuda.connection.protocol": protocol },
    });
  sink.trace ??= context;
  return { context, id, acceptedAt, wall };
}

/** Tells how long a client took from there to the first command that its events may name. */
export function tellFirstCommand(
  { context, id, acceptedAt, wall }: OpenedSpan,
  method: string,
  { sink, clock }: { readonly sink: SpanSink; readonly clock: Pick<Clock, "monotonic"> },
): void {
  sink.span({
    name: "first command",
    context: childOf(context),
    parent: context,
    startedAt: wall(acceptedAt),
    endedAt: wall(clock.monotonic()),
    attributes: { "remuda.connection.id": id, "rpc.method": method },
  });
}
