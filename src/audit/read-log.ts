import { isArchiveMissing } from "../archive/archives.js";
import type { AuditStore } from "./audit-store.js";
import { type Entry, instantOf, longestMs, type Position, positionAt } from "./entry.js";
import { type AuditFilter, isSearch, mayBeFound, mayBeIn, selectorOf } from "./filter.js";
import type { SealedSegment, SegmentRows } from "./segment.js";
import type { SegmentFiles } from "./segment-files.js";
import { isStoreAway } from "../base/store-fault.js";
import { yieldTurn } from "../base/yield-turn.js";

export interface LogParts {
  readonly store: Pick<AuditStore, "newest" | "aheadMs" | "manifest" | "segments">;
  readonly files: Pick<SegmentFiles, "rows" | "grams">;
}

const entriesAtOnce = 500;
const segmentsAtOnce = 100;

/**
 * The entries that a filter selects, newest first, those before a position; some at a time, perhaps none. The
 * newest part is read before the manifest: what is sealed meanwhile is in one of them at least, and is told
 * once, since positions only go down.
 */
export async function* readLog(
  { store, files }: LogParts,
  filter: AuditFilter,
  before: Position | undefined,
): AsyncGenerator<readonly Entry[], void> {
  const isSelected = selectorOf(filter);
  const last = positionAt(filter.end + longestMs + (await store.aheadMs()));
  let at = before !== undefined && before < last ? before : last;
  for (let isFull = true; isFull;) {
    const entries = await store.newest(at, filter.start, entriesAtOnce);
    isFull = entries.length === entriesAtOnce;
    at = entries.at(-1)?.position ?? at;
    yield entries.filter(isSelected);
  }
  for await (const segment of segmentsBefore(store, at, filter)) {
    if (!mayBeIn(filter, segment)) continue;
    if (isSearch(filter) && !(await mayHoldFound(files, filter, segment))) {
      // Whoever reads may have had enough.
      yield [];
      continue;
    }
    const rows = await files.rows(segment).catch((error: unknown) => unlessDropped(store, segment, error));
    if (rows) yield* rowsBefore(rows, at, isSelected);
  }
}

/**
 * A summary that is lost saves nothing: the entries themselves are looked at. Where the store of archives
 * does not answer it has been waited for, and would be once more for them.
 */
async function mayHoldFound(
  files: LogParts["files"],
  filter: AuditFilter,
  segment: SealedSegment,
): Promise<boolean> {
  const grams = await files.grams(segment).catch((error: unknown) => {
    if (isStoreAway(error)) throw error;
    return undefined;
  });
  return grams === undefined || mayBeFound(filter, grams);
}

/** Retention may take a segment away that is about to be read. */
export async function unlessDropped(
  store: Pick<AuditStore, "manifest">,
  { number }: SealedSegment,
  error: unknown,
): Promise<undefined> {
  if (isArchiveMissing(error) && (await store.manifest()).first > number) return undefined;
  throw error;
}

/** Segments that have entries before a position and not before the filter's start, newest first. */
async function* segmentsBefore(
  store: LogParts["store"],
  before: Position,
  { start }: AuditFilter,
): AsyncGenerator<SealedSegment, void> {
  const { first, last } = await store.manifest();
  let to = await lastBefore(store, { first, last }, before);
  while (to >= first) {
    const from = Math.max(first, to - segmentsAtOnce + 1);
    const segments = await store.segments(from, to);
    const within = segments.filter((segment) => instantOf(segment.last) >= start);
    yield* within.toReversed();
    if (within.length < segments.length) return;
    to = from - 1;
  }
}

/** The number of the newest segment that begins before a position; `first - 1` where none does. */
async function lastBefore(
  store: LogParts["store"],
  { first, last }: { first: number; last: number },
  before: Position,
): Promise<number> {
  const isBefore = async (number: number): Promise<boolean> => {
    const [segment] = await store.segments(number, number);
    // One that retention has taken away meanwhile was before all others.
    return segment === undefined || segment.first < before;
  };
  let [from, to] = [first - 1, last];
  while (from < to) {
    const middle = from === first - 1 && to === last ? last : Math.ceil((from + to) / 2);
    if (await isBefore(middle)) from = middle;
    else to = middle - 1;
  }
  return from;
}

async function* rowsBefore(
  rows: SegmentRows,
  before: Position,
  isSelected: (entry: Entry) => boolean,
): AsyncGenerator<readonly Entry[], void> {
  for (let to = rows.countBefore(before); to > 0; to -= entriesAtOnce) {
    const indices = Array.from({ length: Math.min(to, entriesAtOnce) }, (_, back) => to - 1 - back);
    yield indices.map((index) => rows.entry(index)).filter(isSelected);
    await yieldTurn();
  }
}
