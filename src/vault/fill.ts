import type { Done, Refusal } from "../base/errors.js";
import type { BrowserId, LeaseId, ProjectId, VaultId, VaultItemId } from "../base/ids.js";

/** One field of an item, and the element of the page that is to get its value. */
export interface FillBinding {
  readonly field: string;
  readonly selector: string;
}

/**
 * What is to be filled where. Names only: whoever holds the browser's pipe opens the values by itself
 * (`openFillValues`), so that none travels between daemons.
 */
export interface FillOrder {
  readonly project: ProjectId;
  readonly vault: VaultId;
  readonly item: VaultItemId;
  readonly key: string;
  /** The values are those of this version; a change that came between refuses. */
  readonly version: number;
  readonly browser: BrowserId;
  readonly lease: LeaseId;
  readonly bindings: readonly FillBinding[];
  /** Absent: the only page that is open. */
  readonly pageUrl?: string;
  readonly timeoutMs: number;
  /** Origins of pages and frames that may be given the values; empty: all. */
  readonly allowedOrigins: readonly string[];
}

export const fillErrorCodes = [
  "target_changed",
  "element_not_found",
  "ambiguous_selector",
  "element_not_editable",
  "option_not_found",
  "timeout",
  "execution_failed",
] as const;

interface FieldOutcome {
  readonly index: number;
  readonly status: "filled" | "failed" | "not_attempted" | "unknown";
  readonly errorCode?: (typeof fillErrorCodes)[number];
}
export interface FillOutcome {
  readonly status: "completed" | "failed" | "unknown";
  readonly fields: readonly FieldOutcome[];
}

/** Fills pages of browsers. A refusal has written nothing; once a write has begun, an outcome is answered. */
export interface VaultFill {
  /** Whether this deployment can fill: else no item offers it. */
  readonly isSupported: boolean;
  fill(order: FillOrder, gone: AbortSignal): Promise<Done<FillOutcome> | Refusal>;
}
