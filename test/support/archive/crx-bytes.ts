import { createHash, createSign, generateKeyPairSync } from "node:crypto";

const varint = (value: number): Buffer => {
  const bytes: number[] = [];
  for (let left = value; ; left = Math.floor(left / 128)) {
    bytes.push((left % 128) + (left >= 128 ? 128 : 0));
    if (left < 128) return Buffer.from(bytes);
  }
};
const field = (number: number, bytes: Buffer): Buffer =>
  Buffer.concat([varint(number * 8 + 2), varint(bytes.length), bytes]);

const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
const key = publicKey.export({ type: "spki", format: "der" });

/**
 * A packed extension of version 3 with this zip in it, signed for the `signed` one, and named for another key
 * where `id` says so.
 */
export function crxBytes(
  zip: Buffer,
  {
    signed = zip,
    id = createHash("sha256").update(key).digest().subarray(0, 16),
  }: { signed?: Buffer; id?: Buffer } = {},
): Buffer {
  const header = field(1, id);
  const length = Buffer.alloc(4);
  length.writeUInt32LE(header.length);
  const signature = createSign("sha256")
    .update("CRX3 SignedData\0")
    .update(length)
    .update(header)
    .update(signed)
    .sign(privateKey);
  const whole = Buffer.concat([
    field(2, Buffer.concat([field(1, key), field(2, signature)])),
    field(10_000, header),
  ]);
  const prelude = Buffer.from("Cr24\u0003\0\0\0\0\0\0\0", "latin1");
  prelude.writeUInt32LE(whole.length, 8);
  return Buffer.concat([prelude, whole, zip]);
}
