import { RemudaError } from "./errors.js";

/**
 * What Redis refuses because of its own state, whatever was asked. The first word of an error names its kind
 * (redis.io, Redis serialization protocol, "Simple errors").
 */
const troubles: ReadonlySet<string> = new Set([
  "READONLY", "LOADING", "MISCONF", "OOM", "CLUSTERDOWN", "TRYAGAIN", "MASTERDOWN", "NOREPLICAS", "BUSY", "UNBLOCKED", "EXECABORT",
]);

/** Redis's own refusals come as `ReplyError`; everything else a client throws is the connection's fault. */
export const isConnectionFault = (error: unknown): boolean => !(error instanceof Error && error.name === "ReplyError");

/** Before version 7, Redis hides the word of an error within a script behind its own. */
const withinScript = /^ERR Error running script.*?-([A-Z]+) /;

/** The kind of a refusal of Redis's, as `READONLY`; an empty text for anything else. */
export function refusalWord(error: unknown): string {
  if (isConnectionFault(error)) return "";
  const { message } = error as Error;
  return withinScript.exec(message)?.[1] ?? message.split(" ", 1)[0] ?? "";
}

/** Trouble of the store becomes `store_unavailable`, so that whoever asked comes back; anything else stays what it is. */
export const storeFault = (error: unknown): unknown =>
  isConnectionFault(error) || troubles.has(refusalWord(error)) ? new RemudaError("store_unavailable", { cause: error }) : error;
