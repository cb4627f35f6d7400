import { LRUCache } from "lru-cache";
import {
  type BrowserId,
  findPoolId,
  type Partition,
  partitionOf,
  onDemandLabel,
  onDemandPartition,
} from "../base/ids.js";
import type { PoolStore } from "./ports/pool-store.js";

/** A pool that was renamed keeps its old label in metrics at most this long. */
const keptMs = 30_000;

/** The label of a pool in metrics: its name, else its id. */
export class PoolLabels {
  readonly #kept = new LRUCache<Partition, string>({ max: 10_000, ttl: keptMs });

  constructor(private readonly poolStore: PoolStore) {}

  async ofPartition(partition: Partition): Promise<string> {
    if (partition === onDemandPartition) return onDemandLabel;
    const kept = this.#kept.get(partition);
    if (kept !== undefined) return kept;
    const pool = await this.poolStore.findTerms(partition);
    const label = pool?.name ?? pool?.id ?? "(deleted)";
    this.#kept.set(partition, label);
    return label;
  }

  ofBrowser(browser: BrowserId): Promise<string> {
    return this.ofPartition(partitionOf(browser));
  }

  /** The label of a pool named by a request: a name is its own label, an id is looked up. */
  async ofRef(ref: string): Promise<string> {
    const id = findPoolId(ref);
    return id ? await this.ofPartition(partitionOf(id)) : ref;
  }
}
