import type { NodeId, Partition } from "../../base/ids.js";

/** What a pool is short of, in a few words; a browser of its class takes so much memory. */
export interface PoolDemand {
  readonly lacking: number;
  /** Retiring ones, which have room until their node has ended them. They count as lacking. */
  readonly ending: number;
  /** Browsers to be replaced, as those of draining nodes, for which others have been launched already. */
  readonly replaced: number;
  /** No node has room for what it lacks. */
  readonly isHeldUp: boolean;
  /** Something else than room keeps it from being launched on some nodes, or on all of them. */
  readonly isObstructed: boolean;
  readonly templateKey: string;
}

/** What is asked when the fleet is looked at as a whole: every few seconds, of every pool. */
export interface ScalingStore {
  /** Undefined of sessions on demand, which have no size, and of a pool that is deleted. */
  findDemand(partition: Partition): Promise<PoolDemand | undefined>;
  /** How many browsers of a partition are leased on each node that has any. */
  leasedByNode(partition: Partition): Promise<ReadonlyMap<NodeId, number>>;
}
