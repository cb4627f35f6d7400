import { type FairTurn, turns } from "../../base/fair-turns.js";

const quote = 0x22;
const comma = 0x2c;
const backslash = 0x5c;
const openArray = 0x5b;
const closeArray = 0x5d;
const openObject = 0x7b;
const closeObject = 0x7d;

/** The text outside of lists is parsed at once; this much takes some 10 ms. */
const longestRestBytes = 2 * 1024 * 1024;
/** Reading this much takes some 0.1 ms. */
const pieceBytes = 64 * 1024;

interface ListText {
  /** How many objects and arrays a list is in, itself included: 1 where the text is one list. */
  readonly depth: number;
  /** The bytes of the text, in their order. */
  readonly parts: readonly Buffer[];
}

/**
 * Reads a JSON text element by element of its long lists, in turns of the event loop: 32 MiB parsed at once
 * would keep everybody waiting. Throws where it is no JSON, and where too much stands outside of lists.
 */
export async function readLists({ depth, parts }: ListText, turn: FairTurn = turns.open()): Promise<unknown> {
  const lists = new Lists(depth);
  for (const part of parts) {
    for (let at = 0; at < part.length; at += pieceBytes) {
      await turn.come();
      turn.run(() => lists.take(part.subarray(at, at + pieceBytes)));
    }
  }
  return turn.run(() => lists.end());
}

class Lists {
  readonly #elements: unknown[] = [];
  /** The text in which each element is replaced by its index in `#elements`. */
  #rest = "";
  /** The bytes of the element that is being read; undefined outside of lists. */
  #element: Buffer[] | undefined;
  #depth = 0;
  #isInString = false;
  #isEscaped = false;

  constructor(private readonly listDepth: number) {}

  take(piece: Buffer): void {
    let from = 0;
    for (let at = this.#readString(piece, 0); at < piece.length; at = this.#readString(piece, at + 1)) {
      const byte = piece[at] ?? 0;
      if (byte === quote) this.#isInString = true;
      if (!this.#isBorder(byte)) continue;
      this.#add(piece.subarray(from, at));
      this.#cross(byte);
      from = at + 1;
    }
    this.#add(piece.subarray(from));
  }

  end(): unknown {
    return this.#filled(JSON.parse(Buffer.from(this.#rest, "latin1").toString()), this.listDepth);
  }

  /**
   * Skips the rest of a string, where the text is inside one. Gives the position after it, or the end of the
   * piece.
   */
  #readString(piece: Buffer, start: number): number {
    if (!this.#isInString) return start;
    for (let at = start; at < piece.length; at += 1) {
      const byte = piece[at];
      if (this.#isEscaped) this.#isEscaped = false;
      else if (byte === backslash) this.#isEscaped = true;
      else if (byte === quote) {
        this.#isInString = false;
        return at + 1;
      }
    }
    return piece.length;
  }

  /** True where a list or an element begins or ends with this byte, which is outside of strings. */
  #isBorder(byte: number): boolean {
    if (byte === comma) return this.#element !== undefined && this.#depth === this.listDepth;
    if (byte === openArray || byte === openObject) {
      this.#depth += 1;
      return byte === openArray && this.#depth === this.listDepth;
    }
    if (byte !== closeArray && byte !== closeObject) return false;
    this.#depth -= 1;
    return this.#element !== undefined && this.#depth < this.listDepth;
  }

  #cross(byte: number): void {
    this.#endElement();
    this.#rest += String.fromCharCode(byte);
    this.#element = byte === closeArray ? undefined : [];
  }

  #endElement(): void {
    if (!this.#element) return;
    const text = Buffer.concat(this.#element).toString();
    // A list may be empty.
    if (text.trim() !== "") this.#rest += this.#elements.push(JSON.parse(text)) - 1;
  }

  #add(bytes: Buffer): void {
    if (this.#element) this.#element.push(bytes);
    else this.#rest += bytes.toString("latin1");
    if (this.#rest.length > longestRestBytes) throw new Error("too much stands outside of lists");
  }

  #filled(value: unknown, depth: number): unknown {
    if (typeof value !== "object" || value === null) return value;
    if (Array.isArray(value))
      return value.map((inner: unknown) =>
        depth === 1 ? this.#elements[Number(inner)] : this.#filled(inner, depth - 1),
      );
    if (depth === 1) return value;
    return Object.fromEntries(
      Object.entries(value).map(([key, inner]) => [key, this.#filled(inner, depth - 1)]),
    );
  }
}
