import { findNodeId, isOnDemand, type NodeId, type Partition } from "../base/ids.js";
import type { PoolDemand, ScalingStore } from "../pool/ports/scaling-store.js";
import type { PartitionScripts } from "./partition-scripts.js";

const atOnce = 1000;

/**
 * Reads by plain commands, one after the other. What moves in between makes a figure wrong by one until the
 * next reading, and no script has to wait.
 */
export class RedisScalingStore implements ScalingStore {
  constructor(private readonly scripts: PartitionScripts) {}

  async findDemand(partition: Partition): Promise<PoolDemand | undefined> {
    if (isOnDemand(partition)) return undefined;
    const { scripts } = this;
    const key = scripts.keyOf(partition, "pool");
    const [[size, state, hold, obstacle, templateKey], all, retiring, discarded] = await Promise.all([
      scripts.ask((redis) => redis.hmget(key, "size", "state", "hold", "obstacle", "templateKey")),
      scripts.ask((redis) => redis.hlen(scripts.keyOf(partition, "browsers"))),
      scripts.ask((redis) => redis.zcard(scripts.keyOf(partition, "retiring"))),
      scripts.ask((redis) => redis.zcard(scripts.keyOf(partition, "discarded"))),
    ]);
    if (state !== "open") return undefined;
    const ending = retiring + discarded;
    const surplus = all - ending - Number(size);
    return {
      lacking: Math.max(0, -surplus),
      ending,
      replaced: surplus > 0 ? Math.min(surplus, await this.#replaceable(partition)) : 0,
      isHeldUp: hold === "capacity",
      isObstructed: hold === "capacity" && Boolean(obstacle),
      templateKey: templateKey ?? "",
    };
  }

  #replaceable(partition: Partition): Promise<number> {
    return this.scripts.ask((redis) => redis.scard(this.scripts.keyOf(partition, "replaceable")));
  }

  async leasedByNode(partition: Partition): Promise<ReadonlyMap<NodeId, number>> {
    const leased = new Set<string>();
    await this.#inPieces(partition, "leased", (id) => leased.add(id));
    const counts = new Map<NodeId, number>();
    // The index has members `node browser` of one score (lua/include/node/node-index.lua).
    await this.#inPieces(partition, "nodeIndex", (place) => {
      const [text = "", browser = ""] = place.split(" ");
      const node = leased.has(browser) ? findNodeId(text) : undefined;
      if (node) counts.set(node, (counts.get(node) ?? 0) + 1);
    });
    return counts;
  }

  /** Nobody else waits for more than one piece. */
  async #inPieces(
    partition: Partition,
    part: "leased" | "nodeIndex",
    visit: (member: string) => unknown,
  ): Promise<void> {
    const key = this.scripts.keyOf(partition, part);
    for (let from = 0, read = atOnce; read === atOnce; from += atOnce) {
      const members = await this.scripts.ask((redis) =>
        redis.zrange(key, String(from), String(from + atOnce - 1)),
      );
      read = members.length;
      members.forEach(visit);
    }
  }
}
