import {
  type BrowserId,
  type Partition,
  type LeaseId,
  type NodeId,
  onDemandPartition,
  type RequestId,
} from "../../src/base/ids.js";
import type { LaunchCandidate } from "../../src/pool/ports/pool-store.js";
import {
  idempotencyKey,
  nodeKey,
  nodeParts,
  nodesKey,
  organizationKey,
  partitionKey,
  partitionParts,
  projectKey,
  projectParts,
} from "../../src/store/redis/keys.js";
import { ageKeys } from "../support/store/age.js";
import { type HeardMessage, openMessageListener } from "../support/egress/listener.js";
import type { TestRedis } from "../support/store/redis.js";
import { openStoreBed, type StoreBed } from "../support/store/store-bed.js";
import type { Slot } from "./begin.js";
import { ClosedNodes } from "./closed-nodes.js";
import type { Snapshot } from "./failover.js";
import { isBusyIn, simulatedLimits, type Ask, type Caller, type Control, type FakeNode } from "./model.js";
import type { Holder, PoolModel, Release } from "./model.js";
import { judgeGrant, mayEnd } from "./judge.js";
import { Random } from "./random.js";
import { type Cause, hold, Shadow } from "./shadow.js";
import { picturesOf, Watch } from "./watch.js";

const beatPeriodMs = 1000;
/** Whoever has beaten this lately lives, even if this process stood still for a while. */
export const heardForMs = 10_000;

export class World {
  readonly random: Random;
  readonly shadow: Shadow;
  readonly history: string[] = [];
  pool: PoolModel | undefined;
  readonly controls: Control[] = [];
  readonly nodes: FakeNode[] = [];
  readonly deadNodes: FakeNode[] = [];
  callers: Caller[] = [];
  asks: Ask[] = [];
  holders: Holder[] = [];
  releases: Release[] = [];
  expiries: { browser: BrowserId; lease: LeaseId; registrations: number }[] = [];
  openings: { node: FakeNode; browser: BrowserId; lease: LeaseId }[] = [];
  plans: { readonly partition: Partition; readonly candidates: readonly LaunchCandidate[] }[] = [];
  inbox: HeardMessage[] = [];
  /** Messages that have arrived and may arrive again. */
  heard: HeardMessage[] = [];
  /** The ids of this world's controls and nodes; messages to others are another world's. */
  readonly ids = new Set<string>();
  /** The control that was the last to request each lease. */
  readonly speakers = new Map<LeaseId, Control>();
  readonly nodeOf = new Map<BrowserId, NodeId>();
  snapshot: Snapshot | undefined;
  /** For so many steps only leases are made, since what a failover may break is who holds what. */
  lendingSteps = 0;
  /** The browser of each lease that some caller has been told of. */
  readonly told = new Map<LeaseId, BrowserId>();
  /** The nodes from which pools may not lend. */
  closed = new ClosedNodes();
  readonly unregistered = new Map<BrowserId, number>();
  /** Leases that a failover has made Redis forget, or whose clients it has made it forget. */
  readonly lost = new Set<LeaseId>();
  cause: Cause = { kind: "none" };
  isRefused = false;
  isEffectLost = false;
  hasActed = false;
  isAtRest = false;
  isDisturbed = false;
  now = 0;
  /** The last time at which all that lives and reaches Redis has beaten. */
  beatenAt = 0;
  aged = 0;
  steps = 0;
  readonly #watches = new Map<Partition, Watch>();
  /** Partitions that are gone, but for which a control may still beat. */
  #former: readonly Partition[] = [];

  private constructor(
    readonly bed: StoreBed,
    readonly at: {
      readonly listener: Awaited<ReturnType<typeof openMessageListener>>;
      readonly server: TestRedis;
    },
    seed: number,
  ) {
    this.random = new Random(seed);
    this.shadow = new Shadow({
      nodeOf: (browser) => this.nodeOf.get(browser) ?? ("" as NodeId),
      onGrant: (lease, why) => judgeGrant(this, lease, why),
      mayEnd: (lease, why) => mayEnd(this, lease, why),
    });
    this.watch(onDemandPartition);
  }

  static async open(server: TestRedis, seed: number, database: number): Promise<World> {
    const holder: { world?: World } = {};
    const bed = await openStoreBed(server, {
      project: `world${database}`,
      database,
      limits: simulatedLimits,
      commandTimeoutMs: 120_000,
      isEffectLost: () => holder.world?.isEffectLost ?? false,
    });
    const listener = await openMessageListener(server, (channel) => holder.world?.isMine(channel) ?? false);
    const world = new World(bed, { listener, server }, seed);
    holder.world = world;
    return world;
  }

  async close(): Promise<void> {
    this.at.listener.close();
    await this.bed.close();
  }

  watch(partition: Partition): void {
    this.#watches.set(partition, new Watch(this, partition, this.shadow));
  }

