import { hash, timingSafeEqual } from "node:crypto";
import type { Secret } from "./secret.js";

export type KeyCheck = (authorization: string | undefined) => boolean;

/** Compares digests, so that the time taken tells nothing of the key, its length included. */
export function makeKeyCheck(key: Secret): KeyCheck {
  const expected = digest(key.reveal());
  return (authorization) => {
    const given = /^bearer +(\S+)$/i.exec(authorization ?? "")?.[1];
    return given !== undefined && timingSafeEqual(digest(given), expected);
  };
}

// In one call and through text, which is put into the shared pool: a Hash and a Buffer of its own per request
// would be the collector's largest load.
const digest = (text: string): Buffer => Buffer.from(hash("sha256", text, "base64"), "latin1");
