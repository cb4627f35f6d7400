import type { Clock, Millis } from "../base/clock.js";
import type { PoolOperations } from "../pool/operations.js";
import type { Caller } from "../spec/caller.js";
import type { AcquireBody } from "../spec/bodies.js";

type Acquire = PoolOperations["acquire"];
type AcquireOutcome = "granted" | "timed_out" | "refused" | "gone";

export interface AcquireMeter {
  /** `ref` names a pool that exists. */
  acquired(ref: string, outcome: AcquireOutcome, waitedMs: Millis): void;
}

/** Refused before a pool was found: the name could be anything, and would be a label. */
const namesNoPool: ReadonlySet<string> = new Set(["pool_not_found", "bad_request", "not_supported"]);

/** Says how long each acquire of a pool took. */
export const meterAcquire =
  (acquire: Acquire, { clock, meter }: { clock: Clock; meter: AcquireMeter }): Acquire =>
  async (ref: string, body: AcquireBody, caller: Caller) => {
    const startedAt = clock.monotonic();
    const outcome = await acquire(ref, body, caller);
    const isUnknown = outcome.kind === "refused" && namesNoPool.has(outcome.code);
    if (!isUnknown) meter.acquired(ref, wordOf(outcome.kind, caller), clock.monotonic() - startedAt);
    return outcome;
  };

/** Whether the caller has gone is asked only of those that waited: its signal costs a listener. */
function wordOf(kind: "granted" | "timed-out" | "refused", caller: Caller): AcquireOutcome {
  if (kind !== "timed-out") return kind;
  return caller.gone.aborted ? "gone" : "timed_out";
}
