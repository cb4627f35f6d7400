import { setMaxListeners } from "node:events";
import { type Static, Type } from "typebox";
import { forEachConcurrently } from "../../base/concurrently.js";
import { type Clock, type Millis, pause } from "../../base/clock.js";
import { findPartition, isOnDemand, type NodeId, Partition } from "../../base/ids.js";
import { type Log, textOf } from "../../base/log.js";
import { parserOf } from "../../base/parser.js";
import { type Browser, browserParser } from "../../pool/browser.js";
import { Dataset, type DatasetStore, PoolRecord } from "../../pool/ports/dataset-store.js";
import type { NodeBrowsers } from "../../pool/ports/partition-overview.js";
import type { PoolStore } from "../../pool/ports/pool-store.js";
import type { JournalFiles } from "./journal-files.js";

const Written = Type.Object({
  partition: Partition,
  version: Type.String(),
  pool: PoolRecord,
  browsers: Type.Array(Type.Unknown()),
});
const writtenParser = parserOf("an entry of the journal", Written);

/** A pool, or the sessions on demand of a project, as Redis had them: of the browsers only the node's own. */
export interface JournalEntry extends Omit<Static<typeof Written>, "browsers"> {
  readonly browsers: readonly Browser[];
}

const seenParser = parserOf(
  "the dataset of the journal",
  Type.Object({ dataset: Dataset, redis: Type.String() }),
);

interface JournalPorts {
  readonly node: NodeId;
  readonly files: JournalFiles;
  readonly store: Pick<DatasetStore, "present" | "poolVersion" | "readPool">;
  readonly poolStore: Pick<PoolStore, "browsersOf">;
  readonly clock: Clock;
  readonly log: Log;
  /** Names the Redis of the configuration: what another one had is not restored into it. */
  readonly redis: string;
}

/** No partition's name. */
const datasetFile = "dataset";
/** Changes within this time are written together. */
const gatherMs: Millis = 250;
const sweepEveryMs: Millis = 60_000;
const atOnce = 8;

/**
 * What a node would need if Redis forgot everything: the pools that it serves, its browsers and their leases,
 * on its disk. Written after the fact and beside all other work: what came last may be missing.
 */
export class Journal {
  readonly #kept = new Map<Partition, JournalEntry>();
  /** The pool's stamp at the reading by which an entry was last found, or made, as Redis has it. */
  readonly #poolStamps = new Map<Partition, string>();
  readonly #asked = new Set<Partition>();
  readonly #working = new Map<Partition, Promise<void>>();
  /** The disk may lack what is known of these: they are written at the next look, changed or not. */
  readonly #unwritten = new Set<Partition>();
  /**
   * Partitions whose files were written for another Redis or by another schema: nothing that they say counts.
   * Once this Redis has answered, each is written anew from what it has there, or removed.
   */
  readonly #others = new Set<Partition>();
  readonly #closing = new AbortController();
  readonly #stopSweeps: () => void;
  #dataset: Dataset | undefined;
  #adopted: Promise<void> = Promise.resolve();

