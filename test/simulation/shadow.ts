import type { BrowserId, Partition, LeaseId, NodeId } from "../../src/base/ids.js";
import { type BrowserState, browserStates } from "../../src/pool/browser.js";
import { browserMoves } from "../support/store/browser-moves.js";

/**
 * The reason for which a step may end leases. A lease that ends for any other reason breaks
 * CONTRIBUTING.md#what-may-never-happen.
 */
export type Cause =
  | { readonly kind: "none" }
  | { readonly kind: "release" | "undo" | "expire"; readonly lease: LeaseId }
  | { readonly kind: "end"; readonly browser: BrowserId }
  | { readonly kind: "clear" | "register"; readonly node: NodeId }
  | { readonly kind: "delete"; readonly partition: Partition }
  | { readonly kind: "reap" };

export interface ShadowLease {
  readonly id: LeaseId;
  readonly browser: BrowserId;
  readonly partition: Partition;
  readonly grantedAt: number;
  /** A client has been registered with it. */
  isOpened: boolean;
  isConfirmed: boolean;
  /**
   * Its control has reported that its reply was lost: it is kept for a retry, and may be taken back after
   * that.
   */
  isDoubtful: boolean;
}

export interface ShadowBrowser {
  readonly id: BrowserId;
  readonly partition: Partition;
  readonly node: NodeId;
  state: BrowserState;
  lease?: LeaseId;
  /** Made so by a flush or a change: it is not lent again. */
  isDiscarded?: boolean;
}

export interface Move {
  readonly browser: BrowserId;
  readonly lease: string;
  readonly from: string;
  readonly to: string;
  readonly why: string;
}

export const broken = (what: string): never => {
  throw new Error(`broken: ${what}`);
};
export function hold(condition: boolean, what: () => string): asserts condition {
  if (!condition) broken(what());
}

type Counts = Record<BrowserState, number>;

/** A copy of everything that is known at one moment. */
export interface ShadowState {
  readonly browsers: ReadonlyMap<BrowserId, ShadowBrowser>;
  readonly leases: ReadonlyMap<LeaseId, ShadowLease>;
  readonly over: ReadonlySet<LeaseId>;
  readonly counts: ReadonlyMap<Partition, Counts>;
}

function fill<Key, Value>(map: Map<Key, Value>, from: ReadonlyMap<Key, Value>): void {
  map.clear();
  for (const [key, value] of from) map.set(key, value);
}

/** What exists according to the stream of events. Every move is judged as it is read. */
export class Shadow {
  readonly browsers = new Map<BrowserId, ShadowBrowser>();
  readonly leases = new Map<LeaseId, ShadowLease>();
  readonly over = new Set<LeaseId>();
  readonly #counts = new Map<Partition, Counts>();

  constructor(
    private readonly ports: {
      nodeOf(browser: BrowserId): NodeId;
      onGrant(lease: ShadowLease, why: string): void;
      mayEnd(lease: ShadowLease, why: string): boolean;
    },
  ) {}

  /** All leases that ever were, as far as is known now. */
  known(): readonly LeaseId[] {
    return [...this.leases.keys(), ...this.over];
  }

  copy(): ShadowState {
    const { browsers, leases, over } = this;
    return structuredClone({ browsers, leases, over, counts: this.#counts });
  }

  restore({ browsers, leases, over, counts }: ShadowState): void {
    fill(this.browsers, browsers);
    fill(this.leases, leases);
    fill(this.#counts, counts);
    this.over.clear();
    for (const lease of over) this.over.add(lease);
  }

  counts(partition: Partition): Counts {
    const counts =
      this.#counts.get(partition) ?? (Object.fromEntries(browserStates.map((state) => [state, 0])) as Counts);
    this.#counts.set(partition, counts);
    return counts;
  }

  /**
   * The keys of a deleted pool are gone, and with them the moves of what went last. A lease among that has to
   * be one that the step may end.
   */
  clear(partition: Partition): void {
    for (const browser of this.browsers.values()) {
      if (browser.partition !== partition) continue;
      const { id, state, lease } = browser;
      if (lease) this.#end({ browser: id, lease, from: state, to: "retiring", why: "pool_deleted" });
      this.browsers.delete(id);
    }
    this.#counts.delete(partition);
  }

  apply(partition: Partition, move: Move, at: number): void {
    const counts = this.counts(partition);
    const before = this.browsers.get(move.browser);
    hold(
      (before?.state ?? "none") === move.from,
      () => `${move.browser} moved from ${move.from} but was ${before?.state ?? "none"}`,
    );
    if (move.from === "leased") this.#end(move);
    if (before) counts[before.state] -= 1;
    if (move.to === "gone") return void this.browsers.delete(move.browser);
    const to = move.to as BrowserState;
    hold(
      !before || browserMoves.get(before.state)?.includes(to) === true,
      () => `${move.from} to ${to} is no move`,
    );
    counts[to] += 1;
    const browser: ShadowBrowser = before ?? {
      id: move.browser,
      partition,
      node: this.ports.nodeOf(move.browser),
      state: to,
    };
    browser.state = to;
    this.browsers.set(browser.id, browser);
    if (to === "leased") this.#grant(browser, move, at);
  }

  #grant(browser: ShadowBrowser, move: Move, at: number): void {
    const id = move.lease as LeaseId;
    hold(id.length > 0, () => `${browser.id} was leased to nobody`);
    hold(!this.leases.has(id) && !this.over.has(id), () => `the lease ${id} was granted twice`);
    hold(browser.lease === undefined, () => `${browser.id} is held by ${browser.lease} and ${id}`);
    const lease = {
      id,
      browser: browser.id,
      partition: browser.partition,
      grantedAt: at,
      isOpened: false,
      isConfirmed: false,
      isDoubtful: false,
    };
    browser.lease = id;
    this.leases.set(id, lease);
    this.ports.onGrant(lease, move.why);
  }

  #end(move: Move): void {
    const browser = this.browsers.get(move.browser);
    const lease = browser?.lease && this.leases.get(browser.lease);
    if (!browser || !lease) return broken(`${move.browser} was leased without a lease`);
    hold(lease.id === move.lease, () => `the end of ${lease.id} was reported as that of ${move.lease}`);
    hold(
      this.ports.mayEnd(lease, move.why),
      () => `the lease ${lease.id} of ${browser.id} was ended: ${move.why}`,
    );
    this.leases.delete(lease.id);
    this.over.add(lease.id);
    delete browser.lease;
  }
}
