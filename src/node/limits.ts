import type { Millis } from "../base/clock.js";

/** The gateway's limits; each is a setting or a constant of the contract. */
export interface Limits {
  /** Largest message of a client; a longer one closes it with 1009. */
  readonly messageBytes: number;
  /** Unsent to one client from which on the browser's pipe is held. */
  readonly highWaterBytes: number;
  /** Unsent to one client at which it is cut. */
  readonly cutBytes: number;
  /** How long one client may hold the pipe, and with it the others and the health probe, before it is cut. */
  readonly holdMs: Millis;
  /** A client that misses two pings is cut. */
  readonly pingMs: Millis;
  /** Between the close frame and the end of the socket. */
  readonly closeMs: Millis;
  /** For the registration of a client, and for finding and reaching its node. */
  readonly connectMs: Millis;
  /** From a connection to another node until its answer: longer than that node may take for a client. */
  readonly answerMs: Millis;
  /** How long an upgrade or request waits for a restart of the browser. */
  readonly restartMs: Millis;
  /** How long an upgrade waits for the dispatch of the acquire's start_url. */
  readonly readyMs: Millis;
}

const mebibyte = 1024 * 1024;

export const defaultLimits: Limits = {
  messageBytes: 100 * mebibyte,
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
