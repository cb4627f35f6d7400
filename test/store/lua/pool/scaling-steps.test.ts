import { expect, test } from "vitest";
import type { NodeId } from "../../../../src/base/ids.js";
import type { NodeFacts } from "../../../../src/pool/ports/node-store.js";
import { makeReadScaling } from "../../../../src/pool/scaling.js";
import { scaledFrom } from "../../../support/kubernetes/autoscaler.js";
import { onBoth } from "../../../support/store/on-both.js";
import { type Held, PoolBed } from "../../../support/store/pool-bed.js";
import { candidateOn, claimOf, request, type StoreBed } from "../../../support/store/store-bed.js";

const gib = 2 ** 30;
/** What the examples have. */
const target = 0.9;

interface FleetNode extends NodeFacts {
  isDraining: boolean;
}

/** Nodes with pools whose launches they take, and what an autoscaler reads of them after each step. */
class Fleet {
  readonly nodes: FleetNode[] = [];
  readonly wanted: number[] = [];
  readonly #read: () => Promise<{ readonly wantedNodes: number }>;
  readonly #leases: [PoolBed, Held][] = [];
  #made = 0;
  #turn = 0;

  constructor(
    readonly bed: StoreBed,
    readonly pools: readonly PoolBed[],
    readonly room: number,
  ) {
    this.#read = makeReadScaling({
      nodes: bed.nodes,
      pools: bed.poolStore,
      scaling: bed.scaling,
      overcommit: 1,
      partitions: async () => pools.map(({ partition }) => partition),
    });
  }

  async read(): Promise<number> {
    await this.bed.effects.idle();
    const { wantedNodes } = await this.#read();
    this.wanted.push(wantedNodes);
    return wantedNodes;
  }

  async add(count: number): Promise<void> {
    for (let added = 0; added < count; added += 1) {
      const node: FleetNode = {
        id: `node-${(this.#made += 1)}` as NodeId,
        host: "10.0.0.1",
        port: 4700,
        memoryBytes: this.room * gib,
        maxBrowsers: 1000,
        isDraining: false,
        canLaunch: true,
        engines: ["chromium"],
      };
      this.nodes.push(node);
      await this.bed.nodes.beat(node);
      await this.read();
    }
  }

  async drain(node: FleetNode, isOnRequest = false): Promise<void> {
    node.isDraining = true;
    if (isOnRequest) await this.bed.nodes.drain(node.id, 540_000);
    else await this.bed.nodes.beat(node);
    const drains = { node: node.id, ms: 540_000 };
    for (const { partition } of this.pools)
      await this.bed.poolStore.recycle(partition, { maxLeases: null, drains, request: request() });
    await this.read();
  }

  /** All that pools lack is launched where there is room, and all that is over is ended. */
  async settle(): Promise<void> {
    for (const pool of this.pools) await this.#fill(pool);
    for (const pool of this.pools) {
      const over = (await pool.browsers()).filter(({ state }) => state === "retiring");
      for (const browser of over) {
        await this.bed.reports.gone(browser.id, claimOf(browser));
        await this.bed.effects.idle();
        await this.#fill(pool);
      }
    }
    await this.read();
  }

  async #fill(pool: PoolBed): Promise<void> {
    while (await this.#launch(pool)) await this.read();
  }

  /** Whether something was launched. */
  async #launch({ partition }: PoolBed): Promise<boolean> {
    const { poolStore, nodes, reports } = this.bed;
    if ((await poolStore.wanted(partition, 1)).count === 0) return false;
    for (const node of this.#serving()) {
      const candidate = candidateOn(partition, node.id);
      if (!(await nodes.reserveRoom(node, { id: candidate.id, bytes: gib }))) continue;
      const ask = { candidates: [candidate], request: request() };
      const [browser] = await poolStore.claimLaunches(partition, ask);
      if (!browser) throw new Error("a launch that is wanted was not claimed");
      await this.read();
      await reports.launched(browser.id, claimOf(browser), "{}");
      return true;
    }
    await poolStore.claimLaunches(partition, { candidates: [], request: request() });
    return false;
  }

  /** Those that serve, each of them the first in turn. */
  #serving(): readonly FleetNode[] {
    const serving = this.nodes.filter(({ isDraining }) => !isDraining);
    const first = (this.#turn += 1) % serving.length;
    return [...serving.slice(first), ...serving.slice(0, first)];
  }

  async lend(pool: PoolBed, count: number): Promise<void> {
    for (let lent = 0; lent < count; lent += 1) this.#leases.push([pool, await pool.lend()]);
  }

  /** What is leased on draining nodes is given back, what is left there ends, and they go. */
  async endDrains(): Promise<void> {
    const over = this.nodes.filter(({ isDraining }) => isDraining).map(({ id }) => id);
    for (const [pool, held] of this.#leases) if (over.includes(held.browser.node)) await pool.release(held);
    await this.read();
    await this.settle();
    for (const node of over) await this.#clear(node);
    await this.settle();
    for (const node of over) await this.bed.nodes.forget(node);
    this.nodes.splice(0, this.nodes.length, ...this.nodes.filter(({ isDraining }) => !isDraining));
    await this.read();
  }

  async #clear(node: NodeId): Promise<void> {
    const ask = { node, why: "drained", which: "all" } as const;
    for (const { partition } of this.pools)
      await this.bed.poolStore.clearNode(partition, { ...ask, request: request() });
    await this.read();
  }
}