  private constructor(private readonly ports: JournalPorts) {
    // Each pool listens while its changes gather.
    setMaxListeners(0, this.#closing.signal);
    this.#stopSweeps = ports.clock.every(sweepEveryMs, () => void this.sweep());
  }

  static async open(ports: JournalPorts): Promise<Journal> {
    const journal = new Journal(ports);
    await journal.#load();
    return journal;
  }

  async close(): Promise<void> {
    this.#stopSweeps();
    this.#closing.abort();
    await Promise.all([this.#adopted, ...this.#working.values()]);
  }

  /** What its entries were read from; undefined before anything was. */
  get dataset(): Dataset | undefined {
    return this.#dataset;
  }

  entries(): readonly JournalEntry[] {
    return [...this.#kept.values()];
  }

  /** From now on this is what entries are read from. Resolves when that is on disk, or was said not to be. */
  adopt(dataset: Dataset): Promise<void> {
    this.#dataset = dataset;
    for (const partition of this.#others) this.note(partition);
    this.#adopted = this.#adopted
      .then(() => this.#writeDataset(dataset))
      .catch((error: unknown) => this.ports.log.warn({ error: textOf(error) }, "journal not written"));
    return this.#adopted;
  }

  /**
   * A start takes what lies beside it for read from that dataset, so that files of others go first. Until
   * then there is none, and a start believes nothing of what is there.
   */
  async #writeDataset(dataset: Dataset): Promise<void> {
    const { files, redis } = this.ports;
    if (this.#others.size > 0) await files.remove(datasetFile);
    else await files.write(datasetFile, { dataset, redis });
  }

  /** It is still there. Says nothing where another was adopted meanwhile. */
  saw(dataset: Dataset): void {
    if (dataset.name === this.#dataset?.name) this.#dataset = dataset;
  }

  /**
   * It was read, and is looked at where that differs from what is kept. What an earlier release changes of a
   * pool is found by the sweep.
   */
  noteRead(partition: Partition, { browsers, poolStamp }: NodeBrowsers): void {
    const isKept = this.#kept.get(partition)?.browsers === browsers;
    if (!isKept || this.#poolStamps.get(partition) !== poolStamp) this.note(partition);
  }

  /** Something may have changed there. Nobody waits for what follows. */
  note(partition: Partition): void {
    if (this.#closing.signal.aborted) return;
    this.#asked.add(partition);
    if (this.#working.has(partition)) return;
    const work = this.#work(partition).finally(() => this.#working.delete(partition));
    this.#working.set(partition, work);
  }

  /** Looks after what this node serves no more, too: a pool may be deleted, or get another configuration. */
  async sweep(): Promise<void> {
    for (const partition of this.#kept.keys()) this.note(partition);
    if (this.#dataset) await this.adopt(this.#dataset);
  }

  async #work(partition: Partition): Promise<void> {
    const { clock } = this.ports;
    while (this.#asked.has(partition)) {
      await pause(clock, gatherMs, this.#closing.signal);
      this.#asked.delete(partition);
      if (this.#closing.signal.aborted) return;
      await this.#look(partition).catch((error: unknown) => this.#missed(partition, error));
    }
  }

  /** A disk that is full stays so for long: it is said once, and not at each look. */
  #missed(partition: Partition, error: unknown): void {
    const level = this.#unwritten.has(partition) ? "debug" : "warn";
    this.#unwritten.add(partition);
    this.#poolStamps.delete(partition);
    this.ports.log[level]({ partition, error: textOf(error) }, "journal not written");
  }

  async #look(partition: Partition): Promise<void> {
    const { node, poolStore, store } = this.ports;
    const kept = this.#kept.get(partition);
    const { browsers, poolStamp } = await poolStore.browsersOf(partition, node);
    const version = await store.poolVersion(partition);
    const isChanged = kept?.version !== version || kept.browsers !== browsers;
    if (!isChanged && !this.#unwritten.has(partition)) return void this.#poolStamps.set(partition, poolStamp);
    const templateKeys = [...new Set(browsers.map(({ templateKey }) => templateKey))];
    const isPoolKept = kept?.version === version && templateKeys.every((key) => key in kept.pool.templates);
    const pool = isPoolKept ? kept.pool : await store.readPool(partition, templateKeys);
    // What was read from a Redis that has been emptied since is not what this node has to know.
    if (!this.#dataset || (await store.present()) !== this.#dataset.name) return;
    const isOver = !pool || (isOnDemand(partition) && browsers.length === 0);
    await (isOver ? this.#drop(partition) : this.#keep({ partition, version, pool, browsers }, poolStamp));
    if (this.#others.delete(partition) && this.#others.size === 0) await this.adopt(this.#dataset);
  }

  /** It counts from now on, also where the disk has no room: Redis may be emptied before there is any. */
  async #keep(entry: JournalEntry, poolStamp: string): Promise<void> {
    const { partition, browsers } = entry;
    this.#kept.set(partition, entry);
    await this.ports.files.write(partition, entry);
    this.#poolStamps.set(partition, poolStamp);
    if (this.#unwritten.delete(partition)) this.ports.log.info({ partition }, "journal written again");
    const leases = browsers.filter(({ state }) => state === "leased").length;
    this.ports.log.debug({ partition, browsers: browsers.length, leases }, "journal written");
  }

  async #drop(partition: Partition): Promise<void> {
    this.#unwritten.delete(partition);
    this.#poolStamps.delete(partition);
    if (this.#kept.delete(partition) || this.#others.has(partition)) await this.ports.files.remove(partition);
  }

  async #load(): Promise<void> {
    const { files, redis } = this.ports;
    const seen = await this.#read(datasetFile, seenParser.value);
    const names = files.names.filter((name) => name !== datasetFile);
    if (seen?.redis !== redis) return this.#leaveAside(names);
    this.#dataset = seen.dataset;
    await forEachConcurrently(names, atOnce, async (name) => {
      const entry = await this.#read(name, parseEntry);
      // What another key would open, or was torn, stays until it is written anew.
      if (entry?.partition === name) this.#kept.set(entry.partition, entry);
    });
  }

  #leaveAside(names: readonly string[]): void {
    if (names.length === 0) return;
    this.ports.log.warn({}, "journal left aside: it was not written for the Redis that is configured");
    for (const partition of names.map(findPartition)) if (partition) this.#others.add(partition);
  }

  async #read<Value>(name: string, parse: (given: unknown) => Value): Promise<Value | undefined> {
    const { files, log } = this.ports;
    try {
      const given = await files.read(name);
      return given === undefined ? undefined : parse(given);
    } catch (error) {
      log.warn({ entry: name, error: textOf(error) }, "journal entry could not be read");
      return undefined;
    }
  }
}

function parseEntry(given: unknown): JournalEntry {
  const { browsers, ...entry } = writtenParser.value(given);
  return { ...entry, browsers: browsers.map(browserParser.value) };
}
