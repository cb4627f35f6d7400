import type { Millis } from "../base/clock.js";

/** What the store has said of one lease's events, whatever was switched off and on again meanwhile. */
export interface StoreLosses {
  count: number;
  /** The `seq` of the newest event that was stored. */
  last: number;
  /** When that was sent, by the monotonic clock. */
  lastAt: Millis | undefined;
}

export const noLosses = (): StoreLosses => ({ count: 0, last: 0, lastAt: undefined });
