import { pause, systemClock } from "../../../src/base/clock.js";
import {
  newBrowserId,
  newLeaseId,
  newNodeId,
  newPoolId,
  type NodeId,
  type Partition,
  partitionOf,
} from "../../../src/base/ids.js";
import type { Browser } from "../../../src/pool/browser.js";
import { makeFill } from "../../../src/pool/fill.js";
import { type Maintenance, makeMaintenance } from "../../../src/pool/maintenance.js";
import { NodeCapacities } from "../../../src/pool/placement.js";
import type { NodeFacts } from "../../../src/pool/ports/node-store.js";
import type { Job } from "../../../src/pool/ports/pool-store.js";
import { nodeKey, partitionKey, partitionParts } from "../../../src/store/redis/keys.js";
import { candidateOn, poolSpec, request, type StoreBed, writeOf } from "../../support/store/store-bed.js";
import { times } from "../support/runs.js";
import { NodeJournals } from "./journals.js";
import { type FleetSize, smallest } from "./sizes.js";

const silent = { debug() {}, info() {}, warn() {}, error() {}, child: () => silent };
const memoryBytes = 2 ** 40;
const fillRatePerMinute = 600_000;

/**
 * Nodes and browsers that exist in Redis only. All that a node, a control and its ticks ask of Redis is asked
 * by the product's own modules; a job goes to its node without a queue.
 */
export class SimulatedFleet {
  readonly nodes: NodeId[] = [];
  readonly partitions: Partition[] = [];
  readonly maintenance: Maintenance;
  readonly journals: NodeJournals;
  readonly faults = new Map<string, number>();
  #stopped = false;
  #stocked = 0;
  readonly #beating = new Set<NodeId>();
  readonly #work = new Set<Promise<void>>();
  readonly #fill;

