import type { Millis } from "../../base/clock.js";
import type { BrowserId, Home, LeaseId } from "../../base/ids.js";
import type { Cut } from "../../lease/cuts.js";

/** What became known through effects of scripts: for metrics and logs. */
export interface PoolSignals {
  "lease.ended": { readonly home: Home; readonly lease: LeaseId; readonly why: string; readonly hadClient: boolean; readonly heldMs: Millis };
  /** Its node has been told, if Redis brings it the message. */
  "lease.cut": Cut;
  /** From now on its pool may lack one. */
  "browser.retiring": { readonly home: Home };
  /** The room it had on its node is free. */
  "browser.gone": { readonly home: Home; readonly browser: BrowserId };
}
