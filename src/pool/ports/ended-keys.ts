import type { Millis } from "../../base/clock.js";

/** API keys that have ended, until what they held has ended too. */
export interface EndedKeys {
  /** The ids, and the time at which that was so. */
  ended(): Promise<{ readonly ids: ReadonlySet<string>; readonly at: Millis }>;
  /** Forgets those that had ended by then. */
  forget(until: Millis): Promise<void>;
}
