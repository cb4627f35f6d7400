import { LRUCache } from "lru-cache";
import {
  type BrowserId,
  defaultProject,
  findPoolIdIn,
  isOnDemand,
  type Partition,
  partitionOf,
  onDemandLabel,
  type ProjectId,
  projectNamedByPartition,
} from "../base/ids.js";
import type { PoolStore } from "./ports/pool-store.js";

/** A pool that was renamed keeps its old label in metrics at most this long. */
const keptMs = 30_000;

/** Two projects may have pools of one name; a name never has a slash. */
const labelIn = (project: ProjectId | undefined, label: string): string =>
  project === undefined ? label : `${project}/${label}`;

/** The label of what is in a partition now; undefined where its pool is no more. */
export async function labelOf(poolStore: PoolStore, partition: Partition): Promise<string | undefined> {
  const project = projectNamedByPartition(partition);
  if (isOnDemand(partition)) return labelIn(project, onDemandLabel);
  const pool = await poolStore.findTerms(partition);
  return pool && (pool.name === undefined ? pool.id : labelIn(project, pool.name));
}

/**
 * The label of a pool in metrics: its name, else its id. That of another project than the default one has the
 * project's id in front.
 */
export class PoolLabels {
  /** Reads the clock at each look: to read it less often the cache would set a timer each millisecond. */
  readonly #kept = new LRUCache<Partition, string>({ max: 10_000, ttl: keptMs, ttlResolution: 0 });

  constructor(private readonly poolStore: PoolStore) {}

  async ofPartition(partition: Partition): Promise<string> {
    const kept = this.#kept.get(partition);
    if (kept !== undefined) return kept;
    const label = (await labelOf(this.poolStore, partition)) ?? "(deleted)";
    this.#kept.set(partition, label);
    return label;
  }

  ofBrowser(browser: BrowserId): Promise<string> {
    return this.ofPartition(partitionOf(browser));
  }

  /** The label of a pool named by a request: a name is its own label, an id is looked up. */
  async ofRef(project: ProjectId, ref: string): Promise<string> {
    const id = findPoolIdIn(project, ref);
    return id
      ? await this.ofPartition(partitionOf(id))
      : labelIn(project === defaultProject ? undefined : project, ref);
  }
}
