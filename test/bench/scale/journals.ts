import { rm } from "node:fs/promises";
import { join } from "node:path";
import { type Clock, systemClock } from "../../../src/base/clock.js";
import { forEachConcurrently } from "../../../src/base/concurrently.js";
import { Seal } from "../../../src/base/crypto/seal.js";
import { Secret } from "../../../src/base/crypto/secret.js";
import type { NodeId, Partition } from "../../../src/base/ids.js";
import type { Log } from "../../../src/base/log.js";
import { Journal } from "../../../src/node/journal/journal.js";
import { JournalFiles } from "../../../src/node/journal/journal-files.js";
import { Recovery } from "../../../src/node/journal/recovery.js";
import type { NodeFacts } from "../../../src/pool/ports/node-store.js";
import type { NodeBrowsers } from "../../../src/pool/ports/partition-overview.js";
import { newDirectory } from "../../support/killed-runs.js";
import type { StoreBed } from "../../support/store/store-bed.js";
import { until } from "../support/daemon.js";

const say = (fields: object, message: string): void => console.error(message, fields);
const log: Log = { debug() {}, info() {}, warn: say, error: say, child: () => log };
const seal = new Seal(new Secret("the secret of a bench"));
const openedAtOnce = 8;

/** What gathers changes for a while does not wait, so that only the work itself takes time. */
const clock: Clock = { ...systemClock, after: (_, task) => systemClock.after(0, task) };

interface Kept {
  readonly journal: Journal;
  readonly recovery: Recovery;
  /** How many entries the journal has written. */
  written: number;
}

/** The journal of each node, and its beats in the dataset that it knows. */
export class NodeJournals {
  readonly #directory = newDirectory("bench-journals");
  readonly #kept = new Map<NodeId, Kept>();

  constructor(private readonly bed: StoreBed) {}

  async open(nodes: readonly NodeId[]): Promise<void> {
    const [failure] = await forEachConcurrently(nodes, openedAtOnce, (node) => this.#open(node));
    if (failure) throw failure;
  }

  async beat(facts: NodeFacts): Promise<void> {
    await this.#keptOf(facts.id).recovery.beat(
      () => facts,
      () => false,
    );
  }

  /** These were read. Resolves when each has an entry. */
  async noteRead(node: NodeId, reads: ReadonlyMap<Partition, NodeBrowsers>): Promise<void> {
    const kept = this.#keptOf(node);
    for (const [partition, read] of reads) kept.journal.noteRead(partition, read);
    await until("the entries of a journal", async () => kept.written >= reads.size, { everyMs: 1 });
  }

  async close(): Promise<void> {
    await Promise.all([...this.#kept.values()].map(({ journal }) => journal.close()));
    await rm(this.#directory, { recursive: true });
  }

  async #open(node: NodeId): Promise<void> {
    const { dataset, nodes, poolStore } = this.bed;
    const directory = join(this.#directory, node);
    const files = await JournalFiles.open({ directory, seal, log, mostBytes: 64 * 2 ** 20 });
    const counting: Log = {
      ...log,
      debug(_fields, message) {
        if (message === "journal written") kept.written += 1;
      },
    };
    const journal = await Journal.open({
      node,
      files,
      store: dataset,
      poolStore,
      clock,
      log: counting,
      redis: "one",
    });
    const slots = { all: () => [], find: () => undefined };
    const meter = { recovered() {} };
    const recovery = new Recovery({ node, journal, store: dataset, slots, nodes, log, meter });
    const kept: Kept = { journal, recovery, written: 0 };
    this.#kept.set(node, kept);
    await recovery.check();
  }

  #keptOf(node: NodeId): Kept {
    const kept = this.#kept.get(node);
    if (!kept) throw new Error("there is no such node");
    return kept;
  }
}
