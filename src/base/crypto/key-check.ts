import { hash, timingSafeEqual } from "node:crypto";
import { bearerOf } from "./bearer.js";
import type { Secret } from "./secret.js";

export type KeyCheck = (authorization: string | undefined) => boolean;

/** Compares digests, so that the time taken tells nothing of the key, its length included. */
export function makeKeyCheck(key: Secret): KeyCheck {
  const expected = digest(key.reveal());
  return (authorization) => {
    const given = bearerOf(authorization);
    return given !== undefined && timingSafeEqual(digest(given), expected);
  };
}

// Hashes in one call and to text, which comes from the shared pool: a Hash and a Buffer for each request
// would be the garbage collector's largest load.
const digest = (text: string): Buffer => Buffer.from(hash("sha256", text, "base64"), "latin1");
