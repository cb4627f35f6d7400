import { createHmac, hash, randomBytes } from "node:crypto";
import { crc32 } from "node:zlib";
import { toBase62, toShortBase62 } from "./base62.js";
import { Secret } from "./secret.js";

const prefix = "rmd_";
/** The digits to base 62 that hold 256 bits, and those that hold a CRC-32. */
const [bodyLength, checkLength] = [43, 6];

/**
 * The form of every API key, for scanners of secrets; the last six characters are a checksum of what stands
 * before them. Without a dot, since clients take three dotted parts for a JWT.
 */
export const keyPattern = `${prefix}[0-9A-Za-z]{${bodyLength + checkLength}}`;
const keyForm = new RegExp(`^${keyPattern}$`);
const checkAt = prefix.length + bodyLength;

const checksumOf = (text: string): string => toShortBase62(crc32(text), checkLength);

/** What a key is drawn from, beside the deployment's secret. */
export const newKeySalt = (): string => randomBytes(32).toString("base64url");

/**
 * The API key of a salt. Whoever has the salt alone, or the secret alone, cannot make the key, so that a salt
 * may be kept for a repeat that has to answer the same key (docs/access.md#lost-replies).
 */
export function makeKeyText(secret: Secret, salt: string): Secret {
  const drawn = createHmac("sha256", secret.reveal()).update(`api key ${salt}`).digest();
  const text = prefix + toBase62(drawn, bodyLength);
  return new Secret(text + checksumOf(text));
}

/** Whether a text reads like a key; its checksum is not looked at. */
export const hasKeyForm = (text: string): boolean => keyForm.test(text);

/** Whether a text can be a key at all: a typo is told by the checksum, without a look-up. */
export const isKeyText = (text: string): boolean =>
  hasKeyForm(text) && text.endsWith(checksumOf(text.slice(0, checkAt)));

/**
 * What a key is found by. One round of SHA-256 is enough for 256 random bits, which nobody tries out: slow
 * hashes are for passwords that people choose.
 */
export const keyDigestOf = (text: string): string => hash("sha256", text, "base64url");

/** How a root key begins that a daemon has drawn for itself; the rest is 256 random bits to base 64. */
export const rootPrefix = "rk_";
/** A signed token (RFC 7519) begins with a JSON object to base 64. */
const tokenPrefix = "eyJ";
/** The token of a lease, which stands in each URL of its browser (lease-token.ts). */
const leaseToken = "[\\da-z]{24}\\.[\\w-]{43}";
const prefixes = [prefix, rootPrefix, tokenPrefix];
/**
 * A key may begin after none of these characters, or after a character that is percent-encoded, however
 * often, or after a mask. How it begins is looked at first, so that a long text is not read again from each
 * character.
 */
const startOf = (begins: string, inner: string): string =>
  `(?=${begins})(?:(?<![${inner}])|(?<=%(?:25)*[\\da-fA-F]{2})|(?<=\\.{3}[\\w-]{4}))`;
/** None of a key's characters follows it, unless a mask begins there. */
const end = `(?:(?![\\w-])|(?=(?:${prefixes.join("|")})\\.{3}))`;
const anyKey = new RegExp(
  `${keyPattern}|${startOf(rootPrefix, "\\w-")}${rootPrefix}[\\w-]{43}${end}` +
    `|${startOf(tokenPrefix, "\\w.-")}${tokenPrefix}[\\w-]+\\.[\\w-]+\\.[\\w-]+` +
    `|${startOf(leaseToken, "\\w-")}${leaseToken}${end}`,
  "g",
);
/** Clients and proxies between them encode a text twice at most; each round reads it once more. */
const mostRounds = 16;
/**
 * A text that callers choose, without the keys and tokens that they have put into it. One that is
 * percent-encoded is masked as well, and such a text is told with its letters in plain. Each round takes one
 * spelling off. Where more are left than anybody needs, nothing of the text is told.
 */
export function withoutKeys(text: string): string {
  let plain = withoutPlainKeys(text);
  let shown = plain;
  for (let round = 0; plain.includes("%"); round += 1) {
    const decoded = plain.replaceAll(encodedLetter, letterOf);
    if (decoded === plain) break;
    if (round === mostRounds) return "...";
    plain = withoutPlainKeys(decoded);
    if (plain !== decoded) shown = plain;
  }
  return shown;
}

/** Most texts have nothing of any, which is found out sooner; the last is how the token of a lease ends. */
const mayHoldKeys = new RegExp(`${prefixes.join("|")}|\\.[\\w-]{43}`);
const withoutPlainKeys = (text: string): string =>
  mayHoldKeys.test(text) ? text.replaceAll(anyKey, maskOf) : text;

/** `%41`, or `%2541` where it was encoded twice: another spelling of `A` (RFC 3986, 2.3). */
const encodedLetter = /%(?:25)*(2[de]|3\d|[46][1-9a-f]|[57][\da]|5f)/gi;
const letterOf = (_: string, code: string): string => String.fromCharCode(Number.parseInt(code, 16));

/** What is shown of a key ever after. */
export const maskOf = (text: string): string =>
  `${prefixes.find((any) => text.startsWith(any)) ?? ""}...${text.slice(-4)}`;
