import { createPrivateKey } from "node:crypto";
import { decodeBase32 } from "../../base/crypto/totp.js";
import { isRegistrable } from "../../base/net/public-suffix.js";
import { isRecord } from "../../base/is-record.js";
import { credentialBounds, type FieldType } from "./credential.js";

/** What the HTML standard takes as the value of an input of type email. */
const emailPattern =
  /^[a-zA-Z0-9.!#$%&'*+/=?^_`{|}~-]+@[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)*$/;
const emailLength = 254;

/** Why a value is none for a field of this type, to be read after the field's name; nothing of it is told. */
export function valueFault(type: FieldType, value: string): string | undefined {
  if (value === "") return "must not be empty";
  if (Buffer.byteLength(value) > credentialBounds.valueBytes)
    return `must have at most ${credentialBounds.valueBytes} bytes`;
  return checks[type]?.(value);
}

export const isEmail = (text: string): boolean => text.length <= emailLength && emailPattern.test(text);

const checks: Readonly<Partial<Record<FieldType, (value: string) => string | undefined>>> = {
  email: (value) => (isEmail(value) ? undefined : "must be an e-mail address"),
  totp: (value) =>
    decodeBase32(value) ? undefined : "must be the generator's seed in Base32, neither a code nor a URI",
  passkey: passkeyFault,
};

function passkeyFault(value: string): string | undefined {
  const passkey = parsePasskey(value);
  if (!passkey)
    return `must be a portable passkey as JSON, with a P-256 key as PKCS #8 and a counter up to ${mostSignCount}`;
  const { rpId } = passkey;
  // No browser takes one of a public suffix (WebAuthn, "Relying Party Identifier"); localhost is none's.
  return rpId === "localhost" || isRegistrable(rpId)
    ? undefined
    : "must be for a site, not for a public suffix";
}

/** A passkey as the FIDO Credential Exchange Format 1.0 has it; what is binary is base64url, unpadded. */
export interface Passkey {
  readonly credentialId: string;
  readonly rpId: string;
  readonly userName: string;
  readonly userDisplayName: string;
  readonly userHandle: string;
  /** PKCS #8, DER. */
  readonly privateKey: string;
  /** What the next assertion counts on from; the format itself has none. */
  readonly signCount: number;
}

/** Chromium 156 takes no higher one, though WebAuthn has them up to 2^32 - 1. */
export const mostSignCount = 2 ** 31 - 1;

const base64url = /^[A-Za-z0-9_-]+$/;
const bytesIn = (text: string): number => (base64url.test(text) ? Buffer.from(text, "base64url").length : 0);
const isWithin = (count: number, most: number): boolean => count >= 1 && count <= most;
/** A registrable domain or one below it, as far as its form tells. */
const domain =
  /^(?=.{1,253}$)(?:localhost|(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z][a-z0-9-]{0,61}[a-z0-9])$/;

/** Undefined where the text is none, or has a key of another kind. Unknown properties are ignored. */
export function parsePasskey(text: string): Passkey | undefined {
  const found = recordIn(text);
  if (!found || (found["type"] !== undefined && found["type"] !== "passkey")) return undefined;
  const [credentialId, rpId, userHandle, privateKey] = ["credentialId", "rpId", "userHandle", "key"].map(
    (name) => textIn(found, name),
  );
  if (!credentialId || !rpId || !userHandle || !privateKey) return undefined;
  const isSound =
    isWithin(bytesIn(credentialId), 1023) && isWithin(bytesIn(userHandle), 64) && domain.test(rpId);
  const signCount = found["signCount"] ?? found["counter"] ?? 0;
  const isCount = typeof signCount === "number" && Number.isInteger(signCount) && signCount >= 0;
  if (!isSound || !isCount || signCount > mostSignCount || !isP256(privateKey)) return undefined;
  const userName = textIn(found, "username") ?? "";
  const userDisplayName = textIn(found, "userDisplayName") ?? "";
  return { credentialId, rpId, userName, userDisplayName, userHandle, privateKey, signCount };
}

/** The same as text. Nothing else that came with it is kept: what is beside it there is the vault's own. */
export const passkeyText = ({ privateKey, userName: username, ...passkey }: Passkey): string =>
  JSON.stringify({ type: "passkey", ...passkey, username, key: privateKey });

/** A value as it is kept. */
export function keptText(type: FieldType, value: string): string {
  const passkey = type === "passkey" ? parsePasskey(value) : undefined;
  return passkey ? passkeyText(passkey) : value;
}

function recordIn(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const found: unknown = JSON.parse(text);
    return isRecord(found) ? found : undefined;
  } catch {
    return undefined;
  }
}

const textIn = (found: Readonly<Record<string, unknown>>, name: string): string | undefined => {
  const value = found[name];
  return typeof value === "string" ? value : undefined;
};

function isP256(text: string): boolean {
  if (!base64url.test(text)) return false;
  try {
    const key = createPrivateKey({ key: Buffer.from(text, "base64url"), format: "der", type: "pkcs8" });
    return key.asymmetricKeyDetails?.namedCurve === "prime256v1";
  } catch {
    return false;
  }
}
