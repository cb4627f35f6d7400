import { hash, timingSafeEqual } from "node:crypto";
import type { Secret } from "./secret.js";

/** Whether a text that somebody shows is the key. */
type KeyCheck = (given: string) => boolean;

/** Compares digests, so that the time taken tells nothing of the key, its length included. */
export function makeKeyCheck(key: Secret): KeyCheck {
  const expected = digest(key.reveal());
  return (given) => timingSafeEqual(digest(given), expected);
}

// Hashes in one call and to text, which comes from the shared pool: a Hash and a Buffer for each request
// would be the garbage collector's largest load.
const digest = (text: string): Buffer => Buffer.from(hash("sha256", text, "base64"), "latin1");
