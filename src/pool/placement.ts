import type { BrowserId, NodeId } from "../base/ids.js";
import type { LivingNode, NodeFacts, Nodes } from "./nodes.js";

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

export interface PlacementAsk {
  readonly engine: string;
  readonly ofPool: ReadonlyMap<NodeId, number>;
  /** Launches of whoever asks have failed there: nothing is placed on the former, one browser on each of the latter. */
  readonly resting?: readonly NodeId[];
  readonly trying?: readonly NodeId[];
}

const isAble = ({ isDraining, isLate, canLaunch, engines }: LivingNode, engine: string): boolean =>
  !isDraining && !isLate && canLaunch && engines.includes(engine);

const obstacleOf = ({ id, obstacle, failing }: NodeFacts): readonly string[] =>
  [...(obstacle === undefined ? [] : [obstacle]), ...(failing ? [`${id}: ${failing.error}`] : [])];

/** Where browsers may be placed now: reserves room before anyone claims a launch. */
export class Placement {
  readonly #loaded: Loaded[];
  readonly #ofPool: Map<NodeId, number>;
  readonly #trying: ReadonlySet<NodeId>;
  /** Where all nodes fail launches, none is the sick one: then what is to be launched is at fault, and others may be well off. */
  readonly #isSomeWell: boolean;

  private constructor(
    private readonly nodes: Nodes, loaded: readonly Loaded[],
    /** `obstacle`: why living nodes launch nothing, one after the other; empty where all of them do. */
    private readonly said: { readonly ask: PlacementAsk; readonly obstacle: string },
  ) {
    const { ask } = said;
    this.#loaded = [...loaded];
    this.#ofPool = new Map(ask.ofPool);
    this.#trying = new Set(ask.trying);
    this.#isSomeWell = loaded.some(({ facts }) => !facts.failing);
  }

  get obstacle(): string {
    return this.said.obstacle;
  }

  static async open(nodes: Nodes, ask: PlacementAsk): Promise<Placement> {
    const living = await nodes.living();
    const resting = new Set(ask.resting);
    const able = living.filter((facts) => isAble(facts, ask.engine) && !resting.has(facts.id));
    const loaded = await Promise.all(able.map(async (facts) => ({ facts, ...(await nodes.occupancy(facts.id)) })));
    const obstacle = living.filter(({ isDraining }) => !isDraining).flatMap(obstacleOf).map((why) => why.slice(0, 500));
    return new Placement(nodes, loaded, { ask, obstacle: [...new Set(obstacle)].slice(0, 3).join("; ") });
  }

  /** A node with room for a browser of this size, reserved; undefined where no node has any. */
  async reserve(id: BrowserId, bytes: number): Promise<NodeId | undefined> {
    for (const node of this.#loaded.toSorted(byPreference(this.#ofPool))) {
      const { facts } = node;
      const isTrial = facts.failing !== undefined && this.#isSomeWell;
      if (!(await this.nodes.reserveRoom(facts, { id, bytes, isTrial }))) continue;
      this.#ofPool.set(facts.id, (this.#ofPool.get(facts.id) ?? 0) + 1);
      const isLast = isTrial || this.#trying.has(facts.id);
      this.#loaded.splice(this.#loaded.indexOf(node), 1, ...(isLast ? [] : [{ ...node, bytes: node.bytes + bytes, browsers: node.browsers + 1 }]));
      return facts.id;
    }
    return undefined;
  }
}
