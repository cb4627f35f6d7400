import type { Millis } from "../../base/clock.js";
import type { BrowserId, Partition, NodeId, PoolId, ProfileId } from "../../base/ids.js";
import type { Browser } from "../browser.js";
import type { BrowserCounts } from "../pool.js";

export interface BrowsersRead {
  readonly browsers: readonly Browser[];
  /** Redis's time at the reading. */
  readonly at: Millis;
}

export interface NodeBrowsers extends BrowsersRead {
  /**
   * Another text after each update, delete and restore of the pool, but for those by an earlier release. A
   * pool that was made and not changed since has the same text as one that does not exist. As old as the
   * browsers.
   */
  readonly poolStamp: string;
}

/** What a pool's record says in a few words; its specification, which may have megabytes, is not read. */
export interface PoolSummary {
  readonly id: PoolId;
  readonly name?: string;
  readonly createdAt: Millis;
  /** Key of the launch template of what is launched now. */
  readonly templateKey: string;
  readonly fillRatePerMinute: number;
  /**
   * The profile whose saves flush its idle browsers, or null; absent where an earlier release has written the
   * record.
   */
  readonly follows?: ProfileId | null;
  /** Ids of all that its specification names; absent where an earlier release has written the record. */
  readonly uses?: readonly string[];
}

export interface ListedSession {
  readonly id: BrowserId;
  readonly createdAt: Millis;
}

/**
 * `room`: it is short, and its record says already that no node has room. `something` may turn out to be
 * nothing.
 */
export type Lack = "nothing" | "room" | "something";

/** What is asked of a partition by many and often: none of it reads more records than it answers with. */
export interface PartitionOverview {
  /** The browsers of one node. While nothing of theirs changes they are read once. */
  browsersOf(partition: Partition, node: NodeId): Promise<NodeBrowsers>;
  /** Which of the partitions may hold browsers of a node. */
  partitionsOf(node: NodeId, partitions: readonly Partition[]): Promise<readonly Partition[]>;
  /** The number of browsers of this partition on each node. */
  spread(partition: Partition): Promise<{ ofNode: ReadonlyMap<NodeId, number>; at: Millis }>;
  /** Nodes on which it has browsers, or of which it has noted anything. */
  nodesOf(partition: Partition): Promise<ReadonlySet<NodeId>>;
  /** Leased browsers, last created first: `count` of them after the first `from`. */
  leased(partition: Partition, from: number, count: number): Promise<readonly ListedSession[]>;
  /** The records of at most 1000 browsers; those that are gone are left out. */
  records(partition: Partition, ids: readonly BrowserId[]): Promise<BrowsersRead>;
  /** Undefined where there is no such pool, or it is deleted; sessions on demand have none. */
  findTerms(partition: Partition): Promise<PoolSummary | undefined>;
  counts(partition: Partition): Promise<BrowserCounts>;
  /** What a pool lacks, as a few plain commands tell: every pool is asked every second. */
  lackOf(partition: Partition): Promise<Lack>;
  /** The present id of the Redis that answers; undefined for a cluster, whose masters have one each. */
  serverId(): Promise<string | undefined>;
  /**
   * Whether a reap would find nothing but what may wait: the pool is open and has as many browsers as its
   * size, none of them is on its way, nobody waits, and its record was written on this server.
   */
  isAtRest(partition: Partition, server: string): Promise<boolean>;
}
