import { type Static, Type } from "typebox";
import type { BrowserId, Partition } from "../../base/ids.js";
import type { Browser } from "../browser.js";

/** A dataset is all that was written to one Redis since it was empty. */
export const Dataset = Type.Object({
  name: Type.String(),
  /** Redis's time when it was last seen. */
  seenAt: Type.Number(),
});
export type Dataset = Readonly<Static<typeof Dataset>>;

/** A pool's record with the launch templates that its browsers were made from, as Redis holds them. */
export const PoolRecord = Type.Object({
  fields: Type.Record(Type.String(), Type.String()),
  templates: Type.Record(Type.String(), Type.String()),
});
export type PoolRecord = Readonly<Static<typeof PoolRecord>>;

/**
 * `emptied`: what was known is gone from the Redis that had it. `late`: so long ago that others may have
 * deleted what this one would bring back. `foreign`: that Redis is another, which has had its own for longer.
 */
export interface JoinedDataset {
  readonly kind: "same" | "joined" | "emptied" | "late" | "foreign";
  readonly dataset: Dataset;
}

/**
 * `remnant`: its name is another's by now, or its project is not known. It is kept for its leases alone, and
 * not at all where it has none.
 */
export interface RestoredPool {
  readonly kind: "restored" | "there" | "left";
  readonly isRemnant: boolean;
}

/** Whether Redis has what it had, and how what it has forgotten is written again. Nothing is overwritten. */
export interface DatasetStore {
  join(known: Dataset | undefined): Promise<JoinedDataset>;
  /** The name of the dataset; undefined where nobody has named one. */
  present(): Promise<string | undefined>;
  /** Another text after each change of the pool. */
  poolVersion(partition: Partition): Promise<string>;
  /** Undefined where there is no open pool. `templateKeys`: of what sessions on demand were launched from. */
  readPool(partition: Partition, templateKeys: readonly string[]): Promise<PoolRecord | undefined>;
  /**
   * Puts an open pool on the list of its project again, with its name where that is free. False where there
   * is none.
   */
  listAgain(partition: Partition): Promise<boolean>;
  restorePool(partition: Partition, pool: PoolRecord, hasLeases: boolean): Promise<RestoredPool>;
  /** Gives those that were not there. */
  restoreBrowsers(partition: Partition, browsers: readonly Browser[]): Promise<readonly BrowserId[]>;
}
