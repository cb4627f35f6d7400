import type { LeaseId, Partition, RequestId } from "../base/ids.js";
import { type Log, textOf } from "../base/log.js";
import { isStoreAway } from "../base/store-fault.js";

/** Something that Redis has to take back. */
interface Undo {
  readonly partition: Partition;
  /** A later one under the same id takes the place of one that waits for its turn. */
  readonly id: LeaseId | RequestId;
  readonly what: string;
  run(): Promise<unknown>;
}

type UndosById = Map<Undo["id"], Undo>;

interface PartitionUndos {
  /** Those that wait for their turn, the oldest first. */
  readonly due: UndosById;
  /** Those that have failed since the last call of `tryAgain`. */
  readonly failed: UndosById;
  underWay: number;
  /** Whether Redis did not answer the last of them that has ended. */
  isAway: boolean;
}

/** So many of a partition are tried at once; a single one where Redis did not answer the last. */
const mostAtOnce = 32;

/**
 * Tries each undo until it succeeds. However many there are, an outage of Redis costs one try of each
 * partition at each call of `tryAgain`, and after it they are done in turn.
 */
export class Undos {
  readonly #partitions = new Map<Partition, PartitionUndos>();
  readonly #underWay = new Set<Promise<void>>();

  constructor(private readonly log: Log) {}

  /** How many have not succeeded yet. */
  get size(): number {
    let sum = this.#underWay.size;
    for (const { due, failed } of this.#partitions.values()) sum += due.size + failed.size;
    return sum;
  }

  /** Tries it now, unless Redis was away a moment ago or enough are being tried. */
  add(undo: Undo): void {
    const undos = this.#undosOf(undo.partition);
    undos.failed.delete(undo.id);
    undos.due.set(undo.id, undo);
    if (!undos.isAway) this.#start(undos);
  }

  tryAgain(): void {
    for (const undos of this.#partitions.values()) {
      for (const [id, undo] of undos.failed) undos.due.set(id, undo);
      undos.failed.clear();
      this.#start(undos);
    }
  }

  /** Resolves when none is being tried. */
  async idle(): Promise<void> {
    while (this.#underWay.size > 0) await Promise.all(this.#underWay);
  }

  #undosOf(partition: Partition): PartitionUndos {
    const known = this.#partitions.get(partition);
    if (known) return known;
    const made: PartitionUndos = { due: new Map(), failed: new Map(), underWay: 0, isAway: false };
    this.#partitions.set(partition, made);
    return made;
  }

  #start(undos: PartitionUndos): void {
    const { due } = undos;
    for (const [id, undo] of due) {
      if (undos.underWay >= (undos.isAway ? 1 : mostAtOnce)) return;
      due.delete(id);
      undos.underWay += 1;
      const tried = this.#try(undos, undo);
      this.#underWay.add(tried);
      void tried.finally(() => this.#underWay.delete(tried));
    }
  }

  /** Never throws. */
  async #try(undos: PartitionUndos, undo: Undo): Promise<void> {
    const { partition, id, what } = undo;
    try {
      await undo.run();
      undos.isAway = false;
    } catch (error) {
      this.log.warn({ error: textOf(error), what }, "lease upkeep failed");
      undos.isAway = isStoreAway(error);
      if (!undos.due.has(id)) undos.failed.set(id, undo);
    }
    undos.underWay -= 1;
    if (!undos.isAway) this.#start(undos);
    if (undos.underWay + undos.due.size + undos.failed.size === 0) this.#partitions.delete(partition);
  }
}
