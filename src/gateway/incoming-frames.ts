/** The payload of a frame of this length or more is unmasked as it comes, not at once when it is whole. */
const longBytes = 64 * 1024;
/** Each piece of a message is kept as an object of its own until the message is whole. */
const pieceBytes = 256;
const longestHead = 14;

/**
 * Follows the frames of one client (RFC 6455, 5.2) in what its socket gives, before ws reads it: counts what
 * is kept of a message that is not whole, and unmasks long frames piece by piece, in place, with a mask of
 * zeros left for ws. What is wrong with a frame is for ws to say.
 */
export class IncomingFrames {
  readonly #head = new Uint8Array(longestHead);
  readonly #chunks: Buffer[] = [];
  readonly #places: number[] = [];
  #headBytes = 0;
  #left = 0;
  #isControl = false;
  #isLast = false;
  #mask: readonly number[] | undefined;
  #masked = 0;
  #unfinishedBytes = 0;
  #messages = 0;

  /** The messages of which the end was received. */
  get messages(): number {
    return this.#messages;
  }

  /** What was received of a message whose end is still to come. */
  get unfinishedBytes(): number {
    return this.#unfinishedBytes;
  }

  /** The next bytes; those of a long frame are changed. */
  take(chunk: Buffer): void {
    for (let at = 0; at < chunk.length;) {
      at = this.#left > 0 ? this.#payload(chunk, at) : this.#headByte(chunk, at);
    }
  }

  #headByte(chunk: Buffer, at: number): number {
    this.#chunks[this.#headBytes] = chunk;
    this.#places[this.#headBytes] = at;
    this.#head[this.#headBytes] = chunk[at] ?? 0;
    this.#headBytes += 1;
    if (this.#headBytes === this.#headLength()) this.#begin();
    return at + 1;
  }

  #headLength(): number {
    if (this.#headBytes < 2) return longestHead;
    return this.#maskAt() + (this.#isMasked() ? 4 : 0);
  }

  #maskAt(): number {
    const length = (this.#head[1] ?? 0) & 0x7f;
    if (length < 126) return 2;
    return length === 126 ? 4 : 10;
  }

  #isMasked = (): boolean => ((this.#head[1] ?? 0) & 0x80) !== 0;

  #begin(): void {
    const [first = 0] = this.#head;
    this.#isLast = (first & 0x80) !== 0;
    this.#isControl = (first & 0x0f) >= 8;
    this.#left = this.#length();
    this.#mask = this.#isMasked() && this.#left >= longBytes ? this.#takeMask() : undefined;
    this.#masked = 0;
    this.#headBytes = 0;
    this.#chunks.length = 0;
    if (!this.#isControl) this.#unfinishedBytes += pieceBytes;
    if (this.#left === 0) this.#end();
  }

  #length(): number {
    const view = new DataView(this.#head.buffer);
    const short = (this.#head[1] ?? 0) & 0x7f;
    if (short < 126) return short;
    return short === 126 ? view.getUint16(2) : Number(view.getBigUint64(2));
  }

  #takeMask(): number[] {
    const start = this.#maskAt();
    return [0, 1, 2, 3].map((turn) => {
      const chunk = this.#chunks[start + turn];
      const place = this.#places[start + turn] ?? 0;
      const byte = chunk?.[place] ?? 0;
      if (chunk) chunk[place] = 0;
      return byte;
    });
  }

  #payload(chunk: Buffer, start: number): number {
    const end = Math.min(chunk.length, start + this.#left);
    if (this.#mask) this.#unmask(chunk, { start, end, mask: this.#mask });
    this.#left -= end - start;
    if (!this.#isControl) this.#unfinishedBytes += end - start + pieceBytes;
    if (this.#left === 0) this.#end();
    return end;
  }

  #unmask(
    chunk: Buffer,
    { start, end, mask }: { start: number; end: number; mask: readonly number[] },
  ): void {
    const turn = this.#masked;
    const byte = (at: number): number => mask[(turn + at - start) & 3] ?? 0;
    const oneByOne = (from: number, to: number): void => {
      for (let at = from; at < to; at += 1) chunk[at] = (chunk[at] ?? 0) ^ byte(at);
    };
    // Most of it by words of four bytes, which have to begin at a multiple of four in memory.
    const first = Math.min(end, start + (-(chunk.byteOffset + start) & 3));
    const words = new Int32Array(chunk.buffer, chunk.byteOffset + first, (end - first) >> 2);
    const word = new Int32Array(Uint8Array.of(...[0, 1, 2, 3].map((at) => byte(first + at))).buffer)[0] ?? 0;
    oneByOne(start, first);
    for (let at = 0; at < words.length; at += 1) words[at] = (words[at] ?? 0) ^ word;
    oneByOne(first + words.length * 4, end);
    this.#masked = (turn + end - start) & 3;
  }

  #end(): void {
    if (!this.#isLast || this.#isControl) return;
    this.#unfinishedBytes = 0;
    this.#messages += 1;
  }
}