  constructor(
    private readonly bed: StoreBed,
    readonly size: FleetSize,
  ) {
    const { poolStore, nodes, allProjects: projects } = bed;
    this.journals = new NodeJournals(bed);
    const jobs = { add: async (more: readonly Job[]) => this.#take(more) };
    this.#fill = makeFill({
      poolStore,
      nodes,
      jobs,
      random: Math.random,
      recycle: { maxAgeMs: 86_400_000, jitterRatio: 0.2 },
    });
    this.maintenance = makeMaintenance({
      poolStore,
      projects,
      nodes,
      jobs,
      clock: systemClock,
      log: silent,
      fill: this.#fill,
      refresh: async () => {},
      share: () => true,
      queues: { drop: async () => {}, keep: async () => {} },
      maxLeases: null,
      listensMs: async () => Infinity,
      lostAfterMs: { node: 0, control: 0 },
    });
  }

  /** The large pool, the small one, and those that share what is left. */
  async create(): Promise<void> {
    const { nodes, pools, browsers, largest } = this.size;
    for (let count = 0; count < nodes; count += 1) this.nodes.push(newNodeId());
    await this.journals.open(this.nodes);
    for (const node of this.nodes) this.#beating.add(node);
    await this.beatAll();
    const each = Math.floor((browsers - largest - smallest) / (pools - 2));
    for (const size of [largest, smallest, ...times(pools - 2).map(() => each)]) await this.addPool(size);
  }

  async addPool(size: number): Promise<Partition> {
    const id = newPoolId();
    await this.bed.projects.addPool(id);
    const spec = poolSpec({ size, fill_rate_per_minute: fillRatePerMinute, name: `pool-${id}` });
    await this.bed.poolStore.createPool(partitionOf(id), { id, write: writeOf(spec), request: request() });
    await this.bed.projects.openPool(id);
    this.partitions.push(partitionOf(id));
    return partitionOf(id);
  }

  /** Fills every pool from nothing, all of them at once, as no fill rate would allow. */
  async fillAll(): Promise<void> {
    // Making the pools takes longer than nodes may be silent.
    await this.beatAll();
    const capacities = await NodeCapacities.read(this.bed.nodes);
    for (const partition of this.partitions) {
      while ((await this.bed.poolStore.lackOf(partition)) !== "nothing") {
        await this.#fill(partition, async () => capacities);
        await this.settled();
      }
    }
  }

  /**
   * Writes the browsers of an empty pool as a node writes again what Redis has forgotten, which takes a tenth
   * of launching them, and their places on their nodes. `leased`: so many of them are.
   */
  async stock(partition: Partition, size: number, leased = 0): Promise<void> {
    const { poolStore, dataset, reports } = this.bed;
    const nextNode = (): NodeId => this.nodes[this.#stocked++ % this.nodes.length] ?? newNodeId();
    const candidates = [candidateOn(partition, nextNode(), (await poolStore.now()) + 86_400_000)];
    const [claimed] = await poolStore.claimLaunches(partition, { candidates, request: request() });
    if (!claimed) throw new Error("nothing was claimed");
    await reports.launched(claimed.id, claimed.claim, "{}");
    const { claim: _, ...record } = claimed;
    const browsers = times(size - 1).map((place): Browser => {
      const own = { id: newBrowserId(partition), node: nextNode() };
      if (place >= leased) return { ...record, ...own, state: "idle" };
      const lease = { id: newLeaseId(), grantedAt: record.createdAt, timeoutSeconds: 600, registrations: 1 };
      return { ...record, ...own, state: "leased", lease };
    });
    await dataset.restoreBrowsers(partition, browsers);
    const place = `1 ${(await poolStore.now()) + 60_000}`;
    const rooms = [claimed, ...browsers].map(({ id, node }) =>
      this.bed.redis.hset(nodeKey(node, "room"), id, place),
    );
    await Promise.all(rooms);
  }

  /** Fills every pool. */
  async stockAll(): Promise<void> {
    const { browsers, largest, pools } = this.size;
    const each = Math.floor((browsers - largest - smallest) / (pools - 2));
    for (const [place, partition] of this.partitions.entries()) {
      if (place % 200 === 0) await this.beatAll();
      await this.stock(partition, [largest, smallest][place] ?? each);
    }
  }

  /** Nothing of a pool is left, and nobody does anything of it. */
  async forget(partition: Partition): Promise<void> {
    this.partitions.splice(this.partitions.indexOf(partition), 1);
    this.bed.jobs.splice(0);
    const { project, redis } = this.bed;
    await redis.unlink(partitionParts.map((part) => partitionKey(project, partition, part)));
    await redis.unlink(this.nodes.map((node) => nodeKey(node, "room")));
  }

  async settled(): Promise<void> {
    while (this.#work.size > 0) await Promise.all(this.#work);
    await this.bed.effects.idle();
  }

  async beatAll(): Promise<void> {
    await Promise.all([...this.#beating].map((node) => this.#beat(node)));
  }

  async #beat(id: NodeId): Promise<void> {
    const facts: NodeFacts = {
      id,
      host: "127.0.0.1",
      port: 1,
      memoryBytes,
      maxBrowsers: Math.ceil((this.size.browsers / this.size.nodes) * 1.5),
      isDraining: false,
      canLaunch: true,
      engines: ["chromium"],
    };
    await this.journals.beat(facts);
  }

  /** These say nothing any more and do nothing. */
  fall(nodes: readonly NodeId[]): void {
    for (const node of nodes) this.#beating.delete(node);
  }

  /** Beats of every node each second, ticks at their default periods, and so many ends of browsers. */
  async run(over: AbortSignal, endsPerSecond: number): Promise<{ ended: number; ticks: TickTimes }> {
    const ticks: TickTimes = { fill: [], reap: [], sweep: [], recycle: [] };
    let ended = 0;
    const beats = this.#repeat(over, 1000, () => this.beatAll());
    const runTicks = tickNames.map((name) =>
      this.#repeat(over, tickPeriodMs[name], async () => {
        const began = systemClock.monotonic();
        await this.maintenance[name]();
        ticks[name].push(systemClock.monotonic() - began);
      }),
    );
    const ends = this.#repeat(over, 100, async () => {
      ended += await this.#endSome(Math.round(endsPerSecond / 10));
    });
    await Promise.all([beats, ...runTicks, ends]);
    return { ended, ticks };
  }

  async #repeat(over: AbortSignal, periodMs: number, work: () => Promise<unknown>): Promise<void> {
    while (!over.aborted) {
      const began = systemClock.monotonic();
      await work().catch((error: unknown) => this.#fault(error));
      await pause(systemClock, Math.max(1, periodMs - (systemClock.monotonic() - began)), over);
    }
  }

  /** Half of them in the large pool, which has half of the browsers. */
  async #endSome(count: number): Promise<number> {
    const ends = times(count).map(async (place) => {
      const at = place % 2 === 0 ? 0 : 2 + Math.floor(Math.random() * (this.partitions.length - 2));
      const partition = this.partitions[at];
      if (partition === undefined) return 0;
      const node = this.nodes[Math.floor(Math.random() * this.nodes.length)];
      if (node === undefined || !this.#beating.has(node)) return 0;
      const { browsers } = await this.bed.poolStore.browsersOf(partition, node);
      const idle = browsers.find(({ state }) => state === "idle");
      if (!idle) return 0;
      const end = await this.bed.reports.end(idle.id, "crashed", "simulated");
      if (end.kind === "retiring") await this.bed.reports.gone(idle.id, end.claim);
      return end.kind === "retiring" ? 1 : 0;
    });
    return (await Promise.all(ends)).reduce((sum: number, one) => sum + one, 0);
  }

  #take(jobs: readonly Job[]): void {
    for (const job of jobs) {
      if (!this.#beating.has(job.node)) continue;
      const work = this.#do(job)
        .catch((error: unknown) => this.#fault(error))
        .finally(() => this.#work.delete(work));
      this.#work.add(work);
    }
  }

  async #do({ kind, browser, claim }: Job): Promise<void> {
    const { reports } = this.bed;
    if (kind === "retire") return await reports.gone(browser, claim);
    if (kind === "reset") return void (await reports.freed(browser, claim));
    if (await reports.beginLaunch(browser, claim)) await reports.launched(browser, claim, "{}");
  }

  /** What scripts have left to do: jobs that no fill has added. */
  serveEffects(): () => void {
    return systemClock.every(20, () => {
      if (!this.#stopped) this.#take(this.bed.jobs.splice(0));
    });
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.journals.close();
  }

  #fault(error: unknown): void {
    const text = error instanceof Error ? error.message : String(error);
    this.faults.set(text, (this.faults.get(text) ?? 0) + 1);
  }
}

/** What a control does of itself, and how often by default (daemon/control/schedules.ts). */
const tickPeriodMs = { fill: 1000, reap: 2000, sweep: 2000, recycle: 10_000 } as const;
type TickName = keyof typeof tickPeriodMs;
export const tickNames = Object.keys(tickPeriodMs) as readonly TickName[];
export type TickTimes = Readonly<Record<TickName, number[]>>;
