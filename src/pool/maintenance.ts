import { createHash } from "node:crypto";
import { LRUCache } from "lru-cache";
import type { Clock, Millis } from "../base/clock.js";
import { type Partition, newRequestId, type NodeId, isOnDemand } from "../base/ids.js";
import { type Log, textOf } from "../base/log.js";
import { attemptEach, forEachConcurrently } from "../base/concurrently.js";
import { type FillPool, launchJob } from "./fill.js";
import type { NodeStore } from "./ports/node-store.js";
import { NodeCapacities } from "./placement.js";
import type { PoolStore, Jobs } from "./ports/pool-store.js";
import type { Projects } from "./ports/project-store.js";
import { Rounds } from "./rounds.js";

export interface MaintenancePorts {
  readonly poolStore: PoolStore;
  readonly projects: Projects;
  readonly nodes: NodeStore;
  readonly jobs: Jobs;
  readonly clock: Clock;
  readonly log: Log;
  readonly fill: FillPool;
  /** Flushes what a pool has of a profile that was saved since, where it asks for that. */
  refresh(partition: Partition): Promise<void>;
  /** Whether the ticks of a partition are this control's now (TickShare). */
  share(partition: Partition): boolean;
  readonly queues: NodeQueues;
  readonly maxLeases: number | null;
  /** How long some control has listened to beats without a gap, this look included. */
  listensMs(): Promise<Millis>;
  /** The silence after which a node, or a control, is taken for lost. */
  readonly lostAfterMs: { readonly node: Millis; readonly control: Millis };
}

interface NodeQueues {
  /** A lost node's queue goes with it. */
  drop(node: NodeId): Promise<void>;
  /** Lets go of the queues of all other nodes. */
  keep(nodes: readonly NodeId[]): Promise<void>;
}

/**
 * The ticks: fill, reap and recycle look at every partition that is this control's, `sweep` and `trimEvents`
 * at what spans partitions, once in the fleet. Each goes past the failures of one, and may overlap with those
 * of other controls.
 */
export interface Maintenance {
  fill(): Promise<void>;
  reap(): Promise<void>;
  recycle(): Promise<void>;
  sweep(): Promise<void>;
  trimEvents(): Promise<void>;
}

const partitionsAtOnce = 64;
const sweptAtOnce = 64;
/**
 * The limit of one walk: ticks come every second or more, and the next one goes on where this one stopped.
 */
const walkMs = { fill: 5000, reap: 10_000, recycle: 20_000 } as const;

export function makeMaintenance(ports: MaintenancePorts): Maintenance {
  const { clock, projects } = ports;
  const walkOf = (limitMs: Millis): Rounds<Partition> =>
    new Rounds(clock, { atOnce: partitionsAtOnce, limitMs });
  const walks = { fill: walkOf(walkMs.fill), reap: walkOf(walkMs.reap), recycle: walkOf(walkMs.recycle) };
  const walk = async (
    what: keyof typeof walks,
    visit: (partition: Partition) => Promise<unknown>,
  ): Promise<unknown> =>
    walks[what].over((await projects.partitions()).filter(ports.share), async (partition) => {
      // One that stood still meanwhile leaves the rest of its walk to others.
      if (!ports.share(partition)) return;
      await visit(partition).catch((error: unknown) => {
        ports.log.warn({ partition, what, error: textOf(error) }, "tick failed on a partition");
      });
    });
  const reap = makeReap(ports);
  return {
    async fill() {
      const fleet = once(() => NodeCapacities.read(ports.nodes));
      await walk("fill", (partition) => ports.fill(partition, fleet));
    },
    async reap() {
      if ((await ports.listensMs()) < ports.lostAfterMs.control) return;
      const server = await ports.poolStore.serverId();
      await walk("reap", (partition) => reap(partition, server));
    },
    async recycle() {
      await walk("recycle", async (partition) => {
        await recyclePartition(ports, partition);
        await ports.refresh(partition);
      });
    },
    sweep: makeSweep(ports),
    trimEvents: () => projects.sweepEvents(),
  };
}

function makeSweep(ports: MaintenancePorts): () => Promise<void> {
  const { projects } = ports;
  const sweepRooms = makeSweepRooms(ports);
  return () =>
    inTurn(ports, {
      // A node that was silent while nobody listened, as in an outage of Redis, is not lost: it gets its time
      // to beat.
      "lost nodes": async () =>
        void ((await ports.listensMs()) >= ports.lostAfterMs.node && (await reapNodes(ports))),
      rooms: sweepRooms,
      queues: async () => ports.queues.keep(await ports.nodes.known()),
      pendingTombstones: () => projects.sweepPendingTombstones(),
      names: () => projects.sweepNames(),
      tombstones: () => projects.sweepTombstones(),
      pools: () => projects.sweepPools(),
      reservations: () => projects.sweepReservations(),
    });
}

/** What one script marks at most, as recycle.lua says. */
const markedAtOnce = 50;
/** More than this is left to the next tick. */
const mostPieces = 100;

