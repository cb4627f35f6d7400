/** Bytes that no zstd of ours has written. */
export class NotZstd extends Error {
  constructor(why: string) {
    super(`is no zstd archive: ${why}`);
    this.name = "NotZstd";
  }
}

/**
 * A frame's content (RFC 8878 leaves it open): small, so that one is held at a time, large enough to compress
 * well.
 */
export const contentBytes = 2 ** 20;
/** What cannot be compressed becomes a little longer. */
const mostBytes = contentBytes + 2 ** 16;

const magic = 0xfd2fb528;
const checksumFlag = 0x04;

/** How long a frame's header is (RFC 8878, 3.1.1.1), as its first five bytes tell. */
function headerBytes(descriptor: number): number {
  const isSingleSegment = (descriptor & 0x20) !== 0;
  const dictionaryId = [0, 1, 2, 4][descriptor & 0x03] ?? 0;
  const contentSize = [isSingleSegment ? 1 : 0, 2, 4, 8][descriptor >> 6] ?? 0;
  return 4 + 1 + (isSingleSegment ? 0 : 1) + dictionaryId + contentSize;
}

/** Finds frames in a stream of them, whose ends only their blocks tell. */
export class ZstdFrames {
  readonly #held = Buffer.allocUnsafe(mostBytes);
  #length = 0;
  /** Where the next block begins; 0 where the frame's header was not read. */
  #at = 0;

  /** The frames that end in these bytes. */
  *push(bytes: Buffer): Generator<Buffer, void> {
    for (let from = 0; from < bytes.length;) {
      const taken = bytes.copy(this.#held, this.#length, from);
      if (taken === 0) throw new NotZstd("a frame is too large");
      from += taken;
      this.#length += taken;
      for (let end = this.#end(); end !== undefined; end = this.#end()) yield this.#cut(end);
    }
  }

  end(): void {
    if (this.#length > 0) throw new NotZstd("it ends within a frame");
  }

  #cut(end: number): Buffer {
    const frame = Buffer.from(this.#held.subarray(0, end));
    this.#held.copyWithin(0, end, this.#length);
    this.#length -= end;
    this.#at = 0;
    return frame;
  }

  #end(): number | undefined {
    if (this.#at === 0 && !this.#readHeader()) return undefined;
    const checksum = ((this.#held[4] ?? 0) & checksumFlag) === 0 ? 0 : 4;
    while (this.#length >= this.#at + 3) {
      const block = this.#held.readUIntLE(this.#at, 3);
      const isLast = (block & 1) === 1;
      const kind = (block >> 1) & 3;
      if (kind === 3) throw new NotZstd("a block is of no known kind");
      // A run of one byte is that byte, whatever its length.
      const end = this.#at + 3 + (kind === 1 ? 1 : block >> 3);
      if (isLast) return end + checksum <= this.#length ? end + checksum : undefined;
      this.#at = end;
    }
    return undefined;
  }

  #readHeader(): boolean {
    if (this.#length < 5) return false;
    if (this.#held.readUInt32LE(0) !== magic) throw new NotZstd("a frame does not begin as one");
    this.#at = headerBytes(this.#held[4] ?? 0);
    return true;
  }
}