  watches(): readonly Watch[] {
    return [...this.#watches.values()];
  }

  /** Restores the watches of a snapshot, each at its position then. */
  watchAgain(watches: Snapshot["watches"]): void {
    this.#watches.clear();
    for (const [watch, at] of watches) {
      watch.backTo(at);
      this.#watches.set(watch.partition, watch);
    }
  }

  partitions(): readonly Partition[] {
    return [...this.#watches.keys()];
  }

  /** True with this probability, for faults; never at rest. */
  fails(probability: number): boolean {
    return !this.isAtRest && this.random.chance(probability);
  }

  note(text: string): void {
    this.hasActed = true;
    this.history.push(`${this.steps} ${text}`);
    if (this.history.length > 50) this.history.shift();
  }

  request(): RequestId {
    return this.random.id(24) as RequestId;
  }

  /** Takes one step, and judges its moves before the next one begins. */
  async step(act: () => Promise<void>): Promise<void> {
    this.hasActed = false;
    this.cause = { kind: "none" };
    this.isRefused = false;
    this.isEffectLost = this.fails(0.03);
    // Beats come by simulated time, so that they are in time on a busy machine too.
    if (this.now - this.beatenAt > beatPeriodMs) await this.beat();
    const partitions = this.partitions();
    const before = this.random.chance(0.03)
      ? await picturesOf(this.bed.redis, this.bed.project, partitions)
      : undefined;
    await act();
    // An action that found nothing to act on is not a step.
    if (!this.hasActed) return;
    this.steps += 1;
    const moves = await this.look();
    if (!this.isRefused) return;
    hold(moves === 0, () => "a refused request has moved something");
    if (!before) return;
    const after = await picturesOf(this.bed.redis, this.bed.project, partitions);
    const changed = [...after].flatMap(([key, picture]) => (before.get(key) === picture ? [] : key));
    hold(changed.length === 0, () => `a refused request has changed ${changed.join()}`);
  }

  async look(): Promise<number> {
    const seen = await Promise.all(
      [...this.#watches.values()].map(async (watch) => ({ watch, ...(await watch.look(this.aged)) })),
    );
    for (const { watch, isThere } of seen) {
      if (!isThere && watch.partition !== onDemandPartition && watch.partition !== this.pool?.partition)
        this.#forget(watch.partition);
    }
    this.now = Math.max(this.now, ...seen.map(({ at }) => at));
    return seen.reduce((sum, { moves }) => sum + moves.length, 0);
  }

  #forget(partition: Partition): void {
    this.#watches.delete(partition);
    this.#former = [...this.#former, partition].slice(-3);
  }

  /** Runs a changing call, sometimes twice under its request id, as after a lost reply of Redis. */
  async repeatably<Value>(call: () => Promise<Value>, kindOf: (value: Value) => string): Promise<Value> {
    const first = await call();
    const kind = kindOf(first);
    if (!this.random.chance(0.05)) return first;
    const again = await call();
    hold(kindOf(again) === kind, () => `a repeat answered ${kindOf(again)} after ${kind}`);
    return again;
  }

  /** Lets time pass for all that is stored; then everything that lives beats. */
  async pass(ms: number): Promise<void> {
    this.aged += ms;
    await ageKeys(this.bed.redis, this.#keys(), ms);
    await this.beat();
  }

  async beat(): Promise<void> {
    this.beatenAt = this.now;
    const controls = this.controls.filter((one) => one.isAlive && !one.isPaused && !one.isStopped);
    await Promise.all([
      ...controls.flatMap((control) =>
        [...this.partitions(), ...this.#former]
          .filter((partition) => !this.isAtRest || isBusyIn(partition, control, this.callers))
          .map((partition) => this.bed.poolStore.beat(partition, control.id)),
      ),
      ...this.nodes
        .filter(({ isFrozen }) => !isFrozen)
        .map(
          async (node) =>
            void (node.isNamed = (await this.bed.nodes.beat(this.factsOf(node))).kind === "accepted"),
        ),
    ]);
  }

  factsOf(node: FakeNode): Parameters<StoreBed["nodes"]["beat"]>[0] {
    const { id, run, maxBrowsers, failures } = node;
    return {
      id,
      run,
      origin: run,
      host: "127.0.0.1",
      port: 1,
      memoryBytes: 2 ** 40,
      maxBrowsers,
      isDraining: node.drain !== undefined,
      canLaunch: true,
      engines: ["chromium"],
      ...(failures > 0 && { failing: { failures, error: "no display" } }),
    };
  }

  remove(node: FakeNode): void {
    node.isAlive = false;
    this.deadNodes.push(...this.nodes.splice(this.nodes.indexOf(node), 1));
    this.dropPlans(node.id);
  }

  /** Drops the plans that name a node: whoever reserves room claims it within seconds, or not at all. */
  dropPlans(node: NodeId): void {
    this.plans = this.plans.filter(({ candidates }) =>
      candidates.every((candidate) => candidate.node !== node),
    );
  }

  /** The node and slot of a browser, where that node lives and has it. */
  slotOf(browser: BrowserId): { node: FakeNode; slot: Slot } | undefined {
    const node = this.nodes.find(({ id }) => id === this.nodeOf.get(browser));
    const slot = node?.slots.get(browser);
    return node && slot ? { node, slot } : undefined;
  }

  isMine(channel: string): boolean {
    return this.ids.has(channel.slice(channel.lastIndexOf(":") + 1));
  }

  async collect(): Promise<void> {
    this.inbox.push(...(await this.at.listener.heard()));
  }

  #keys(): readonly string[] {
    const { project } = this.bed;
    const keys = this.asks.flatMap(({ waiter, partition }) =>
      waiter.key ? [idempotencyKey(project, partition, waiter.key)] : [],
    );
    return [
      ...this.partitions().flatMap((partition) =>
        partitionParts.map((part) => partitionKey(project, partition, part)),
      ),
      ...projectParts.map((part) => projectKey(project, part)),
      nodesKey("beats"),
      organizationKey("reservations"),
      ...new Set(keys),
      ...[...this.nodes, ...this.deadNodes].flatMap((node) =>
        nodeParts.map((part) => nodeKey(node.id, part)),
      ),
    ];
  }
}