async function recyclePartition(
  { poolStore, maxLeases }: MaintenancePorts,
  partition: Partition,
): Promise<void> {
  for (let piece = 0; piece < mostPieces; piece += 1) {
    const marked = await poolStore.recycle(partition, { maxLeases, request: newRequestId() });
    if (marked < markedAtOnce) return;
  }
}

/** Does one part after the other, whichever of them fail. */
async function inTurn(
  { log }: MaintenancePorts,
  parts: Readonly<Record<string, () => Promise<void>>>,
): Promise<void> {
  for (const [part, work] of Object.entries(parts)) {
    await work().catch((error: unknown) => log.warn({ part, error: textOf(error) }, "part of a tick failed"));
  }
}

/** Asks once, and gives all who ask the same answer. */
function once<Value>(ask: () => Promise<Value>): () => Promise<Value> {
  let asked: Promise<Value> | undefined;
  return () => (asked ??= ask());
}

/**
 * What may wait so long: instants ahead of a clock that went back, templates and controls of earlier times,
 * credit for launches that nobody misses, and an index that another release has left.
 */
const wholeReapMs: Millis = 30_000;
const mostReaped = 10_000;

/** Which of its turns a partition is in; each has its own phase, so that no tick reaps all of them whole. */
function turnOf(partition: Partition, at: Millis): number {
  const phase = createHash("sha256").update(partition).digest().readUInt32BE() % wholeReapMs;
  return Math.floor((at + phase) / wholeReapMs);
}

/**
 * Looks at each partition by a few plain commands, which cost Redis a thirtieth of the script, and runs that
 * where the partition is not at rest, or has not been reaped whole in this turn.
 */
function makeReap(
  ports: MaintenancePorts,
): (partition: Partition, server: string | undefined) => Promise<void> {
  const { poolStore, clock } = ports;
  const reapedIn = new LRUCache<Partition, number>({ max: mostReaped });
  return async (partition, server) => {
    const turn = turnOf(partition, clock.monotonic());
    const isDue = reapedIn.get(partition) !== turn;
    if (!isDue && server !== undefined && (await poolStore.isAtRest(partition, server))) return;
    await reapPartition(ports, partition);
    reapedIn.set(partition, turn);
  };
}

async function reapPartition(
  { poolStore, projects, jobs }: MaintenancePorts,
  partition: Partition,
): Promise<void> {
  for (let piece = 0; piece < mostPieces; piece += 1) {
    const { launch, isOpen, isMore } = await poolStore.reap(partition);
    await jobs.add(launch.map(launchJob));
    if (isMore) continue;
    if (!isOpen && !isOnDemand(partition)) await projects.settlePartition(partition);
    return;
  }
}

/**
 * Looks at the rooms of some nodes each time, in turn: all of them have as many places as there are browsers,
 * and a reservation that has come to nothing may wait a minute.
 */
function makeSweepRooms({ nodes }: MaintenancePorts): () => Promise<void> {
  let left: NodeId[] = [];
  return async () => {
    if (left.length === 0) left = (await nodes.living()).map(({ id }) => id);
    const next = left.splice(0, sweptAtOnce);
    await attemptEach(next, partitionsAtOnce, (id) => nodes.sweepRooms(id));
  };
}

/**
 * What lost nodes held is over: their leases end, their records go, since nobody is left to clear up. Each
 * partition is asked once, however many are lost: most have nothing of any of them.
 */
async function reapNodes(ports: MaintenancePorts): Promise<void> {
  const lost = await ports.nodes.lost();
  if (lost.length === 0) return;
  const found = new Map(lost.map((node) => [node, 0]));
  const failures = await forEachConcurrently(
    await ports.projects.partitions(),
    partitionsAtOnce,
    async (partition) => {
      const named = await ports.poolStore.nodesOf(partition);
      for (const node of lost.filter((id) => named.has(id)))
        found.set(node, (found.get(node) ?? 0) + (await clearLost(ports, partition, node)));
    },
  );
  for (const [node, browsers] of found) ports.log.warn({ node, browsers }, "node lost");
  if (failures.length > 0) throw failures[0];
  // A launch may be claimed on one still: it is forgotten when a look finds nothing there any more.
  const cleared = lost.filter((node) => found.get(node) === 0);
  const faults = await forEachConcurrently(cleared, partitionsAtOnce, async (node) => {
    // Nothing was cleared of one that lives again, as another control has forgotten it meanwhile.
    if (!(await ports.nodes.isLost(node))) return;
    // Forgotten last: a control that dies on the way leaves the rest to the next look.
    await ports.queues.drop(node);
    if (await ports.nodes.isLost(node)) await ports.nodes.forgetLost(node);
  });
  if (faults.length > 0) throw faults[0];
}

async function clearLost(
  { poolStore, nodes }: MaintenancePorts,
  partition: Partition,
  node: NodeId,
): Promise<number> {
  // A node that starts anew clears up after itself, and what it has from then on is its own.
  if (!(await nodes.isLost(node))) return 0;
  const request = newRequestId();
  return await poolStore.clearNode(partition, { node, why: "node_lost", which: "lost", request });
}
