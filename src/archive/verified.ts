import { createHash } from "node:crypto";
import { Transform } from "node:stream";
import type { Digest } from "../base/ids.js";

/** Bytes that are not what they are called. */
export class WrongDigest extends Error {
  constructor(readonly digest: Digest) {
    super(`the bytes of archive ${digest} are not its own`);
    this.name = "WrongDigest";
  }
}

/** Passes bytes on and fails instead of ending where they are not the digest's. */
export function verifyDigest(digest: Digest): Transform {
  const hash = createHash("sha256");
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      hash.update(chunk);
      done(null, chunk);
    },
    flush(done) {
      done(hash.digest("hex") === digest ? null : new WrongDigest(digest));
    },
  });
}