/** Nodes beat once, however long a test takes. */
const onBothUnhurried = (name: string, body: Parameters<typeof onBoth>[1]): void =>
  onBoth(name, body, { nodeLateMs: 600_000, nodeLostMs: 600_000 });

onBothUnhurried("what an autoscaler is told at each step", ({ bed }) => {
  interface Wish {
    readonly sizes: readonly number[];
    /** How many of each pool are leased. */
    readonly leased: readonly number[];
    readonly nodes: number;
    readonly room: number;
  }
  async function filled({ sizes, leased, nodes, room }: Wish): Promise<Fleet> {
    const pools: PoolBed[] = [];
    for (const size of sizes)
      pools.push(await PoolBed.create(bed(), { size, fill_rate_per_minute: 100_000, timeout_seconds: 3600 }));
    const fleet = new Fleet(bed(), pools, room);
    await fleet.add(nodes);
    await fleet.settle();
    for (const [place, pool] of pools.entries()) await fleet.lend(pool, leased[place] ?? 0);
    await fleet.read();
    fleet.wanted.length = 0;
    return fleet;
  }
  const kinds = [
    { what: "idle", leased: [0, 0] },
    { what: "leased", leased: [8, 16] },
    { what: "idle and leased", leased: [3, 10] },
  ];

  test.each(kinds)("of a roll-out whose browsers are $what: as many nodes as before", async ({ leased }) => {
    const fleet = await filled({ sizes: [8, 16], leased, nodes: 4, room: 8 });
    const old = [...fleet.nodes];
    expect(await fleet.read()).toBe(3);
    expect(scaledFrom(4, 3, target)).toBe(4);
    for (const each of [old.slice(0, 2), old.slice(2)]) {
      await fleet.add(2);
      for (const node of each) await fleet.drain(node);
      await fleet.settle();
      await fleet.settle();
    }
    await fleet.endDrains();
    expect(new Set(fleet.wanted)).toEqual(new Set([3]));
    expect(fleet.nodes).toHaveLength(4);
  });

  test.each(kinds)(
    "of drains whose browsers are $what, with too little room for others: as many nodes as before",
    async ({ leased }) => {
      const fleet = await filled({ sizes: [8, 16], leased, nodes: 4, room: 8 });
      for (const node of fleet.nodes.slice(0, 2)) await fleet.drain(node);
      await fleet.settle();
      await fleet.settle();
      await fleet.endDrains();
      expect(new Set(fleet.wanted)).toEqual(new Set([3]));
    },
  );

  test.each(kinds)(
    "of drains on request whose browsers are $what: one more for each, from its begin until its node is gone",
    async ({ leased }) => {
      const fleet = await filled({ sizes: [8, 16], leased, nodes: 6, room: 8 });
      for (const node of fleet.nodes.slice(0, 2)) await fleet.drain(node, true);
      expect(fleet.wanted.splice(0)).toEqual([4, 5]);
      await fleet.settle();
      await fleet.settle();
      expect(scaledFrom(6, await fleet.read(), target)).toBe(6);
      await fleet.endDrains();
      expect(fleet.wanted.pop()).toBe(3);
      expect(new Set(fleet.wanted)).toEqual(new Set([5]));
    },
  );

  test.each(kinds)(
    "of a scale-down whose browsers are $what: it does not undo itself",
    async ({ leased }) => {
      const fleet = await filled({ sizes: [8, 16], leased, nodes: 4, room: 24 });
      const replicas = [4];
      for (let at = 4, minutes = 0; minutes < 5; minutes += 1) {
        const next = scaledFrom(at, Math.max(...fleet.wanted.splice(0), await fleet.read()), target);
        for (const node of fleet.nodes.slice(0, Math.min(1, Math.max(0, at - next)))) await fleet.drain(node);
        if (next > at) await fleet.add(next - at);
        at = next < at ? at - 1 : next;
        replicas.push(at);
        await fleet.settle();
        await fleet.settle();
        await fleet.endDrains();
      }
      expect(replicas).toEqual([4, 3, 2, 2, 2, 2]);
    },
  );

  test("of a flush: as many nodes as before", async () => {
    const fleet = await filled({ sizes: [8, 16], leased: [0, 4], nodes: 3, room: 8 });
    for (const { partition } of fleet.pools) await bed().poolStore.flush(partition, request());
    await fleet.settle();
    await fleet.settle();
    expect(new Set(fleet.wanted)).toEqual(new Set([3]));
  });
});
