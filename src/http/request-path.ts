import { withoutKeys } from "../base/crypto/key-text.js";

/**
 * The path of a request's target as it may be told: without its query, which may hold tokens, without an
 * origin, which may hold a password (RFC 9112, 3.2.2), and without keys that were put in the place of an id.
 */
export function pathOf(target: string): string {
  const path = target.startsWith("/") ? target : target.replace(origin, "");
  const end = path.search(/[?#]/);
  return withoutKeys(end < 0 ? path : path.slice(0, end));
}

const origin = /^[a-z][a-z\d+.-]*:\/\/[^/?#]*/i;
