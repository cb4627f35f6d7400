import type { Clock, Millis } from "../../base/clock.js";
import { attemptEach } from "../../base/concurrently.js";
import { isOnDemand, newRequestId, type NodeId, type Partition } from "../../base/ids.js";
import type { Browser } from "../../pool/browser.js";
import type { PoolStore } from "../../pool/ports/pool-store.js";
import type { Slots } from "../slots.js";

interface ClosedPoolsPorts {
  readonly node: NodeId;
  readonly poolStore: Pick<PoolStore, "recycle" | "reopenNode">;
  readonly slots: Pick<Slots, "beforeLaunched">;
  readonly clock: Clock;
}

/** The browsers of a node, by the partitions that have any. */
export type BrowsersByPartition = ReadonlyMap<Partition, readonly Browser[]>;

const partitionsAtOnce = 32;

/**
 * Says in each pool that has browsers of this node that they are lent only where there are no others, and how
 * long they may be. A pool that has none is not told: its record names the nodes that drain, and each script
 * that lends reads them all.
 */
export class ClosedPools {
  /** Until when (monotonic) each was marked; undefined where it is not known whether it was. */
  readonly #marked = new Map<Partition, Millis | undefined>();
  /** Marks that launches are waiting for. */
  readonly #underWay = new Set<Promise<void>>();
  #until: Millis = 0;

  constructor(private readonly ports: ClosedPoolsPorts) {}

  /**
   * A launch that a control had claimed before it heard of the drain may reach a pool that had nothing here
   * and is not marked. So from now on, until `signal`, a browser's pool is marked before the browser is
   * reported as launched, which is what makes it idle. Its record is there since its claim.
   */
  watchLaunches(until: Millis, signal: AbortSignal): void {
    const { beforeLaunched } = this.ports.slots;
    this.#until = until;
    const mark = async (partition: Partition): Promise<void> => {
      if (isOnDemand(partition)) return;
      const marking = this.#mark(partition);
      this.#underWay.add(marking);
      await marking.finally(() => this.#underWay.delete(marking));
    };
    beforeLaunched.add(mark);
    signal.addEventListener("abort", () => beforeLaunched.delete(mark), { once: true });
  }

  /**
   * Marks the partitions of these browsers until then, where they are not. Also where one in service is not
   * marked: a failover may have taken that back.
   */
  async set(own: BrowsersByPartition, until: Millis): Promise<void> {
    this.#until = until;
    await this.#settle();
    const unmarked = [...own].flatMap(([partition, browsers]) =>
      !isOnDemand(partition) && (this.#marked.get(partition) !== until || browsers.some(isUnmarked))
        ? [partition]
        : [],
    );
    await attemptEach(unmarked, partitionsAtOnce, (partition) => this.#mark(partition));
  }

  /** Takes all marks back. */
  async unset(): Promise<void> {
    const { poolStore, node } = this.ports;
    await this.#settle();
    await attemptEach(this.#marked.keys(), partitionsAtOnce, (partition) =>
      poolStore.reopenNode(partition, node),
    );
  }

  /** Marks that were begun before do not arrive after those that come now. */
  async #settle(): Promise<void> {
    await Promise.allSettled(this.#underWay);
  }

  async #mark(partition: Partition): Promise<void> {
    const { poolStore, node, clock } = this.ports;
    const until = this.#until;
    this.#marked.set(partition, undefined);
    await poolStore.recycle(partition, {
      maxLeases: null,
      drains: { node, ms: Math.max(0, until - clock.monotonic()) },
      request: newRequestId(),
    });
    this.#marked.set(partition, until);
  }
}

const isUnmarked = ({ state, replaceable }: Browser): boolean =>
  state !== "launching" && state !== "retiring" && !replaceable;
