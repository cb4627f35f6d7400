import { createHmac } from "node:crypto";
import type { Millis } from "../clock.js";

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const bitsOfCharacter = 5;
/** How many characters a last group of eight may have (RFC 4648, 6). */
const lastGroups: ReadonlySet<number> = new Set([0, 2, 4, 5, 7]);
const groupLength = 8;

/**
 * The bytes of a Base32 text (RFC 4648) in either case, padded or not. Undefined where it is empty, has
 * anything else in it, is padded wrongly, or where bits are set that no byte has: two texts never stand for
 * the same seed.
 */
export function decodeBase32(text: string): Buffer | undefined {
  const given = text.replace(/=+$/, "");
  const padding = text.length - given.length;
  const isPadded = padding > 0;
  // Looked at before the case is folded, since that makes letters of the alphabet of some others.
  if (!/^[A-Za-z2-7]+$/.test(given) || !lastGroups.has(given.length % groupLength)) return undefined;
  const digits = given.toUpperCase();
  if (isPadded && (padding >= groupLength || text.length % groupLength !== 0)) return undefined;
  const bytes = Buffer.alloc(Math.floor((digits.length * bitsOfCharacter) / 8));
  let [held, bits, at] = [0, 0, 0];
  for (const digit of digits) {
    held = (held << bitsOfCharacter) | alphabet.indexOf(digit);
    bits += bitsOfCharacter;
    if (bits < 8) continue;
    bits -= 8;
    bytes[at] = held >> bits;
    at += 1;
    held &= (1 << bits) - 1;
  }
  return held === 0 ? bytes : undefined;
}

const stepMs: Millis = 30_000;
const digitsOfCode = 6;

/** The code of a seed at a time (RFC 6238, SHA-1, 30 s, six digits). */
export function totpCodeOf(seed: Buffer, at: Millis): string {
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(BigInt(Math.floor(at / stepMs)));
  const digest = createHmac("sha1", seed).update(counter).digest();
  const offset = digest.readUInt8(digest.length - 1) & 0x0f;
  const number = (digest.readUInt32BE(offset) & 0x7fff_ffff) % 10 ** digitsOfCode;
  return String(number).padStart(digitsOfCode, "0");
}

/** For how long the code of this time is the present one. */
export const totpLeftMs = (at: Millis): Millis => stepMs - (at % stepMs);
