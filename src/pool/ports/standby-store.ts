import type { Millis } from "../../base/clock.js";
import type { BrowserId, NodeId, Partition, RequestId } from "../../base/ids.js";
import type { LaunchTemplate } from "../../spec/launch-template.js";
import type { Browser, LaunchingBrowser, RetireReason } from "../browser.js";
import type { LaunchCandidate } from "./pool-store.js";

/** What stands by in a partition, or is being launched for that. */
export interface Standby {
  readonly browsers: readonly Browser[];
  /** How many others are being launched there: each for somebody who waits for a session. */
  readonly sessionsLaunching: number;
  /** Redis's time at the reading. */
  readonly at: Millis;
  /** Nodes on which launches fail, left alone for now. */
  readonly resting: readonly NodeId[];
}

/** Browsers that stand by for sessions on demand. */
export interface StandbyStore {
  find(partition: Partition): Promise<Standby>;
  /** Claims as many of the candidates as are missing from `count`, while launches do not fail. */
  claim(
    partition: Partition,
    ask: {
      readonly candidates: readonly LaunchCandidate[];
      /** Names the template, in the records of its browsers. */
      readonly key: string;
      readonly template: LaunchTemplate;
      readonly count: number;
      readonly request: RequestId;
    },
  ): Promise<readonly LaunchingBrowser[]>;
  /** Retires them; gives those that are sessions by now, and stay. */
  retire(browsers: readonly BrowserId[], why: RetireReason): Promise<readonly BrowserId[]>;
}
