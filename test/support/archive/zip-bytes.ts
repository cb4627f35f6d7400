import { crc32, deflateRawSync } from "node:zlib";

/** An entry of an archive as a test wants it, true or not. */
export interface ZipPart {
  readonly name: string | Buffer;
  readonly content?: string | Buffer;
  /** The mode of Unix: the bits of the type, and the permissions. */
  readonly mode?: number;
  readonly flags?: number;
  /** The method in its header; by default 8, and then the content is deflated. */
  readonly method?: number;
  /** What is said of it in the directory, in place of what is so. */
  readonly lies?: {
    readonly size?: number;
    readonly packedSize?: number;
    readonly crc?: number;
    readonly localName?: string;
    readonly offset?: number;
  };
  /** Written into an extra field of 64 bits, and 32 ones where they usually stand. */
  readonly zip64?: { readonly size: bigint; readonly packedSize: bigint };
}

/**
 * The bytes of an archive, whatever it says; `zip64End`: where its directory is said to begin, by a record of
 * 64 bits, which is said to be at `zip64At`.
 */
export function zipBytes(
  parts: readonly ZipPart[],
  more: { readonly comment?: string; readonly zip64End?: bigint; readonly zip64At?: bigint } = {},
): Buffer {
  const bodies: Buffer[] = [];
  const directory: Buffer[] = [];
  let at = 0;
  for (const part of parts) {
    const packed = packedOf(part);
    const body = Buffer.concat([headerOf(part, packed), packed]);
    directory.push(recordOf(part, packed, at));
    bodies.push(body);
    at += body.length;
  }
  const records = Buffer.concat(directory);
  return Buffer.concat([
    ...bodies,
    records,
    ...zip64Of(more.zip64End, more.zip64At ?? BigInt(at + records.length)),
    endOf(parts.length, { records: records.length, at, comment: more.comment ?? "" }),
  ]);
}

const contentOf = ({ content = "" }: ZipPart): Buffer => Buffer.from(content as string);
const packedOf = (part: ZipPart): Buffer =>
  (part.method ?? 8) === 8 ? deflateRawSync(contentOf(part)) : contentOf(part);
const nameOf = (name: string | Buffer): Buffer => Buffer.from(name as string);
const u16 = (value: number): Buffer => Buffer.from([value & 0xff, (value >> 8) & 0xff]);
function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value >>> 0);
  return bytes;
}
function u64(value: bigint): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(value);
  return bytes;
}

function factsOf(part: ZipPart, packed: Buffer): Buffer {
  const { lies = {}, flags = 0x800, method = 8, zip64 } = part;
  const content = contentOf(part);
  const sizes = zip64
    ? [0xffffffff, 0xffffffff]
    : [lies.packedSize ?? packed.length, lies.size ?? content.length];
  return Buffer.concat([
    u16(20),
    u16(flags),
    u16(method),
    u16(0),
    u16(0x21),
    u32(lies.crc ?? crc32(content)),
    ...sizes.map(u32),
  ]);
}

function headerOf(part: ZipPart, packed: Buffer): Buffer {
  const name = nameOf(part.lies?.localName ?? part.name);
  return Buffer.concat([u32(0x04034b50), factsOf(part, packed), u16(name.length), u16(0), name]);
}

function recordOf(part: ZipPart, packed: Buffer, at: number): Buffer {
  const name = nameOf(part.name);
  const extra = part.zip64
    ? Buffer.concat([u16(1), u16(16), u64(part.zip64.size), u64(part.zip64.packedSize)])
    : Buffer.alloc(0);
  const attributes = (part.mode ?? 0o100644) * 0x10000;
  return Buffer.concat([
    u32(0x02014b50),
    u16(0x031e),
    factsOf(part, packed),
    u16(name.length),
    u16(extra.length),
    u16(0),
    u16(0),
    u16(0),
    u32(attributes),
    u32(part.lies?.offset ?? at),
    name,
    extra,
  ]);
}

function zip64Of(start: bigint | undefined, at: bigint): Buffer[] {
  if (start === undefined) return [];
  const record = Buffer.concat([
    u32(0x06064b50),
    u64(44n),
    u16(45),
    u16(45),
    u32(0),
    u32(0),
    u64(1n),
    u64(1n),
    u64(46n),
    u64(start),
  ]);
  return [record, u32(0x07064b50), u32(0), u64(at), u32(1)];
}

const endOf = (
  count: number,
  { records, at, comment }: { records: number; at: number; comment: string },
): Buffer =>
  Buffer.concat([
    u32(0x06054b50),
    u16(0),
    u16(0),
    u16(count),
    u16(count),
    u32(records),
    u32(at),
    u16(comment.length),
    Buffer.from(comment),
  ]);

export const manifest = { manifest_version: 3, name: "Marks pages", version: "1.0" } as const;
const manifestPart = (more: object = {}): ZipPart => ({
  name: "manifest.json",
  content: JSON.stringify({ ...manifest, ...more }),
});

/** An archive that is as it should be, but for what is added. */
export const extensionZip = (parts: readonly ZipPart[] = [], more: object = {}): Buffer =>
  zipBytes([manifestPart(more), ...parts]);
