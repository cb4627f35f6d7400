import type { IncomingMessage } from "node:http";
import { newRequestId, type RequestId } from "../base/ids.js";

/** What `x-request-id` answers: the caller's own where it is short and printable, else one of ours. */
export function requestIdOf(raw: IncomingMessage): string {
  return foreignId(raw) ?? newRequestId();
}

/** The id scripts answer repeats by. Never the caller's: two callers could send the same. */
export const ownRequestId = (raw: IncomingMessage, replied: string): RequestId =>
  foreignId(raw) === undefined ? (replied as RequestId) : newRequestId();

function foreignId(raw: IncomingMessage): string | undefined {
  const given = raw.headers["x-request-id"];
  return typeof given === "string" && /^[\w.:/=+-]{1,128}$/.test(given) ? given : undefined;
}
