import type { Millis } from "../base/clock.js";
import { type Log, textOf } from "../base/log.js";
import type { AuditStore } from "./audit-store.js";
import { type Entry, instantOf } from "./entry.js";
import type { SegmentFiles } from "./segment-files.js";
import { type SealedSegment, summaryOf } from "./segment.js";

interface SealPorts {
  readonly store: AuditStore;
  readonly files: Pick<SegmentFiles, "put">;
  /** Entries older than this are sealed. */
  readonly hotMs: Millis;
  /** Beyond so many bytes the oldest entries are sealed whatever their age. */
  readonly sealBytes: number;
  readonly segmentEntries: number;
  readonly keepMs: Millis;
  readonly log: Log;
}

const hourMs = 3_600_000;
const hourOf = ({ position }: Entry): number => Math.floor(instantOf(position) / hourMs);
const entriesAtOnce = 500;
/** Longer than a request that makes a change may take. */
const silentMs: Millis = 600_000;

/**
 * Makes entries of changes whose control has died on the way, seals the oldest part of the log, and forgets
 * segments that are older than they are kept; their archives are swept, since nobody names them any more. Any
 * number of daemons may do so at once: the one that commits first wins, and whoever is killed before has
 * changed nothing.
 */
export function makeSeal(ports: SealPorts): () => Promise<void> {
  const { log } = ports;
  return async () => {
    // A full Redis takes no entry, and is to be relieved of others. The next time they are made.
    await settleUnheard(ports).catch((error: unknown) =>
      log.warn({ error: textOf(error) }, "audit entries of changes whose end is not known could not be made"),
    );
    while ((await sealOne(ports)) === "committed");
    await dropOld(ports);
  };
}

async function settleUnheard({ store, log }: SealPorts): Promise<void> {
  const unheard = await store.settleIntents(silentMs);
  if (unheard > 0) log.warn({ changes: unheard }, "audit entries made of changes whose end is not known");
}

async function sealOne(ports: SealPorts): Promise<"committed" | "stale" | "none"> {
  const { store, files, log } = ports;
  const { last: number, hash } = await store.manifest();
  const size = await store.size();
  const entries = await oldestOf(ports, size);
  if (entries === undefined) return "none";
  const archives = await files.put(entries);
  const segment = summaryOf(entries, archives, { number, hash });
  const outcome = await store.commit(segment, entries, size.at);
  if (outcome === "committed")
    log.info({ segment: segment.number, entries: segment.count }, "audit segment sealed");
  return outcome;
}

/** What is to be sealed now: entries of one hour, as many as a segment may have. */
async function oldestOf(
  ports: SealPorts,
  { bytes, at }: Awaited<ReturnType<AuditStore["size"]>>,
): Promise<readonly [Entry, ...Entry[]] | undefined> {
  const { store, hotMs, sealBytes, segmentEntries } = ports;
  const [first] = await store.oldest(undefined, 1);
  if (first === undefined) return undefined;
  const isCold = (hourOf(first) + 1) * hourMs + hotMs <= at;
  if (!isCold && bytes <= sealBytes) return undefined;
  const rest: Entry[] = [];
  for (let isFull = true; isFull && rest.length < segmentEntries - 1;) {
    const most = Math.min(entriesAtOnce, segmentEntries - 1 - rest.length);
    const more = await store.oldest((rest.at(-1) ?? first).position, most);
    const ofHour = more.filter((entry) => hourOf(entry) === hourOf(first));
    rest.push(...ofHour);
    isFull = ofHour.length === most;
  }
  return [first, ...rest];
}

const segmentsAtOnce = 1000;

async function dropOld({ store, keepMs, log }: SealPorts): Promise<void> {
  const { at } = await store.size();
  const { first, last } = await store.manifest();
  for (let from = first; from <= last; from += segmentsAtOnce) {
    const segments = await store.segments(from, Math.min(last, from + segmentsAtOnce - 1));
    const old = segments.filter((segment) => instantOf(segment.last) < at - keepMs);
    const newest: SealedSegment | undefined = old.at(-1);
    if (newest === undefined) return;
    await store.drop(newest);
    log.info({ segments: old.length, last: newest.number }, "audit segments forgotten");
    if (old.length < segments.length) return;
  }
}
