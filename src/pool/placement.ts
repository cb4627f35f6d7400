import type { BrowserId, NodeId } from "../base/ids.js";
import type { NodeFacts, Nodes } from "./ports.js";

interface Loaded {
  readonly facts: NodeFacts;
  readonly bytes: number;
  readonly browsers: number;
}

/**
 * In order: the node with the pool's fewest browsers, so that a lost node costs a pool little; then most room, so that nodes fill
 * evenly; then by name, for a stable order.
 */
export const byPreference = (ofPool: ReadonlyMap<NodeId, number>) => (one: Loaded, other: Loaded): number =>
  (ofPool.get(one.facts.id) ?? 0) - (ofPool.get(other.facts.id) ?? 0) ||
  other.facts.memoryBytes - other.bytes - (one.facts.memoryBytes - one.bytes) ||
  (one.facts.id < other.facts.id ? -1 : 1);

/** Where browsers may be placed now: reserves room before anyone claims a launch. */
export class Placement {
  readonly #loaded: Loaded[];
  readonly #ofPool: Map<NodeId, number>;

  /** Why living nodes launch nothing, one after the other; empty where all of them do. */
  readonly obstacle: string;

  private constructor(private readonly nodes: Nodes, state: { loaded: Loaded[]; ofPool: Map<NodeId, number>; obstacle: string }) {
    this.#loaded = state.loaded;
    this.#ofPool = state.ofPool;
    this.obstacle = state.obstacle;
  }

  static async open(nodes: Nodes, ask: { engine: string; ofPool: ReadonlyMap<NodeId, number> }): Promise<Placement> {
    const living = (await nodes.living()).filter((facts) => !facts.isDraining);
    const able = living.filter((facts) => facts.canLaunch && facts.engines.includes(ask.engine));
    const loaded = await Promise.all(able.map(async (facts) => ({ facts, ...(await nodes.occupancy(facts.id)) })));
    const obstacle = living.flatMap((facts) => facts.obstacle ?? []).map((why) => why.slice(0, 500));
    return new Placement(nodes, { loaded, ofPool: new Map(ask.ofPool), obstacle: [...new Set(obstacle)].slice(0, 3).join("; ") });
  }

  /** A node with room for a browser of this size, reserved; undefined where no node has any. */
  async reserve(browser: BrowserId, bytes: number): Promise<NodeId | undefined> {
    for (const node of this.#loaded.toSorted(byPreference(this.#ofPool))) {
      if (!(await this.nodes.reserveRoom(node.facts, browser, bytes))) continue;
      this.#ofPool.set(node.facts.id, (this.#ofPool.get(node.facts.id) ?? 0) + 1);
      this.#loaded.splice(this.#loaded.indexOf(node), 1, { ...node, bytes: node.bytes + bytes, browsers: node.browsers + 1 });
      return node.facts.id;
    }
    return undefined;
  }
}
