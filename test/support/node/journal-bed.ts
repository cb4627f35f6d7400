import { systemClock } from "../../../src/base/clock.js";
import type { Seal } from "../../../src/base/crypto/seal.js";
import { Journal } from "../../../src/node/journal/journal.js";
import { JournalFiles } from "../../../src/node/journal/journal-files.js";
import { Recovery, type RecoveryCounts } from "../../../src/node/journal/recovery.js";
import { type LogLine, makeLogBook } from "../http/http-server.js";
import { nodeA } from "../store/pool-bed.js";
import { bedSeal, type NodeBed } from "./node-bed.js";

export interface OpenedJournal {
  readonly journal: Journal;
  readonly recovery: Recovery;
  readonly lines: readonly LogLine[];
  readonly counts: readonly RecoveryCounts[];
}

export interface JournalOptions {
  readonly redis?: string;
  readonly seal?: Seal;
  readonly mostBytes?: number;
}

/** The journal of a bed's node, as it is when it starts; the caller closes it. */
export async function openJournalIn(
  directory: string,
  { bed, slots, poolStore }: NodeBed,
  { redis = "one", seal = bedSeal, mostBytes = 2 ** 20 }: JournalOptions,
): Promise<OpenedJournal> {
  const { log, lines } = makeLogBook();
  const { dataset: store, nodes } = bed;
  const files = await JournalFiles.open({ directory, seal, log, mostBytes });
  const clock = systemClock;
  const journal = await Journal.open({ node: nodeA, files, store, poolStore, clock, log, redis });
  const counts: RecoveryCounts[] = [];
  const meter = { recovered: (each: RecoveryCounts) => void counts.push(each) };
  const recovery = new Recovery({ node: nodeA, journal, store, slots, nodes, log, meter });
  return { journal, recovery, lines, counts };
}
