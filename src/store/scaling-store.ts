import { isOnDemand, type NodeId, type Partition } from "../base/ids.js";
import type { PoolDemand, ScalingStore } from "../pool/ports/scaling-store.js";
import type { PartitionScripts } from "./partition-scripts.js";
import { templateKeyOf } from "./partition-overview.js";

/**
 * By plain commands, one after the other: what moves in between makes a figure wrong by one until it is read
 * again, and no script stands still for it.
 */
export class RedisScalingStore implements ScalingStore {
  constructor(private readonly scripts: PartitionScripts) {}

  async findDemand(partition: Partition): Promise<PoolDemand | undefined> {
    if (isOnDemand(partition)) return undefined;
    const { scripts } = this;
    const [[size, state, hold, generation, keptKey], all, retiring] = await Promise.all([
      scripts.ask((redis) =>
        redis.hmget(scripts.keyOf(partition, "pool"), "size", "state", "hold", "generation", "configKey"),
      ),
      scripts.ask((redis) => redis.hlen(scripts.keyOf(partition, "browsers"))),
      scripts.ask((redis) => redis.zcard(scripts.keyOf(partition, "retiring"))),
    ]);
    if (state !== "open") return undefined;
    return {
      lacking: Math.max(0, Number(size) - (all - retiring)),
      isHeldUp: hold === "capacity",
      templateKey: templateKeyOf(generation ?? "", keptKey),
    };
  }

  async leasedOn(node: NodeId, partitions: readonly Partition[]): Promise<number> {
    const counts = await Promise.all(partitions.map((partition) => this.#leasedIn(partition, node)));
    return counts.reduce((sum, count) => sum + count, 0);
  }

  async #leasedIn(partition: Partition, node: NodeId): Promise<number> {
    const { scripts } = this;
    // The index has members `node browser` of one score (lua/include/node/node-index.lua).
    const places = await scripts.ask((redis) =>
      redis.zrangebylex(scripts.keyOf(partition, "nodeIndex"), `[${node} `, `(${node}!`),
    );
    if (places.length === 0) return 0;
    const ids = places.map((place) => place.slice(node.length + 1));
    const since = await scripts.ask((redis) => redis.zmscore(scripts.keyOf(partition, "leased"), ...ids));
    return since.filter((score) => score !== null).length;
  }
}
