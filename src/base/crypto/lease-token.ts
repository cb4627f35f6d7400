import { timingSafeEqual } from "node:crypto";
import { type BrowserId, findLeaseId, type LeaseId } from "../ids.js";
import { hmacOf } from "./hmac.js";
import type { Secret } from "./secret.js";

/**
 * The token in every URL handed out: `<lease>.<HMAC-SHA256 of session and lease under the cluster secret>`.
 * Redis holds no token, and the same lease gives the same URL after a restart (docs/api.md#cdp-urls).
 */
export const tokenOf = (secret: Secret, browser: BrowserId, lease: LeaseId): string =>
  `${lease}.${signature(secret, browser, lease)}`;

/**
 * The lease a token was made for, or `undefined` where it was not made by us for this browser. Constant time.
 */
export function leaseOfToken(secret: Secret, browser: BrowserId, token: string): LeaseId | undefined {
  const [leaseText = "", given = "", ...rest] = token.split(".");
  const lease = findLeaseId(leaseText);
  if (!lease || rest.length > 0) return undefined;
  const expected = Buffer.from(signature(secret, browser, lease));
  const actual = Buffer.from(given);
  return actual.length === expected.length && timingSafeEqual(actual, expected) ? lease : undefined;
}

const signature = (secret: Secret, browser: BrowserId, lease: LeaseId): string =>
  hmacOf(secret, `${browser}.${lease}`);
