import type { Millis } from "../base/clock.js";
import type { VaultItemId } from "../base/ids.js";
import type { CredentialSpec } from "./credentials/credential.js";

export const itemTypes = ["wallet", "card", "credential", "credential_account"] as const;
type ItemType = (typeof itemTypes)[number];

export const itemProviders = ["native", "issuer_a", "issuer_b", "password_manager", "managed_auth"] as const;
export type ItemProvider = (typeof itemProviders)[number];

/** Which providers each type has, and which of these are built: all others are refused `not_supported`. */
export const itemKinds = {
  wallet: { native: "unbuilt", issuer_a: "unbuilt", issuer_b: "unbuilt" },
  card: { native: "unbuilt", issuer_a: "unbuilt", issuer_b: "unbuilt" },
  credential: { native: "built", password_manager: "unbuilt", managed_auth: "unbuilt" },
  credential_account: { password_manager: "unbuilt" },
} as const satisfies Readonly<Record<ItemType, Partial<Record<ItemProvider, "built" | "unbuilt">>>>;

export const operationTypes = [
  "authorize",
  "restart_verification",
  "confirm_transaction",
  "collect",
  "prepare_checkout",
  "fill",
  "arm_passkey",
  "disarm_passkey",
  "register_passkey",
  "pm_create_access_request",
  "pm_access_request_status",
  "pm_fill",
  "pm_recover",
  "pm_update_access_token",
  "webmcp_invoke",
] as const;
export type OperationType = (typeof operationTypes)[number];

export interface AvailableOperation {
  readonly type: OperationType;
  readonly description: string;
}

/** A value as it is kept. */
export interface StoredValue {
  readonly sealed: string;
  /** The version of the item at which it was written: what it is sealed for. */
  readonly version: number;
}

/**
 * A link to the form of an item. Its token is drawn from the vault's key and `nonce`, so that it can be shown
 * again and stands nowhere.
 */
export interface CollectionLink {
  readonly version: number;
  readonly expiresAt: Millis;
  readonly nonce: string;
}

/**
 * An item of a vault as it is kept; its values are sealed. The one kind that is built is the credential of
 * the native provider.
 *
 * - `pending_collection`: a required value is missing that a form can collect. A form's submission or a
 *   PATCH that leaves none missing makes it `ready`.
 * - `ready`: all required values are there. A PATCH that clears one that a form can collect makes it
 *   `pending_collection`.
 */
export interface VaultItem {
  readonly id: VaultItemId;
  readonly key: string;
  /** Begins at 1, and is one more after each PATCH and each submission of a form. */
  readonly version: number;
  readonly createdAt: Millis;
  readonly updatedAt: Millis;
  readonly spec: CredentialSpec;
  /** Tells how it was defined when it was made: a repeat of that PUT means this item. */
  readonly createdAs: string;
  readonly values: ReadonlyMap<string, StoredValue>;
  readonly link: CollectionLink | undefined;
}

export const itemEventNames = [
  "credential.created",
  "credential.updated",
  "credential.collect_started",
  "credential.submitted",
  "credential.fill_started",
  "credential.filled",
  "credential.passkey_armed",
  "credential.passkey_disarmed",
  "credential.passkey_registered",
] as const;
export type ItemEventName = (typeof itemEventNames)[number];

/** What has happened to an item; never with a value. */
export interface ItemEvent {
  readonly id: string;
  readonly createdAt: Millis;
  readonly name: ItemEventName;
  readonly browserId?: string;
  readonly data?: Readonly<Record<string, unknown>>;
}
