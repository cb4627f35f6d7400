import type { Clock, Millis } from "../base/clock.js";
import type { BrowserId, NodeId } from "../base/ids.js";
import { memoryBytes, memoryClasses } from "../spec/bodies.js";
import type { LivingNode, NodeFacts, NodeStore, Occupancy } from "./ports/node-store.js";

const leastBytes = Math.min(...memoryClasses.map(memoryBytes));

interface CandidateNode {
  readonly facts: LivingNode;
  readonly held: { readonly bytes: number; readonly browsers: number };
  /** What stands by there and would go. Where there is a choice it may stay. */
  readonly standbyBytes?: number;
  /** It has refused a browser of this size. */
  readonly refusedBytes: number;
}

const freeBytes = ({ facts, held, standbyBytes = 0 }: CandidateNode): number =>
  facts.memoryBytes - held.bytes - standbyBytes;

/**
 * Prefers the zone and there the node with the pool's fewest browsers, so that a lost one costs a pool
 * little; then the node with most room, so that nodes fill evenly; then the first by name, for a stable
 * order.
 */
export const byPreference =
  (ofPool: ReadonlyMap<NodeId, number>, ofZone: (zone: string | undefined) => number = () => 0) =>
  (one: CandidateNode, other: CandidateNode): number =>
    ofZone(one.facts.zone) - ofZone(other.facts.zone) ||
    (ofPool.get(one.facts.id) ?? 0) - (ofPool.get(other.facts.id) ?? 0) ||
    freeBytes(other) - freeBytes(one) ||
    (one.facts.id < other.facts.id ? -1 : 1);

const isAble = ({ isDraining, isLate, canLaunch }: LivingNode): boolean =>
  !isDraining && !isLate && canLaunch;

const obstacleOf = ({ id, obstacle, failing }: NodeFacts): readonly string[] => [
  ...(obstacle === undefined ? [] : [obstacle]),
  ...(failing ? [`${id}: ${failing.error}`] : []),
];

function loadedWith(facts: LivingNode, { standby, ...held }: Occupancy, standsBy: boolean): CandidateNode {
  const { browsers, bytes } = standby ?? { browsers: 0, bytes: 0 };
  return standsBy
    ? {
        facts,
        held: { browsers: held.browsers + browsers, bytes: held.bytes + bytes },
        refusedBytes: Infinity,
      }
    : { facts, held, standbyBytes: bytes, refusedBytes: Infinity };
}

/**
 * The nodes and how full they are, read once and kept up with what is placed: for all pools of a tick. What
 * it says is a hint that spares useless questions; room is reserved in Redis.
 */
export class NodeCapacities {
  readonly #standsBy: boolean;
  readonly #loaded: Map<NodeId, CandidateNode>;

  private constructor(
    private readonly nodes: NodeStore,
    private readonly living: readonly LivingNode[],
    { loaded, standsBy }: { readonly loaded: readonly CandidateNode[]; readonly standsBy: boolean },
  ) {
    this.#standsBy = standsBy;
    this.#loaded = new Map(loaded.map((node) => [node.facts.id, node]));
  }

  /** `standsBy`: for browsers that are to stand by, which take the room of no other that does. */
  static async read(nodes: NodeStore, { standsBy } = { standsBy: false }): Promise<NodeCapacities> {
    const living = await nodes.living();
    const loaded = await Promise.all(
      living
        .filter((node) => isAble(node) && !(standsBy && node.memoryIsShort))
        .map(async (facts) => loadedWith(facts, await nodes.occupancy(facts.id), standsBy)),
    );
    return new NodeCapacities(nodes, living, { loaded, standsBy });
  }

  get isEmpty(): boolean {
    return this.#loaded.size === 0;
  }

