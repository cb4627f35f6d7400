import type { Partition, NodeId } from "../../src/base/ids.js";

interface Closed {
  /** Until then the node certainly counts as silent. */
  silentUntil?: number;
  /** The latest time at which its drain ends its leases. */
  drainsUntil?: number;
}

/**
 * Remembers which nodes each pool has been told not to lend from, where that is certain. It is copied
 * together with what Redis knows.
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

  /** Notes that the node answers again. */
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
