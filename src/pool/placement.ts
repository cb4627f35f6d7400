import type { Clock, Millis } from "../base/clock.js";
import type { BrowserId, NodeId } from "../base/ids.js";
import { memoryBytes, memoryClasses } from "../spec/bodies.js";
import type { LivingNode, NodeFacts, NodeStore } from "./ports/node-store.js";

const leastBytes = Math.min(...memoryClasses.map(memoryBytes));

interface Loaded {
  readonly facts: LivingNode;
  readonly held: { readonly bytes: number; readonly browsers: number };
  /** It has refused a browser of this size. */
  readonly refusedBytes: number;
}

/**
 * Prefers the zone and there the node with the pool's fewest browsers, so that a lost one costs a pool
 * little; then the node with most room, so that nodes fill evenly; then the first by name, for a stable
 * order.
 */
export const byPreference =
  (ofPool: ReadonlyMap<NodeId, number>, ofZone: (zone: string | undefined) => number = () => 0) =>
  (one: Loaded, other: Loaded): number =>
    ofZone(one.facts.zone) - ofZone(other.facts.zone) ||
    (ofPool.get(one.facts.id) ?? 0) - (ofPool.get(other.facts.id) ?? 0) ||
    other.facts.memoryBytes - other.held.bytes - (one.facts.memoryBytes - one.held.bytes) ||
    (one.facts.id < other.facts.id ? -1 : 1);

const isAble = ({ isDraining, isLate, canLaunch }: LivingNode): boolean =>
  !isDraining && !isLate && canLaunch;

const obstacleOf = ({ id, obstacle, failing }: NodeFacts): readonly string[] => [
  ...(obstacle === undefined ? [] : [obstacle]),
  ...(failing ? [`${id}: ${failing.error}`] : []),
];

/**
 * The nodes and how full they are, read once and kept up with what is placed: for all pools of a tick. What
 * it says is a hint that spares useless questions; room is reserved in Redis.
 */
export class NodeCapacities {
  readonly #loaded: Map<NodeId, Loaded>;

  private constructor(
    private readonly nodes: NodeStore,
    private readonly living: readonly LivingNode[],
    loaded: readonly Loaded[],
  ) {
    this.#loaded = new Map(loaded.map((node) => [node.facts.id, node]));
  }

  static async read(nodes: NodeStore): Promise<NodeCapacities> {
    const living = await nodes.living();
    const loaded = await Promise.all(
      living
        .filter(isAble)
        .map(async (facts) => ({ facts, held: await nodes.occupancy(facts.id), refusedBytes: Infinity })),
    );
    return new NodeCapacities(nodes, living, loaded);
  }

