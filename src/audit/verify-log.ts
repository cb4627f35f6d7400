import { buffer } from "node:stream/consumers";
import type { Archives } from "../archive/archives.js";
import type { Millis } from "../base/clock.js";
import type { Digest } from "../base/ids.js";
import { textOf } from "../base/log.js";
import type { AuditStore, LogManifest } from "./audit-store.js";
import { type Entry, instantOf } from "./entry.js";
import { hashOf, type SealedSegment, SegmentRows, summaryOf } from "./segment.js";

interface VerifyPorts {
  readonly store: Pick<AuditStore, "manifest" | "segments" | "oldest">;
  readonly archives: Pick<Archives, "open">;
}

/** A place in the chain that was noted down earlier. */
export interface ChainHead {
  readonly number: number;
  readonly hash: string;
}

interface VerifyRange {
  readonly start: Millis;
  /** Not included. */
  readonly end: Millis;
  /** The head of an earlier look: what was cut off or made anew since is found by it. */
  readonly noted?: ChainHead;
}

/** What a look at the sealed part of the log has found. */
export interface Verified {
  /** The number of the oldest segment that is kept; what was before it has been forgotten. */
  readonly first: number;
  /** How many segments have requests of the range, and how many entries those have. */
  readonly segments: number;
  readonly entries: number;
  /** The end of the chain: noted down elsewhere, it shows later what was cut off. */
  readonly head: ChainHead;
  /** Whether a head was noted of which nothing is kept any more, not even by the segment after it. */
  readonly isUncompared: boolean;
  /** A line for each thing that is not as it was sealed. */
  readonly faults: readonly string[];
}

const segmentsAtOnce = 1000;

/** A fault of one segment. */
interface SegmentFault {
  readonly number: number;
  readonly text: string;
}

/**
 * Looks at the whole chain of segments and at the entries of those with requests of a range. Sealing and
 * retention may go on meanwhile.
 */
export async function verifyLog(ports: VerifyPorts, range: VerifyRange): Promise<Verified> {
  const manifest = await ports.store.manifest();
  const look = new Look(ports, range);
  for (let from = manifest.first; from <= manifest.last; from += segmentsAtOnce) {
    const to = Math.min(manifest.last, from + segmentsAtOnce - 1);
    const segments = new Map((await ports.store.segments(from, to)).map((one) => [one.number, one]));
    for (let number = from; number <= to; number += 1) await look.at(number, segments.get(number));
  }
  // The manifest is older than this: whatever was sealed since has only made the oldest entry a later one.
  look.end(manifest, await ports.store.oldest(undefined, 1));
  // What retention has taken away meanwhile is no fault. What it was compared with before that still holds.
  const { first } = await ports.store.manifest();
  const faults = [...look.faults.filter(({ number }) => number >= first), ...look.faultsOfNoted];
  const { last: number, hash } = manifest;
  return {
    first: manifest.first,
    segments: look.segments,
    entries: look.entries,
    head: { number, hash },
    isUncompared: look.isUncompared,
    faults: faults.map((fault) => `segment ${fault.number}: ${fault.text}`),
  };
}

/** A hash that the chain has of a segment. */
interface Comparison {
  readonly of: number;
  readonly hash: string;
  /** The segment that has it, where that is another. */
  readonly at?: number;
  readonly fault: string;
}
const notNoted = "is not the one that was noted down";

/** One walk along the chain, from its oldest segment on. */
class Look {
  readonly faults: SegmentFault[] = [];
  readonly faultsOfNoted: SegmentFault[] = [];
  /** Whether the head that was noted is still to be compared with something. */
  isUncompared: boolean;
  segments = 0;
  entries = 0;
  #before: SealedSegment | undefined;

  constructor(
    private readonly ports: VerifyPorts,
    private readonly range: VerifyRange,
  ) {
    this.isUncompared = range.noted !== undefined;
  }

  async at(number: number, segment: SealedSegment | undefined): Promise<void> {
    const { start, end } = this.range;
    if (!segment) return this.#find(number, ["is not in the manifest"]);
    this.#find(number, faultsInChain(segment, this.#before));
    this.#compare({ of: number, hash: segment.hash, fault: notNoted });
    const fault = "names another before it than was noted down";
    this.#compare({ of: number - 1, hash: segment.previous, at: number, fault });
    this.#before = segment;
    if (segment.to < start || segment.from >= end) return;
    this.segments += 1;
    this.entries += segment.count;
    this.#find(number, await faultsInArchives(this.ports, segment));
  }

  end({ last, hash }: LogManifest, [oldest]: readonly Entry[]): void {
    const newest = this.#before;
    if (newest && newest.hash !== hash) this.#find(last, ["is not the one with which the manifest ends"]);
    if (newest && oldest && oldest.position <= newest.last)
      this.#find(last, ["has entries that are in Redis too"]);
    this.#compare({ of: last, hash, fault: notNoted });
    const { noted } = this.range;
    if (!noted || noted.number <= last) return;
    this.isUncompared = false;
    const text = "was noted down and is not there: the log was cut off or made anew since";
    this.faultsOfNoted.push({ number: noted.number, text });
  }

  /** Compares what was noted with the hash of that segment, once, wherever that stands. */
  #compare({ of, hash, at = of, fault }: Comparison): void {
    const { noted } = this.range;
    if (!this.isUncompared || noted?.number !== of) return;
    this.isUncompared = false;
    if (noted.hash !== hash)
      this.faultsOfNoted.push({ number: at, text: `${fault}: the log was made anew since` });
  }

  #find(number: number, texts: readonly string[]): void {
    this.faults.push(...texts.map((text) => ({ number, text })));
  }
}

function faultsInChain(segment: SealedSegment, before: SealedSegment | undefined): readonly string[] {
  const { hash, ...fields } = segment;
  const faults = hashOf(fields) === hash ? [] : ["its hash is not that of what the manifest says of it"];
  // The oldest that is kept may name one that was forgotten.
  if (!before) return faults;
  if (segment.previous !== before.hash) faults.push("does not name the segment before it");
  if (segment.first <= before.last) faults.push("begins before the end of the segment before it");
  return faults;
}

/** Both archives give no byte that is not of their SHA-256. */
async function faultsInArchives(
  { archives }: VerifyPorts,
  segment: SealedSegment,
): Promise<readonly string[]> {
  const read = async (digest: Digest): Promise<Buffer> => await buffer(await archives.open(digest));
  try {
    await read(segment.grams);
    const rows = await SegmentRows.of(await read(segment.rows));
    return faultsInEntries(
      Array.from({ length: rows.length }, (_, index) => rows.entry(index)),
      segment,
    );
  } catch (error) {
    return [`cannot be read: ${textOf(error)}`];
  }
}

function faultsInEntries(entries: readonly Entry[], segment: SealedSegment): readonly string[] {
  const [first, ...rest] = entries;
  if (!first || entries.length !== segment.count)
    return [`has ${entries.length} entries where the manifest says ${segment.count}`];
  const after = { number: segment.number - 1, hash: segment.previous };
  const faults: string[] = [];
  if (summaryOf([first, ...rest], segment, after).hash !== segment.hash)
    faults.push("its entries are not what the manifest says of them");
  if (rest.some(({ position }, index) => position <= (entries[index]?.position ?? position)))
    faults.push("its entries are not in their order");
  if (entries.some(({ at, position }) => at > instantOf(position)))
    faults.push("has an entry that was recorded before it was received");
  return faults;
}
