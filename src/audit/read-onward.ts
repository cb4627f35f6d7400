import type { AuditStore, LogManifest } from "./audit-store.js";
import type { Entry, Position } from "./entry.js";
import { unlessDropped } from "./read-log.js";
import type { SealedSegment } from "./segment.js";
import type { SegmentFiles } from "./segment-files.js";

/**
 * The next entries after a position, oldest first: at most so many, and none only where there are none yet.
 * Entries go from the newest part into a segment in one command, so that what was read while nothing was
 * sealed has no gap.
 */
export async function entriesAfter(
  parts: OnwardParts,
  after: Position,
  most: number,
): Promise<readonly Entry[]> {
  for (;;) {
    const entries = await tryAfter(parts, after, most);
    if (entries) return entries;
  }
}

export interface OnwardParts {
  readonly store: Pick<AuditStore, "manifest" | "segments" | "oldest">;
  readonly files: Pick<SegmentFiles, "rows">;
}

/** Undefined where something was sealed, or forgotten, between the looks. */
async function tryAfter(
  { store, files }: OnwardParts,
  after: Position,
  most: number,
): Promise<readonly Entry[] | undefined> {
  const manifest = await store.manifest();
  const segment = await firstEndingAfter(store, manifest, after);
  if (!segment) {
    const entries = await store.oldest(after, most);
    return (await store.manifest()).last === manifest.last ? entries : undefined;
  }
  const rows = await files.rows(segment).catch((error: unknown) => unlessDropped(store, segment, error));
  if (!rows) return undefined;
  const from = rows.countThrough(after);
  const count = Math.min(most, rows.length - from);
  return Array.from({ length: count }, (_, index) => rows.entry(from + index));
}

/** The oldest segment with an entry after a position. */
async function firstEndingAfter(
  store: OnwardParts["store"],
  { first, last }: LogManifest,
  after: Position,
): Promise<SealedSegment | undefined> {
  const find = async (number: number): Promise<SealedSegment | undefined> =>
    (await store.segments(number, number))[0];
  let [from, to] = [first, last + 1];
  while (from < to) {
    // Most readers are at the end.
    const middle = to > last ? last : Math.floor((from + to) / 2);
    // One that retention has taken away meanwhile was before all others.
    if (((await find(middle))?.last ?? "") > after) to = middle;
    else from = middle + 1;
  }
  return from > last ? undefined : await find(from);
}
