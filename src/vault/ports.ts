import type { Clock } from "../base/clock.js";
import type { Refusal } from "../base/errors.js";
import type { BrowserId, LeaseId, VaultId } from "../base/ids.js";
import type { VaultFill } from "./fill.js";
import type { KeyPorts } from "./encryption/key-provider.js";
import type { VaultStore } from "./vault.js";

/** A live session, and the vaults that it was created with. */
export interface LinkedSession {
  readonly browser: BrowserId;
  readonly lease: LeaseId;
  readonly vaults: readonly VaultId[];
  /** Whether clients are not to read back what is filled. */
  readonly isProtected: boolean;
}

/** What operations of vaults need of others. */
export interface VaultPorts extends KeyPorts {
  readonly store: VaultStore;
  readonly fill: VaultFill;
  readonly clock: Clock;
  /** Aborts when the daemon stops: nobody waits any longer then. */
  readonly stopping: AbortSignal;
  /** Where people open the form; undefined: this deployment collects nothing. */
  readonly formUrl: string | undefined;
  readonly maxVaults: number;
  readonly maxItems: number;
  /** Finds it by its id, never its name; undefined where it is over. */
  findSession(id: string): Promise<LinkedSession | undefined>;
  /** Why a vault can not be deleted; undefined where nothing names it. */
  refuseInUse(id: VaultId): Promise<Refusal | undefined>;
}
