import type { BridgeEndReason } from "./cdp/connection.js";
import type { ClientEnd } from "./ports.js";

/** Close codes: those of RFC 6455, and 4410 for a lease that is over. */
export const closeCodes = {
  asked: 1000,
  goingAway: 1001,
  notText: 1003,
  tooMany: 1008,
  browserGone: 1011,
  restart: 1012,
  tooSlow: 1013,
  leaseOver: 4410,
} as const;

export const closeCodeOf: Readonly<Record<BridgeEndReason, number>> = {
  target_closed: closeCodes.goingAway,
  browser_gone: closeCodes.browserGone,
  too_many_sessions: closeCodes.tooMany,
};

const ends: Readonly<Record<number, ClientEnd>> = {
  [closeCodes.asked]: "left",
  [closeCodes.browserGone]: "browser",
  [closeCodes.restart]: "restart",
};

/** What a connection that the gateway closes so is told to have ended by. */
export const endOf = (code: number): ClientEnd => ends[code] ?? "cut";

/** The same where ws reports an error: one of its own is of a message that it takes from nobody. */
export const endOfError = (error: Error): ClientEnd =>
  "code" in error && String(error.code).startsWith("WS_ERR_") ? "cut" : "left";
