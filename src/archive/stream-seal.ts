import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from "node:crypto";
import { RemudaError } from "../base/errors.js";
import type { Secret } from "../base/crypto/secret.js";
import { inChunks, type StreamStep } from "./chunks.js";

const cipher = "aes-256-gcm";
const magic = Buffer.from("rmdseal1");
const keyIdBytes = 8;
const saltBytes = 32;
const tagBytes = 16;
const contentBytes = 64 * 1024;
const headerBytes = magic.length + keyIdBytes + saltBytes;

/** Sealed bytes that are not whole, not in order, or were sealed for another owner. */
export class DamagedSeal extends Error {
  constructor() {
    super("what was sealed is damaged");
    this.name = "DamagedSeal";
  }
}

/**
 * Seals streams at rest: `rmdseal1`, key id, salt, then frames of 64 KiB under AES-256-GCM, each with its
 * tag. The key is drawn for each stream anew (HKDF-SHA256 with the salt), so a nonce is the frame's number
 * and whether it is the last: what is cut, moved or taken from another stream does not open (STREAM: Hoang,
 * Reyhanitabar, Rogaway, Vizár 2015).
 */
export class StreamSeal {
  /** Tells one key from another and nothing of it. */
  readonly #keyId: Buffer;

  constructor(private readonly secret: Secret) {
    this.#keyId = this.#draw(Buffer.alloc(0), "remuda stream seal id", keyIdBytes);
  }

  /** `owner` is what the bytes belong to, such as an id: they open for no other. */
  close(owner: string): StreamStep {
    const header = Buffer.concat([magic, this.#keyId, randomBytes(saltBytes)]);
    const key = this.#keyOf(header);
    const seal = (content: Buffer, nonce: Buffer): Buffer => {
      const sealing = createCipheriv(cipher, key, nonce, { authTagLength: tagBytes }).setAAD(
        aad(header, owner),
      );
      return Buffer.concat([sealing.update(content), sealing.final(), sealing.getAuthTag()]);
    };
    return async function* (source) {
      yield header;
      let isEmpty = true;
      for await (const { piece, nonce } of numbered(inChunks(source, contentBytes))) {
        isEmpty = false;
        yield seal(piece, nonce);
      }
      if (isEmpty) yield seal(Buffer.alloc(0), nonceOf(0, true));
    };
  }

  /**
   * Throws `secret_unreadable` where the bytes were sealed with another key, `DamagedSeal` where they do not
   * open. What it yields was checked before.
   */
  open(owner: string): StreamStep {
    const keyOf = (header: Buffer): Buffer => this.#check(header) && this.#keyOf(header);
    return async function* (source) {
      const { header, rest } = await split(source);
      const key = keyOf(header);
      let isEmpty = true;
      for await (const { piece, nonce } of numbered(inChunks(rest, contentBytes + tagBytes))) {
        isEmpty = false;
        yield open(piece, { key, nonce, aad: aad(header, owner) });
      }
      if (isEmpty) throw new DamagedSeal();
    };
  }

  #check(header: Buffer): true {
    if (header.length < headerBytes || !header.subarray(0, magic.length).equals(magic))
      throw new DamagedSeal();
    if (!header.subarray(magic.length, magic.length + keyIdBytes).equals(this.#keyId))
      throw new RemudaError("secret_unreadable");
    return true;
  }

  #keyOf(header: Buffer): Buffer {
    return this.#draw(header.subarray(-saltBytes), "remuda stream seal", 32);
  }

  #draw(salt: Buffer, purpose: string, bytes: number): Buffer {
    return Buffer.from(hkdfSync("sha256", this.secret.reveal(), salt, purpose, bytes));
  }
}

function open(frame: Buffer, { key, nonce, aad }: { key: Buffer; nonce: Buffer; aad: Buffer }): Buffer {
  if (frame.length < tagBytes) throw new DamagedSeal();
  const opening = createDecipheriv(cipher, key, nonce, { authTagLength: tagBytes })
    .setAAD(aad)
    .setAuthTag(frame.subarray(-tagBytes));
  try {
    return Buffer.concat([opening.update(frame.subarray(0, -tagBytes)), opening.final()]);
  } catch {
    throw new DamagedSeal();
  }
}

const aad = (header: Buffer, owner: string): Buffer => Buffer.concat([header, Buffer.from(owner)]);

/** 12 bytes: the frame's number, then 1 for the last. */
function nonceOf(frame: number, isLast: boolean): Buffer {
  const nonce = Buffer.alloc(12);
  nonce.writeUIntBE(frame, 5, 6);
  nonce[11] = isLast ? 1 : 0;
  return nonce;
}

/**
 * Gives each piece its nonce. One piece is held back, since only the next one tells whether it is the last.
 */
async function* numbered(
  source: AsyncIterable<Buffer>,
): AsyncGenerator<{ piece: Buffer; nonce: Buffer }, void> {
  let held: Buffer | undefined;
  let number = 0;
  for await (const piece of source) {
    if (held) yield { piece: held, nonce: nonceOf(number++, false) };
    held = piece;
  }
  if (held) yield { piece: held, nonce: nonceOf(number, true) };
}

/** The first bytes of a stream, and the rest of it. */
async function split(
  source: AsyncIterable<Buffer>,
): Promise<{ header: Buffer; rest: AsyncIterable<Buffer> }> {
  const iterator = source[Symbol.asyncIterator]();
  let first = Buffer.alloc(0);
  while (first.length < headerBytes) {
    const step = await iterator.next();
    if (step.done) break;
    first = Buffer.concat([first, step.value]);
  }
  async function* rest(): AsyncGenerator<Buffer, void> {
    if (first.length > headerBytes) yield first.subarray(headerBytes);
    yield* { [Symbol.asyncIterator]: () => iterator };
  }
  return { header: first.subarray(0, headerBytes), rest: rest() };
}
