import { createHash } from "node:crypto";
import { promisify } from "node:util";
import { gunzip, gzip } from "node:zlib";
import { type Static, Type } from "typebox";
import { Digest } from "../base/ids.js";
import { parserOf, readonlyList } from "../base/parser.js";
import {
  type Entry,
  entryOfLine,
  lineOf,
  type Position,
  positionInLine,
  PositionText,
  searchedTexts,
} from "./entry.js";
import { NgramFilterBuilder } from "./ngram-filter.js";
import { yieldTurn } from "../base/yield-turn.js";

const pack = promisify(gzip);
const unpack = promisify(gunzip);

const Hash = Type.String({ pattern: "^([0-9a-f]{64})?$" });

/** What the manifest says of a segment: entries that followed one another in the log, sealed. */
const segmentFields = {
  /** They count from 1; the next segment begins where this one ends. */
  number: Type.Integer({ minimum: 1 }),
  first: PositionText,
  last: PositionText,
  count: Type.Integer({ minimum: 1 }),
  /** When the earliest and the latest of its requests were received. */
  from: Type.Number(),
  to: Type.Number(),
  methods: readonlyList(Type.String()),
  strategies: readonlyList(Type.String()),
  /** The archive that holds its entries, and the one that holds its summary. */
  rows: Digest,
  grams: Digest,
  /** The hash of the segment before it; empty for the first. */
  previous: Hash,
};
const Segment = Type.Object(segmentFields);
const SealedSegment = Type.Object({ ...segmentFields, hash: Hash });
export type Segment = Static<typeof Segment>;
/** With the hash over all its fields, which the next segment names. */
export type SealedSegment = Static<typeof SealedSegment>;

export const segmentParser = parserOf("a segment of the audit log", SealedSegment);

export const hashOf = (segment: Segment): string => {
  const fields = Object.keys(segmentFields).map((name) => segment[name as keyof Segment]);
  return createHash("sha256").update(JSON.stringify(fields)).digest("hex");
};

const rowsAtOnce = 1000;

/** A segment's archives: its entries as gzipped lines, oldest first, and its summary. */
export async function packRows(entries: readonly Entry[]): Promise<{ rows: Buffer; grams: Buffer }> {
  const lines: string[] = [];
  const builder = new NgramFilterBuilder();
  for (const [index, entry] of entries.entries()) {
    lines.push(lineOf(entry));
    for (const text of searchedTexts(entry)) builder.add(text);
    if (index % rowsAtOnce === rowsAtOnce - 1) await yieldTurn();
  }
  return { rows: await pack(lines.join("")), grams: builder.build() };
}

/** What the manifest says of these entries, whose archives have these digests. */
export function summaryOf(
  entries: readonly [Entry, ...Entry[]],
  archives: Pick<Segment, "rows" | "grams">,
  after: { readonly number: number; readonly hash: string },
): SealedSegment {
  const times = entries.map(({ at }) => at);
  const segment: Segment = {
    number: after.number + 1,
    first: entries[0].position,
    last: (entries.at(-1) ?? entries[0]).position,
    count: entries.length,
    from: times.reduce((one, other) => Math.min(one, other)),
    to: times.reduce((one, other) => Math.max(one, other)),
    methods: [...new Set(entries.map(({ method }) => method))].sort(),
    strategies: [...new Set(entries.map(({ authStrategy }) => authStrategy))].sort(),
    rows: archives.rows,
    grams: archives.grams,
    previous: after.hash,
  };
  return { ...segment, hash: hashOf(segment) };
}

const newline = 0x0a;

/** The entries of a segment that was read; each is parsed when it is asked for. */
export class SegmentRows {
  /** Where each line begins, and after them where the last one ends. */
  readonly #starts: readonly number[];

  private constructor(private readonly text: Buffer) {
    const starts = [0];
    for (let at = text.indexOf(newline); at >= 0; at = text.indexOf(newline, at + 1)) starts.push(at + 1);
    this.#starts = starts;
  }

  static async of(packed: Buffer): Promise<SegmentRows> {
    return new SegmentRows(await unpack(packed));
  }

  get length(): number {
    return this.#starts.length - 1;
  }
  get sizeBytes(): number {
    return this.text.length;
  }

  entry(index: number): Entry {
    return entryOfLine(this.#line(index).toString());
  }

  /** How many entries stand before a position. */
  countBefore(position: Position): number {
    return this.#countWhile((own) => own < position);
  }

  /** How many entries stand before a position or at it. */
  countThrough(position: Position): number {
    return this.#countWhile((own) => own <= position);
  }

  #countWhile(isCounted: (position: Position) => boolean): number {
    let [from, to] = [0, this.length];
    while (from < to) {
      const middle = (from + to) >> 1;
      if (isCounted(positionInLine(this.#line(middle)))) from = middle + 1;
      else to = middle;
    }
    return from;
  }

  #line(index: number): Buffer {
    return this.text.subarray(this.#starts[index], this.#starts[index + 1]);
  }
}