  /** Nodes on which this may be launched, full ones too. */
  able(engine: string): readonly LivingNode[] {
    return [...this.#loaded.values()]
      .map(({ facts }) => facts)
      .filter(({ engines }) => engines.includes(engine));
  }

  /** The named nodes that may have room, best first. */
  best(ids: ReadonlySet<NodeId>, ofPool: ReadonlyMap<NodeId, number>, bytes: number): readonly LivingNode[] {
    const open = [...this.#loaded.values()].filter(
      ({ facts, held, refusedBytes }) =>
        ids.has(facts.id) && bytes < refusedBytes && this.nodes.fits(facts, held, bytes),
    );
    return open.toSorted(byPreference(ofPool, this.#countByZone(ofPool))).map(({ facts }) => facts);
  }

  #countByZone(ofPool: ReadonlyMap<NodeId, number>): (zone: string | undefined) => number {
    const counts = new Map<string | undefined, number>();
    for (const { id, zone } of this.living) counts.set(zone, (counts.get(zone) ?? 0) + (ofPool.get(id) ?? 0));
    return (zone) => counts.get(zone) ?? 0;
  }

  /** Whether the only obstacle is that no node has room for any browser. */
  get isFull(): boolean {
    return (
      this.obstacle === "" &&
      ![...this.#loaded.values()].some(({ facts, held }) => this.nodes.fits(facts, held, leastBytes))
    );
  }

  /** Why nodes that go on launch nothing; empty where all of them do. */
  get obstacle(): string {
    const texts = this.living
      .filter(({ isDraining }) => !isDraining)
      .flatMap(obstacleOf)
      .map((why) => why.slice(0, 500));
    return [...new Set(texts)].slice(0, 3).join("; ");
  }

  /** `isTrial`: for a node that fails launches, which has room for one at a time. */
  async reserve(
    facts: LivingNode,
    browser: { id: BrowserId; bytes: number; isTrial: boolean },
  ): Promise<boolean> {
    const isReserved = await this.nodes.reserveRoom(facts, browser);
    const node = this.#loaded.get(facts.id);
    if (node && isReserved)
      this.#loaded.set(facts.id, {
        ...node,
        held: { bytes: node.held.bytes + browser.bytes, browsers: node.held.browsers + 1 },
      });
    if (node && !isReserved && !browser.isTrial)
      this.#loaded.set(facts.id, { ...node, refusedBytes: Math.min(node.refusedBytes, browser.bytes) });
    return isReserved;
  }
}

/**
 * Reads the nodes, one reading after the other: whoever asks during one shares the next, so that many who ask
 * at once cost two.
 */
export function makeReadCapacities(nodes: NodeStore): () => Promise<NodeCapacities> {
  let last: Promise<unknown> = Promise.resolve();
  let next: Promise<NodeCapacities> | undefined;
  const begin = (): Promise<NodeCapacities> => {
    next = undefined;
    return NodeCapacities.read(nodes);
  };
  return () => {
    if (next) return next;
    const mine = last.then(begin);
    next = mine;
    last = mine.catch(() => {});
    return mine;
  };
}

/** For so long a reading is good while no node says anything else of itself: rooms come and go meanwhile. */
const keptMs: Millis = 1000;

export type PlaceByReading = <Place>(
  place: (capacities: NodeCapacities) => Promise<Place | undefined>,
) => Promise<Place | undefined>;

/**
 * Places by the last reading of the nodes where that is still good and has room, and by a new one otherwise.
 */
export function makePlaceByReading(nodes: NodeStore, clock: Clock): PlaceByReading {
  const readCapacities = makeReadCapacities(nodes);
  let last: { capacities: NodeCapacities; version: string; at: Millis } | undefined;
  return async (place) => {
    const version = await nodes.version();
    const at = clock.monotonic();
    const isGood = last !== undefined && last.version === version && at - last.at < keptMs;
    const found = isGood && last ? await place(last.capacities) : undefined;
    if (found) return found;
    const capacities = await readCapacities();
    last = { capacities, version, at };
    return await place(capacities);
  };
}

interface PlacementRequest {
  readonly engine: string;
  readonly ofPool: ReadonlyMap<NodeId, number>;
  /**
   * Launches of the pool or session have failed there: nothing is placed on the former, one browser on each
   * of the latter.
   */
  readonly resting?: readonly NodeId[];
  readonly trying?: readonly NodeId[];
}

/** Finds where browsers of one pool may be placed now, and reserves room before anyone claims a launch. */
export class Placement {
  readonly #open: Set<NodeId>;
  readonly #ofPool: Map<NodeId, number>;
  readonly #trying: ReadonlySet<NodeId>;
  /**
   * Where all nodes fail launches, none is the sick one: the template is at fault, and other pools may be
   * well.
   */
  readonly #isSomeWell: boolean;

  constructor(
    private readonly capacities: NodeCapacities,
    request: PlacementRequest,
  ) {
    const resting = new Set(request.resting);
    const able = capacities.able(request.engine).filter(({ id }) => !resting.has(id));
    this.#open = new Set(able.map(({ id }) => id));
    this.#ofPool = new Map(request.ofPool);
    this.#trying = new Set(request.trying);
    this.#isSomeWell = able.some(({ failing }) => !failing);
  }

  /** A node with room for a browser of this size, reserved; undefined where no node has any. */
  async reserve(id: BrowserId, bytes: number): Promise<NodeId | undefined> {
    for (const facts of this.capacities.best(this.#open, this.#ofPool, bytes)) {
      const isTrial = facts.failing !== undefined && this.#isSomeWell;
      if (!(await this.capacities.reserve(facts, { id, bytes, isTrial }))) continue;
      this.#ofPool.set(facts.id, (this.#ofPool.get(facts.id) ?? 0) + 1);
      if (isTrial || this.#trying.has(facts.id)) this.#open.delete(facts.id);
      return facts.id;
    }
    return undefined;
  }
}
