/**
 * The summary of a segment's searched texts: a bit for each of their parts of three and of four characters. A
 * text one of whose parts has no bit stands nowhere in the segment. Ids have 24 random characters, so an id
 * that is not there is almost never taken for one that is (DECISIONS.md).
 */
export type NgramFilter = Buffer;

const lengths = [3, 4] as const;
const longest = 4;
const mostBits = 2 ** 20;
const leastBits = 2 ** 13;
/** A summary is halved while it has fewer bits set than one in so many. */
const sparse = 8;

/** FNV-1a: a summary is read by other versions of this program, so the hash never changes. */
function hashOf(text: string, from: number, length: number): number {
  let hash = 0x811c9dc5;
  for (let at = from; at < from + length; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  // The low bits of FNV are its worst, and they are all that is used of it.
  return (hash ^ (hash >>> 15)) >>> 0;
}

export class NgramFilterBuilder {
  readonly #bits = new Uint32Array(mostBits / 32);
  readonly #seen = new Set<string>();

  add(text: string): void {
    if (this.#seen.has(text)) return;
    this.#seen.add(text);
    for (const length of lengths)
      for (let at = 0; at + length <= text.length; at += 1) this.#set(hashOf(text, at, length) % mostBits);
  }

  build(): NgramFilter {
    let words = this.#bits;
    while (words.length * 32 > leastBits && countOf(words) * sparse < words.length * 32)
      words = halved(words);
    const filter = Buffer.alloc(words.length * 4);
    for (const [index, word] of words.entries()) filter.writeUInt32LE(word, index * 4);
    return filter;
  }

  #set(bit: number): void {
    this.#bits[bit >>> 5] = (this.#bits[bit >>> 5] ?? 0) | (1 << (bit & 31));
  }
}

/** Whether a text may stand in the segment; true of one that is shorter than any part. */
export function mayHold(filter: NgramFilter, text: string): boolean {
  // Where a text has parts of four characters, those of three tell nothing more.
  const length = Math.min(text.length, longest);
  if (length < lengths[0]) return true;
  const bits = filter.length * 8;
  for (let at = 0; at + length <= text.length; at += 1) {
    const bit = hashOf(text, at, length) % bits;
    if (((filter[bit >> 3] ?? 0) & (1 << (bit & 7))) === 0) return false;
  }
  return true;
}

/** A hash's place among half as many bits is its place among all of them, less the half. */
const halved = (words: Uint32Array<ArrayBuffer>): Uint32Array<ArrayBuffer> => {
  const half = words.length / 2;
  return words.slice(0, half).map((word, index) => word | (words[half + index] ?? 0));
};

/** Hacker's Delight, 5-1. */
function countOf(words: Uint32Array): number {
  let count = 0;
  for (const word of words) {
    const pairs = word - ((word >>> 1) & 0x55555555);
    const nibbles = (pairs & 0x33333333) + ((pairs >>> 2) & 0x33333333);
    count += Math.imul((nibbles + (nibbles >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
  }
  return count;
}
