import type { Clock, Millis } from "../../base/clock.js";
import type { TraceContext } from "../../base/trace-context.js";

/** What has a beginning and an end in a trace (docs/telemetry.md#traces). */
export interface Span {
  readonly name:
    | "acquire"
    | "create"
    | "wait"
    | "launch"
    | "hand-out"
    | "connect"
    | "first command"
    | "navigation";
  /** The span itself. */
  readonly context: TraceContext;
  readonly parent?: TraceContext | undefined;
  /** Set where somebody outside of this deployment has called, whose span is the parent. */
  readonly isServer?: boolean;
  /** A span of another branch, or of another trace, that this one belongs to. */
  readonly link?: TraceContext | undefined;
  readonly startedAt: Millis;
  readonly endedAt: Millis;
  readonly attributes?: Readonly<Record<string, string | number | boolean>>;
  /** Why it failed, in a word. */
  readonly failure?: string | undefined;
}

/** What is added to an instant of the monotonic clock to have one of the wall clock. */
export const wallShift = (clock: Pick<Clock, "now" | "monotonic">): Millis => clock.now() - clock.monotonic();

/**
 * Turns instants of the monotonic clock into instants of the wall clock, so that no child begins before its
 * parent where the wall clock is put back meanwhile.
 */
export function wallTimes(clock: Pick<Clock, "now" | "monotonic">): (monotonic: Millis) => Millis {
  const shift = wallShift(clock);
  return (monotonic) => shift + monotonic;
}
