import type { Millis } from "../base/clock.js";
import type { BudgetLimits } from "../base/budget.js";
import { type SessionLimits, usualSessions } from "./cdp/session-quotas.js";

/** The gateway's limits; each is a setting or a constant of the contract. */
export interface GatewayLimits {
  /** Largest message of a client; a longer one closes it with 1009. */
  readonly messageBytes: number;
  /** Clients of one browser at once, those included whose upgrade is not settled. */
  readonly clients: number;
  /** What the clients of a lease may send in the long run. */
  readonly clientBytesPerSecond: number;
  /** BiDi clients at once, each with a process of its own: of one lease, and of this daemon. */
  readonly bidiClients: { readonly lease: number; readonly daemon: number };
  /** The heap of each such process. */
  readonly bidiHeapBytes: number;
  readonly sessions: SessionLimits;
  /**
   * The limit on what all clients together have sent of messages that are not whole or not yet judged. Beyond
   * it the client that has most is cut.
   */
  readonly unfinished: BudgetLimits;
  /**
   * The limit on what was sent to all clients together and is not read. Beyond it the client that has most is
   * cut.
   */
  readonly unread: BudgetLimits;
  /**
   * Bodies of requests through the ways out of browsers, and of their answers. Beyond it a request is
   * refused.
   */
  readonly curl: BudgetLimits;
  /** Unsent to one client from which on the browser's pipe is held. */
  readonly highWaterBytes: number;
  /** Unsent to one client at which it is cut. */
  readonly cutBytes: number;
  /** How long one client may hold the pipe, and with it the others and the health probe, before it is cut. */
  readonly holdMs: Millis;
  /** A client that misses two pings is cut. */
  readonly pingMs: Millis;
  /** The limit from the close frame to the end of the socket. */
  readonly closeMs: Millis;
  /** The limit for registering a client, and for finding and reaching its node. */
  readonly connectMs: Millis;
  /**
   * The limit from a connection to another node until its answer: longer than that node may take for a
   * client.
   */
  readonly answerMs: Millis;
  /** How long an upgrade or request waits for a restart of the browser. */
  readonly restartMs: Millis;
  /** How long an upgrade waits for the dispatch of the acquire's start_url. */
  readonly readyMs: Millis;
}

const mebibyte = 1024 * 1024;

export const defaultGatewayLimits: GatewayLimits = {
  messageBytes: 16 * mebibyte,
  clients: 32,
  clientBytesPerSecond: 8 * mebibyte,
  bidiClients: { lease: 8, daemon: 64 },
  bidiHeapBytes: 256 * mebibyte,
  sessions: usualSessions,
  unfinished: { browserBytes: 64 * mebibyte, daemonBytes: 256 * mebibyte },
  unread: { browserBytes: 256 * mebibyte, daemonBytes: 1024 * mebibyte },
  curl: { browserBytes: 32 * mebibyte, daemonBytes: 128 * mebibyte },
  highWaterBytes: 16 * mebibyte,
  cutBytes: 128 * mebibyte,
  holdMs: 10_000,
  pingMs: 20_000,
  closeMs: 1000,
  connectMs: 5000,
  answerMs: 15_000,
  restartMs: 5000,
  readyMs: 1000,
};
