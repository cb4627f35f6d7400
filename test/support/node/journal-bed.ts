import { rmSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../../src/base/clock.js";
import type { Seal } from "../../../src/base/crypto/seal.js";
import { Journal } from "../../../src/node/journal/journal.js";
import { JournalFiles } from "../../../src/node/journal/journal-files.js";
import { Recovery, type RecoveryCounts } from "../../../src/node/journal/recovery.js";
import { until } from "../browser/chromium-until.js";
import { type LogLine, makeLogBook } from "../http/http-server.js";
import { newDirectory } from "../killed-runs.js";
import { nodeA, type PoolBed } from "../store/pool-bed.js";
import { bedSeal, type NodeBed, openNodeBed } from "./node-bed.js";
import { oneSlot } from "./one-slot.js";

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

/** A node and the directory of its journal, which is opened as often as the node would start. */
export class JournalBed {
  readonly #opened: OpenedJournal[] = [];

  private constructor(
    readonly node: NodeBed,
    readonly directory: string,
  ) {}

  static async open(name: string): Promise<JournalBed> {
    return new JournalBed(await openNodeBed(name), join(newDirectory("journal"), "journal"));
  }

  async close(): Promise<void> {
    for (const { journal } of this.#opened.toReversed()) await journal.close();
    await this.node.close();
    rmSync(join(this.directory, ".."), { recursive: true });
  }

  /** The journal of this node, as it is when it starts. */
  async openJournal(options: JournalOptions = {}): Promise<OpenedJournal> {
    const opened = await openJournalIn(this.directory, this.node, options);
    this.#opened.push(opened);
    return opened;
  }

  /** What is there now of a pool is on disk when this resolves. */
  async write(kept: OpenedJournal, { partition }: Pick<PoolBed, "partition">): Promise<void> {
    const before = written(kept);
    kept.journal.note(partition);
    await until("the entry", () => written(kept) > before);
  }

  /** A pool of one, running here, and a journal that has it. */
  async keptPool(over: Parameters<typeof oneSlot>[1] = {}) {
    const { pool, slot } = await oneSlot(this.node, over);
    const kept = await this.openJournal();
    await kept.recovery.check();
    await this.write(kept, pool);
    return { pool, slot, kept };
  }

  forget(): Promise<unknown> {
    return this.node.bed.redis.flushall();
  }
}

/** How many entries a journal has written. */
export const written = ({ lines }: OpenedJournal): number =>
  lines.filter(({ message }) => message === "journal written").length;