  /** Nodes on which this may be launched, full ones too. */
  able({ engine, selector = {} }: Pick<PlacementRequest, "engine" | "selector">): readonly LivingNode[] {
    return [...this.#loaded.values()]
      .map(({ facts }) => facts)
      .filter(({ engines, labels }) => engines.includes(engine) && isSelected(labels, selector));
  }

  /** The best of the named nodes that may have room. */
  best(ids: ReadonlySet<NodeId>, ofPool: ReadonlyMap<NodeId, number>, bytes: number): LivingNode | undefined {
    const prefer = byPreference(ofPool, this.#countByZone(ofPool));
    let best: CandidateNode | undefined;
    // Nobody needs the order of the others, and a large fleet has a thousand of them.
    for (const node of this.#loaded.values()) {
      const { facts, held, refusedBytes } = node;
      const isOpen = ids.has(facts.id) && bytes < refusedBytes && this.nodes.fits(facts, held, bytes);
      if (isOpen && (!best || prefer(node, best) < 0)) best = node;
    }
    return best?.facts;
  }

  #countByZone(ofPool: ReadonlyMap<NodeId, number>): (zone: string | undefined) => number {
    const counts = new Map<string | undefined, number>();
    for (const { id, zone } of this.living) counts.set(zone, (counts.get(zone) ?? 0) + (ofPool.get(id) ?? 0));
    return (zone) => counts.get(zone) ?? 0;
  }

  /** Counts a browser as placed before Redis has been asked; `size` is negative where it was refused. */
  count(id: NodeId, size: { bytes: number; browsers: number }): void {
    const node = this.#loaded.get(id);
    if (!node) return;
    const { bytes, browsers } = node.held;
    const held = { bytes: bytes + size.bytes, browsers: browsers + size.browsers };
    this.#loaded.set(id, { ...node, held });
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

  /**
   * Asks for room for one that is counted. `isTrial`: for a node that fails launches, which has room for one
   * at a time.
   */
  async reserve(
    facts: LivingNode,
    browser: { id: BrowserId; bytes: number; isTrial: boolean },
  ): Promise<boolean> {
    const isReserved = await this.nodes.reserveRoom(facts, { ...browser, standsBy: this.#standsBy });
    if (isReserved) return true;
    this.count(facts.id, { bytes: -browser.bytes, browsers: -1 });
    const node = this.#loaded.get(facts.id);
    if (node && !browser.isTrial)
      this.#loaded.set(facts.id, { ...node, refusedBytes: Math.min(node.refusedBytes, browser.bytes) });
    return false;
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
  /** Labels that the node has to have. */
  readonly selector?: Readonly<Record<string, string>> | undefined;
  readonly ofPool: ReadonlyMap<NodeId, number>;
  /**
   * Launches of the pool or session have failed there: nothing is placed on the former, one browser on each
   * of the latter, and where one has just failed only if no other node has room: a pool that lacks a single
   * browser would meet one sick node after the other.
   */
  readonly resting?: readonly NodeId[];
  readonly trying?: readonly NodeId[];
  readonly failedLately?: boolean;
}

/** Finds where browsers of one pool may be placed now, and reserves room before anyone claims a launch. */
export class Placement {
  readonly #open: Set<NodeId>;
  /** Those of the open ones that come first, all of them well. */
  readonly #preferred: ReadonlySet<NodeId> | undefined;
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
    const able = capacities.able(request).filter(({ id }) => !resting.has(id));
    this.#open = new Set(able.map(({ id }) => id));
    this.#ofPool = new Map(request.ofPool);
    this.#trying = new Set(request.trying);
    const well = able.filter(({ failing }) => !failing).map(({ id }) => id);
    this.#isSomeWell = well.length > 0;
    if (request.failedLately) this.#preferred = new Set(well.filter((id) => !this.#trying.has(id)));
  }

  /** A node with room for a browser of this size, reserved; undefined where no node has any. */
  async reserve(id: BrowserId, bytes: number): Promise<NodeId | undefined> {
    return (await this.reserveAll([id], bytes)).get(id);
  }

  /**
   * Nodes with room for browsers of this size, reserved; those for which no node has any are left out. All
   * are asked for in one round trip, and in another those that a node had no room for after all.
   */
  async reserveAll(ids: readonly BrowserId[], bytes: number): Promise<ReadonlyMap<BrowserId, NodeId>> {
    const placed = new Map<BrowserId, NodeId>();
    let left = ids;
    while (left.length > 0) {
      const tried = left.flatMap((id) => this.#choose(id, bytes) ?? []);
      if (tried.length === 0) break;
      const nodes = await Promise.all(tried.map((choice) => this.#ask(choice, bytes)));
      tried.forEach(({ id }, place) => nodes[place] && placed.set(id, nodes[place]));
      // Where nobody is chosen for one, nobody is for those after it.
      left = tried.flatMap(({ id }) => (placed.has(id) ? [] : [id]));
    }
    return placed;
  }

  /** The best node for one more, which counts as placed there from now on. */
  #choose(id: BrowserId, bytes: number): Choice | undefined {
    const bestOf = (ids: ReadonlySet<NodeId>): LivingNode | undefined =>
      this.capacities.best(ids, this.#ofPool, bytes);
    const facts = (this.#preferred && bestOf(this.#preferred)) ?? bestOf(this.#open);
    if (!facts) return undefined;
    const isTrial = facts.failing !== undefined && this.#isSomeWell;
    this.#count(facts.id, 1);
    this.capacities.count(facts.id, { bytes, browsers: 1 });
    if (isTrial || this.#trying.has(facts.id)) this.#open.delete(facts.id);
    return { id, facts, isTrial };
  }

  async #ask({ id, facts, isTrial }: Choice, bytes: number): Promise<NodeId | undefined> {
    if (await this.capacities.reserve(facts, { id, bytes, isTrial })) return facts.id;
    this.#count(facts.id, -1);
    return undefined;
  }

  #count(node: NodeId, more: number): void {
    this.#ofPool.set(node, (this.#ofPool.get(node) ?? 0) + more);
  }
}

interface Choice {
  readonly id: BrowserId;
  readonly facts: LivingNode;
  readonly isTrial: boolean;
}

const isSelected = (labels: NodeFacts["labels"] = {}, selector: Readonly<Record<string, string>>): boolean =>
  Object.entries(selector).every(([key, value]) => labels[key] === value);
