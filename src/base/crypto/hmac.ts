import { hash } from "node:crypto";
import type { Secret } from "./secret.js";

/** The block of SHA-256, and the bytes with which both keys are made of the secret (RFC 2104, 2). */
const blockBytes = 64;
const [innerPad, outerPad] = [0x36, 0x5c];

interface HmacState {
  readonly inner: Buffer;
  readonly outer: Buffer;
}
const hmacs = new WeakMap<Secret, HmacState>();

/**
 * HMAC-SHA256 in base64url, of a text of ASCII. Two hashes in one call each take a third of the time that an
 * `Hmac` of Node.js does, which is an object for each text.
 */
export function hmacOf(secret: Secret, text: string): string {
  const { inner, outer } = keysOf(secret);
  const end = blockBytes + text.length;
  const message = end <= inner.length ? inner.subarray(0, end) : Buffer.alloc(end);
  if (end > inner.length) inner.copy(message, 0, 0, blockBytes);
  message.write(text, blockBytes, "latin1");
  outer.write(hash("sha256", message, "binary"), blockBytes, "latin1");
  return hash("sha256", outer, "base64url");
}

/** Each key has room behind it: for a text that is no longer than most, and for a digest. */
const usualBytes = 128;
const digestBytes = 32;

function keysOf(secret: Secret): HmacState {
  const known = hmacs.get(secret);
  if (known) return known;
  const text = Buffer.from(secret.reveal());
  const key = text.length > blockBytes ? hash("sha256", text, "buffer") : text;
  const keyWith = (pad: number, room: number): Buffer => {
    const made = Buffer.alloc(blockBytes + room, 0);
    made.fill(pad, 0, blockBytes);
    key.forEach((byte, at) => (made[at] = byte ^ pad));
    return made;
  };
  const made = { inner: keyWith(innerPad, usualBytes), outer: keyWith(outerPad, digestBytes) };
  hmacs.set(secret, made);
  return made;
}
