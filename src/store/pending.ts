import type { Millis } from "../base/clock.js";

/** A reservation that is renewed may be given a little more than the one before. */
const slackMs: Millis = 5000;

/**
 * Whether a deadline is still to come. One further ahead than any is set now was set before Redis's clock
 * went back, as by a failover to another machine.
 */
export const isPending = (deadline: Millis, now: Millis, graceMs: Millis): boolean =>
  deadline > now && deadline <= now + graceMs + slackMs;
