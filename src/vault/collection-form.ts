import type { JWK } from "jose";
import type { VaultId } from "../base/ids.js";

/** One input of the form, in the order of the item's fields. A sensitive value is never in it. */
export interface FormField {
  readonly name: string;
  readonly type: "text" | "email" | "password";
  readonly label: string | null;
  readonly required: boolean;
  readonly sensitive: boolean;
  readonly hasValue: boolean;
  /** What the input is prefilled with; null where nothing is stored, and for every sensitive field. */
  readonly value: string | null;
}

/** The key that the page encrypts values for, as GET /vaults/{id_or_name}/encryption_key answers it. */
export interface EncryptionKey {
  readonly alg: "ECDH-ES";
  readonly enc: "A256GCM";
  readonly kid: string;
  readonly jwk: JWK;
}

/**
 * Why a link opens no form: nothing is known of it or its item is deleted (gone), its 30 minutes are over,
 * the item has changed since, or it was submitted.
 */
export type FormEnd = { readonly kind: "gone" | "expired" | "replaced" | "used" };

export interface OpenForm {
  readonly kind: "form";
  /** The item's description; empty where it has none. */
  readonly title: string;
  readonly vaultName: string;
  /** Which item it is: for the audit log, and never for the page. */
  readonly item: { readonly vault: VaultId; readonly key: string };
  readonly fields: readonly FormField[];
  /** The version of the item that the form shows, to be sent back with the values. */
  readonly version: number;
  readonly encryptionKey: EncryptionKey;
  readonly expiresAt: number;
}

export interface Submission {
  readonly version: number;
  /**
   * Compact JWEs by the names of the fields that were changed; no entry keeps what is stored. The protected
   * header of each has `field`, its field's name, and `link`, the SHA-256 of the token in base64url, beside
   * `alg`, `enc` and `kid`: what was encrypted for a password is so refused for a field that can be read.
   */
  readonly values: Readonly<Record<string, string>>;
}

/** What is wrong with one value: it has to be there, is no address, is too long, or can not be decrypted. */
export interface FieldFault {
  readonly name: string;
  readonly fault: "required" | "invalid_email" | "too_long" | "undecryptable";
}

export type Submitted =
  | { readonly kind: "done" }
  | { readonly kind: "invalid"; readonly fields: readonly FieldFault[] }
  | FormEnd;

/**
 * What the hosted form asks of the vault. The token is that of the link's fragment, whatever text it is.
 * Opening never consumes a link; a submission consumes it in the script that writes the values. The same
 * submission once more answers what the first did, and another one `used`.
 */
export interface CollectionForms {
  open(token: string): Promise<OpenForm | FormEnd>;
  submit(token: string, submission: Submission): Promise<Submitted>;
}
