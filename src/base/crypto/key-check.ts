import { hash, timingSafeEqual } from "node:crypto";
import type { Secret } from "./secret.js";

/** Whether a text that somebody shows is the key. */
type KeyCheck = (given: string) => boolean;

/** A header with a key of more characters is rare; in UTF-8 each has three bytes at most. */
const longest = 256;
const frameBytes = 3 * longest + 2;

/**
 * Compares as many bytes whatever is shown, so that the time taken tells nothing of the key, its length
 * included. What is longer than most keys are is compared by its digest, which takes ten times as long.
 */
export function makeKeyCheck(key: Secret): KeyCheck {
  const text = key.reveal();
  const [expectedDigest, expected, shown] = [
    digest(text),
    Buffer.alloc(frameBytes),
    Buffer.alloc(frameBytes),
  ];
  const isUsual = text.length <= longest;
  if (isUsual) frame(expected, text);
  return (given) => {
    if (!isUsual || given.length > longest) return timingSafeEqual(digest(given), expectedDigest);
    frame(shown, given);
    return timingSafeEqual(shown, expected);
  };
}

/** The length stands first: what is shown may end with zeros. */
function frame(into: Buffer, text: string): void {
  into.fill(0);
  into.writeUInt16LE(into.write(text, 2), 0);
}

// Hashes in one call and to text, which comes from the shared pool: a Hash and a Buffer for each request
// would be the garbage collector's largest load.
const digest = (text: string): Buffer => Buffer.from(hash("sha256", text, "base64"), "latin1");
