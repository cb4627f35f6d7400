import type { Millis } from "../base/clock.js";
import { attemptEach } from "../base/concurrently.js";
import { done, type Done, refusal, type Refusal } from "../base/errors.js";
import { findNodeId, isOnDemand, newRequestId, type NodeId, type Partition } from "../base/ids.js";
import type { LivingNode, NodeStore } from "./ports/node-store.js";
import type { PoolStore } from "./ports/pool-store.js";
import type { Projects } from "./ports/project-store.js";

/** A node, and how many browsers have a place on it. */
export interface LoadedNode extends LivingNode {
  readonly browsers: number;
}

export interface NodeOperations {
  /** Lists the living nodes by their ids. */
  all(): Promise<readonly LoadedNode[]>;
  /**
   * Empties a node that goes on running. Asked again, the drain ends at another time. One that is being
   * stopped refuses both this and its end.
   */
  drain(id: string, limitMs: Millis): Promise<Done<LoadedNode> | Refusal>;
  /**
   * What is left there is lent again, and more is placed there. One that was taken for lost, whose drain
   * outlives that, serves when it comes back.
   */
  endDrain(id: string): Promise<Done<null> | Refusal>;
}

interface NodePorts {
  readonly nodes: Pick<NodeStore, "living" | "occupancy" | "drain" | "endDrain">;
  readonly poolStore: Pick<PoolStore, "recycle" | "reopenNode" | "clearNode">;
  readonly projects: Pick<Projects, "partitions">;
}

const partitionsAtOnce = 32;

/** docs/deployment.md#draining-a-node. */
export function makeNodeOperations(ports: NodePorts): NodeOperations {
  const { nodes } = ports;
  const load = async (node: LivingNode): Promise<LoadedNode> => {
    const { browsers, standby } = await nodes.occupancy(node.id);
    return { ...node, browsers: browsers + (standby?.browsers ?? 0) };
  };
  const find = async (id: string): Promise<LivingNode | undefined> =>
    (await nodes.living()).find((node) => node.id === id);
  /** One that is being stopped drains until it ends, by its own limit. */
  const findRunning = async (id: string): Promise<Done<LivingNode> | Refusal> => {
    const found = await find(id);
    if (!found) return refusal("node_not_found");
    return found.isStopping
      ? refusal("conflict", { message: "The node is being stopped, and drains until it ends" })
      : done(found);
  };
  return {
    async all() {
      const living = (await nodes.living()).toSorted((one, other) => (one.id < other.id ? -1 : 1));
      return await Promise.all(living.map(load));
    },
    async drain(id, limitMs) {
      const running = await findRunning(id);
      if (running.kind === "refused") return running;
      const { id: node } = running.value;
      if ((await nodes.drain(node, limitMs)) === undefined) return refusal("node_not_found");
      // The node does this too; a caller who has the answer can rely on it that nothing more is lent there.
      const request = newRequestId();
      await inPartitions(ports, (partition) =>
        isOnDemand(partition)
          ? ports.poolStore.clearNode(partition, { node, why: "drained", which: "idle", request })
          : ports.poolStore.recycle(partition, { maxLeases: null, drains: { node, ms: limitMs }, request }),
      );
      const found = await find(id);
      return found ? done(await load(found)) : refusal("node_not_found");
    },
    async endDrain(id) {
      const running = await findRunning(id);
      if (running.kind === "refused") {
        const lost = running.code === "node_not_found" ? findNodeId(id) : undefined;
        return lost && (await nodes.endDrain(lost)) ? done(null) : running;
      }
      await nodes.endDrain(running.value.id);
      await reopen(ports, running.value.id);
      return done(null);
    },
  };
}

const reopen = (ports: NodePorts, node: NodeId): Promise<void> =>
  inPartitions(ports, async (partition) => {
    if (!isOnDemand(partition)) await ports.poolStore.reopenNode(partition, node);
  });

async function inPartitions(
  { projects }: NodePorts,
  work: (partition: Partition) => Promise<unknown>,
): Promise<void> {
  await attemptEach(await projects.partitions(), partitionsAtOnce, work);
}
