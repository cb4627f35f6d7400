import type { Partition, NodeId } from "../../src/base/ids.js";

interface Closed {
  /** Silent for certain until then. */
  silentUntil?: number;
  /** When its drain ends its leases, at the latest. */
  drainsUntil?: number;
}

/** Which nodes each pool has been told to lend nothing of, as far as it is certain. Copied with what Redis knows. */
export class ClosedNodes {
  readonly #homes = new Map<Partition, Map<NodeId, Closed>>();

  of(home: Partition, node: NodeId): Closed {
    return this.#homes.get(home)?.get(node) ?? {};
  }

  silence(home: Partition, node: NodeId, until: number): void {
    this.#change(home, node, { silentUntil: until });
  }

  drain(home: Partition, node: NodeId, until: number): void {
    this.#change(home, node, { drainsUntil: until });
  }

  /** It answers again. */
  hear(home: Partition, node: NodeId): void {
    const { drainsUntil } = this.of(home, node);
    this.#homes.get(home)?.set(node, drainsUntil === undefined ? {} : { drainsUntil });
  }

  clear(home: Partition, node: NodeId): void {
    this.#homes.get(home)?.delete(node);
  }

  copy(): ClosedNodes {
    const copy = new ClosedNodes();
    for (const [home, nodes] of this.#homes) copy.#homes.set(home, new Map([...nodes].map(([id, closed]) => [id, { ...closed }])));
    return copy;
  }

  #change(home: Partition, node: NodeId, change: Closed): void {
    const nodes = this.#homes.get(home) ?? new Map<NodeId, Closed>();
    nodes.set(node, { ...nodes.get(node), ...change });
    this.#homes.set(home, nodes);
  }
}
