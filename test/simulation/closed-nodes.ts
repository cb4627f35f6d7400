import type { Partition, NodeId } from "../../src/base/ids.js";

interface Closed {
  /** Silent for certain until then. */
  silentUntil?: number;
  /** When its drain ends its leases, at the latest. */
  drainsUntil?: number;
}

/**
 * Which nodes each pool has been told to lend nothing of, as far as it is certain. Copied with what Redis
 * knows.
 */
export class ClosedNodes {
  readonly #partitions = new Map<Partition, Map<NodeId, Closed>>();

  of(partition: Partition, node: NodeId): Closed {
    return this.#partitions.get(partition)?.get(node) ?? {};
  }

  silence(partition: Partition, node: NodeId, until: number): void {
    this.#change(partition, node, { silentUntil: until });
  }

  drain(partition: Partition, node: NodeId, until: number): void {
    this.#change(partition, node, { drainsUntil: until });
  }

  /** It answers again. */
  endSilence(partition: Partition, node: NodeId): void {
    const { drainsUntil } = this.of(partition, node);
    this.#partitions.get(partition)?.set(node, drainsUntil === undefined ? {} : { drainsUntil });
  }

  clear(partition: Partition, node: NodeId): void {
    this.#partitions.get(partition)?.delete(node);
  }

  copy(): ClosedNodes {
    const copy = new ClosedNodes();
    for (const [partition, nodes] of this.#partitions)
      copy.#partitions.set(partition, new Map([...nodes].map(([id, closed]) => [id, { ...closed }])));
    return copy;
  }

  #change(partition: Partition, node: NodeId, change: Closed): void {
    const nodes = this.#partitions.get(partition) ?? new Map<NodeId, Closed>();
    nodes.set(node, { ...nodes.get(node), ...change });
    this.#partitions.set(partition, nodes);
  }
}
