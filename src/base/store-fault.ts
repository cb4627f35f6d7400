import { AssertionError } from "node:assert";
import { TimeLimitReached } from "./deadline.js";
import { RemudaError } from "./errors.js";

/**
 * What Redis refuses because of its own state, whatever was asked. The first word of an error names its kind
 * (redis.io, Redis serialization protocol, "Simple errors").
 */
const troubles: ReadonlySet<string> = new Set([
  "READONLY",
  "LOADING",
  "MISCONF",
  "OOM",
  "CLUSTERDOWN",
  "TRYAGAIN",
  "MASTERDOWN",
  "NOREPLICAS",
  "BUSY",
  "UNBLOCKED",
  "EXECABORT",
]);

/**
 * What JavaScript and we ourselves throw at mistakes of ours: those are no fault of a store, and are not to
 * look like one.
 */
const mistakes: readonly (abstract new (...given: never) => Error)[] = [
  TypeError,
  RangeError,
  ReferenceError,
  SyntaxError,
  URIError,
  EvalError,
  AssertionError,
  RemudaError,
];

/**
 * Redis's own refusals come as `ReplyError`; all else that its clients throw, but for mistakes, is the
 * connection's fault.
 */
export const isConnectionFault = (error: unknown): boolean =>
  error instanceof Error && !isRefusal(error) && !mistakes.some((kind) => error instanceof kind);

const isRefusal = (error: Error): boolean => error.name === "ReplyError";

/** Redis before version 7 hides the code of an error within a script behind its own. */
const withinScript = /^ERR Error running script.*?-([A-Z]+) /;

/** The kind of a refusal of Redis's, as `READONLY`; an empty text for anything else. */
export function refusalWord(error: unknown): string {
  if (!(error instanceof Error && isRefusal(error))) return "";
  const { message } = error;
  return withinScript.exec(message)?.[1] ?? message.split(" ", 1)[0] ?? "";
}

/**
 * Trouble of the store becomes `store_unavailable`, so that whoever asked comes back; anything else stays
 * what it is.
 */
export const storeFault = (error: unknown): unknown =>
  isConnectionFault(error) || troubles.has(refusalWord(error))
    ? new RemudaError("store_unavailable", { cause: error })
    : error;

/** Whether a store could not be asked, or has not answered in time. */
export const isStoreAway = (error: unknown): boolean =>
  error instanceof TimeLimitReached || (error instanceof RemudaError && error.code === "store_unavailable");

/** Why a store is unavailable where nothing that was asked has left this process. */
class NeverSent extends Error {
  override readonly name = "NeverSent";
}

/** The same fault, which says as well that what was asked for has surely not been done. */
export const neverSent = (fault: unknown): unknown =>
  isStoreAway(fault)
    ? new RemudaError("store_unavailable", {
        cause: new NeverSent("there was no connection", { cause: fault }),
      })
    : fault;

export const wasNeverSent = (error: unknown): boolean =>
  error instanceof RemudaError && error.cause instanceof NeverSent;
