import type { IncomingMessage } from "node:http";
import { withoutKeys } from "../base/crypto/key-text.js";
import { newRequestId, type RequestId } from "../base/ids.js";

/**
 * What `x-request-id` answers: the caller's own where it is short, printable and has no key in it, since it
 * is logged; else one of ours.
 */
export function requestIdOf(raw: IncomingMessage): string {
  return foreignId(raw) ?? newRequestId();
}

/** The id scripts answer repeats by. Never the caller's: two callers could send the same. */
export const ownRequestId = (raw: IncomingMessage, replied: string): RequestId =>
  foreignId(raw) === undefined ? (replied as RequestId) : newRequestId();

function foreignId(raw: IncomingMessage): string | undefined {
  const given = raw.headers["x-request-id"];
  const isSane = typeof given === "string" && /^[\w.:/=+-]{1,128}$/.test(given);
  return isSane && withoutKeys(given) === given ? given : undefined;
}
