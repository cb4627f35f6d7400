import { createHash } from "node:crypto";

type Crx =
  /** The offset of the zip, and the id that the file claims. */
  | { readonly kind: "crx"; readonly zipStart: number; readonly extension: string }
  | { readonly kind: "faulty"; readonly fault: string };

/** `readCrx` wants this much of a file's beginning: its headers are of some KiB. */
export const crxHeadBytes = 1024 * 1024;

const faulty = (fault: string): Crx => ({ kind: "faulty", fault });
const zipMagic = 0x04034b50;

/**
 * Reads the head of a packed extension, versions 2 and 3. The signatures are not verified: what it came
 * through is trusted.
 */
export function readCrx(head: Buffer): Crx {
  if (head.length < 16 || head.toString("latin1", 0, 4) !== "Cr24")
    return faulty("is not a packed extension");
  const version = head.readUInt32LE(4);
  const parts = version === 3 ? partsOf3(head) : version === 2 ? partsOf2(head) : undefined;
  if (!parts) return faulty(`is packed in version ${version}, or its header is damaged`);
  if (parts.zipStart + 4 > head.length || head.readUInt32LE(parts.zipStart) !== zipMagic)
    return faulty("has no zip archive after its header");
  return { kind: "crx", ...parts };
}

interface CrxParts {
  readonly zipStart: number;
  readonly extension: string;
}

/** Magic, version, lengths of key and signature, both, zip. An extension is called by the hash of its key. */
function partsOf2(head: Buffer): CrxParts | undefined {
  const keyEnd = 16 + head.readUInt32LE(8);
  const zipStart = keyEnd + head.readUInt32LE(12);
  if (keyEnd === 16 || zipStart > head.length) return undefined;
  return {
    zipStart,
    extension: lettersOf(createHash("sha256").update(head.subarray(16, keyEnd)).digest().subarray(0, 16)),
  };
}

/** Magic, version, length of a CrxFileHeader, that, zip (Chromium, components/crx_file/crx3.proto). */
function partsOf3(head: Buffer): CrxParts | undefined {
  const zipStart = 12 + head.readUInt32LE(8);
  if (zipStart > head.length) return undefined;
  const signed = findBytes(head.subarray(12, zipStart), signedHeaderField);
  const id = signed && findBytes(signed, idField);
  return id?.length === 16 ? { zipStart, extension: lettersOf(id) } : undefined;
}
const signedHeaderField = 10_000;
const idField = 1;

export interface SignedCrx {
  readonly key: Buffer;
  readonly signature: Buffer;
  /** What is signed beside the zip: it holds the id. */
  readonly header: Buffer;
}

/** `sha256_with_rsa` and `sha256_with_ecdsa` of a CrxFileHeader. */
const proofFields: readonly number[] = [2, 3];

/** The proof of version 3 by the key that the id is the hash of; others are of whoever passed it on. */
export function findSigned(head: Buffer): SignedCrx | undefined {
  if (head.readUInt32LE(4) !== 3) return undefined;
  const message = head.subarray(12, 12 + head.readUInt32LE(8));
  const header = findBytes(message, signedHeaderField);
  const id = header && findBytes(header, idField);
  if (!header || !id) return undefined;
  for (const proof of fieldsOf(message).filter(({ field }) => proofFields.includes(field))) {
    const [key, signature] = [findBytes(proof.bytes, 1), findBytes(proof.bytes, 2)];
    if (key && signature && createHash("sha256").update(key).digest().subarray(0, 16).equals(id))
      return { key, signature, header };
  }
  return undefined;
}

/** Sixteen letters would do for hexadecimal digits: Chromium takes a to p. */
const lettersOf = (bytes: Buffer): string =>
  bytes
    .toString("hex")
    .replaceAll(/./g, (digit) => String.fromCharCode("a".charCodeAt(0) + Number.parseInt(digit, 16)));

/**
 * The first field of that number in a protocol buffer of nothing but byte fields; undefined where it is none.
 */
const findBytes = (message: Buffer, wanted: number): Buffer | undefined =>
  fieldsOf(message).find(({ field }) => field === wanted)?.bytes;

/** All up to the first that is no byte field. */
function fieldsOf(message: Buffer): readonly { readonly field: number; readonly bytes: Buffer }[] {
  const found: { field: number; bytes: Buffer }[] = [];
  for (let at = 0; at < message.length;) {
    const tag = readNumber(message, at);
    const length = tag && readNumber(message, tag.end);
    if (!length || tag.value % 8 !== 2 || length.end + length.value > message.length) break;
    at = length.end + length.value;
    found.push({ field: Math.floor(tag.value / 8), bytes: message.subarray(length.end, at) });
  }
  return found;
}

/** Reads a protobuf varint: seven bits a byte, the least first, 32 bits at most. */
function readNumber(
  message: Buffer,
  start: number,
): { readonly value: number; readonly end: number } | undefined {
  let value = 0;
  for (let at = start; at < Math.min(start + 5, message.length); at += 1) {
    const byte = message[at] ?? 0;
    value += (byte % 128) * 2 ** (7 * (at - start));
    if (byte < 128) return { value, end: at + 1 };
  }
  return undefined;
}
