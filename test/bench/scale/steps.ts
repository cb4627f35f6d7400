import { type ControlId, newBrowserId, newLeaseId, type Partition } from "../../../src/base/ids.js";
import { retireLeft } from "../../../src/pool/pool-operations.js";
import type { RefreshPlace } from "../../../src/pool/ports/pool-store.js";
import type { PoolSpec } from "../../../src/spec/launch-template.js";
import { partitionKey, type PartitionPart } from "../../../src/store/redis/keys.js";
import { request, type StoreBed, writeOf } from "../../support/store/store-bed.js";
import { times } from "../support/runs.js";
import { lendOften } from "./acquires.js";
import type { SimulatedFleet } from "./fleet.js";

interface Place {
  readonly bed: StoreBed;
  readonly fleet: SimulatedFleet;
  readonly partition: Partition;
}
/** Steps that are done on one pool, one after the other. */
type Steps = Readonly<Record<string, (place: Place) => Promise<unknown>>>;

const control = "controlscale" as ControlId;
const waitersOfPool = 1000;
export const leasedAtOnce = 2000;

const keyOf = ({ bed, partition }: Place, part: PartitionPart): string =>
  partitionKey(bed.project, partition, part);

async function waitInLine({ bed, fleet }: Place): Promise<Partition> {
  const partition = await fleet.addPool(1);
  const pool = (await bed.poolStore.findTerms(partition))?.id;
  if (!pool) throw new Error("there is no such pool");
  await Promise.all(
    times(waitersOfPool).map(() => {
      const id = request();
      const waiter = { id, lease: newLeaseId(), control, connection: id };
      return bed.poolStore.acquire(partition, { pool, waiter, mayWait: true });
    }),
  );
  return partition;
}

/** Ends browsers, so that as many are lacking. */
async function endSome(place: Place, count: number): Promise<void> {
  const ids = await place.bed.redis.zrange(keyOf(place, "idle"), "0", String(count - 1));
  const { reports } = place.bed;
  await Promise.all(
    ids.map(async (id) => {
      const end = await reports.end(id as never, "crashed", "simulated");
      if (end.kind === "retiring") await reports.gone(id as never, end.claim);
    }),
  );
}

async function change(
  { bed: { poolStore }, partition }: Place,
  { spec: fields = {}, discard = false }: { spec?: Partial<PoolSpec>; discard?: boolean },
): Promise<void> {
  const pool = await poolStore.findPool(partition);
  if (!pool) throw new Error("there is no such pool");
  const spec = { ...pool.spec, ...fields };
  const { revision } = pool;
  const flags = { isNewLaunch: discard, isNewNetwork: false, discard, request: request() };
  await poolStore.updatePool(partition, { revision, write: writeOf(spec), ...flags });
  await retireLeft(poolStore, partition, { isToSize: spec.size < pool.spec.size });
}

const usual: Steps = {
  "acquires and releases": ({ bed, partition }) => lendOften(bed, [partition, partition], { count: 150 }),
  ticks: async ({ fleet }) => {
    for (const name of ["fill", "reap", "recycle"] as const) await fleet.maintenance[name]();
  },
  "a fill": async (place) => {
    await endSome(place, 500);
    await place.fleet.maintenance.fill();
    await place.fleet.settled();
  },
  readers: async ({ bed, fleet, partition }) => {
    await bed.poolStore.browsers(partition);
    await bed.poolStore.findPool(partition);
    await bed.scaling.leasedByNode(partition);
    for (let count = 0; count < 5; count += 1) {
      await bed.nodes.living();
      await bed.poolStore.spread(partition);
    }
    for (const node of fleet.nodes.slice(0, 20)) await bed.poolStore.browsersOf(partition, node);
  },
  "a node's room": async ({ bed, partition }) => {
    for (const node of (await bed.nodes.living()).slice(0, 20)) {
      const id = newBrowserId(partition);
      await bed.nodes.reserveRoom(node, { id, bytes: 1 });
      await bed.nodes.freeRoom(node.id, id);
      await bed.nodes.sweepRooms(node.id);
    }
  },
  "nodes that drain and go on": async ({ bed, fleet, partition }) => {
    for (const node of fleet.nodes.slice(0, 10)) {
      const drains = { node, ms: 60_000 };
      await bed.poolStore.recycle(partition, { maxLeases: null, drains, request: request() });
      await bed.poolStore.reopenNode(partition, node);
    }
  },
  "nodes that are silent and answer": async ({ bed, fleet, partition }) => {
    for (const node of fleet.nodes.slice(10, 20)) {
      await bed.poolStore.silenceNode(partition, node, 60_000);
      await bed.poolStore.silenceNode(partition, node, 0);
    }
  },
  "nodes that are lost": async ({ bed, fleet, partition }) => {
    for (const node of fleet.nodes.slice(20, 40)) {
      const lost = { node, why: "node_lost", which: "lost", request: request() } as const;
      await bed.poolStore.clearNode(partition, lost);
    }
  },
  "1,000 waiters, and the deletion of their pool": async (place) => {
    const { bed } = place;
    const partition = await waitInLine(place);
    for (let count = 0; count < 3; count += 1) await bed.poolStore.reap(partition);
    await bed.poolStore.deletePool(partition, { force: true, request: request() });
    await retireLeft(bed.poolStore, partition);
  },
  "a recycling of all": async (place) => {
    const key = keyOf(place, "ageIndex");
    await place.bed.redis.zunionstore(key, 1, key, "WEIGHTS", "0");
    await place.fleet.maintenance.recycle();
    await place.fleet.maintenance.reap();
  },
  "a flush": async ({ bed, partition }) => {
    await bed.poolStore.flush(partition, request());
    await retireLeft(bed.poolStore, partition);
    await bed.poolStore.reap(partition);
  },
};

const rare: Steps = {
  "another epoch": async (place) => {
    const { bed, fleet, partition } = place;
    await bed.redis.hset(keyOf(place, "pool"), "replicationId", "0".repeat(40), "run", "another");
    await fleet.maintenance.reap();
    for (const node of fleet.nodes.slice(0, 50)) {
      const { browsers } = await bed.poolStore.browsersOf(partition, node);
      await bed.reports.register(partition, { node, present: browsers.map(({ id }) => id), opened: [] });
    }
  },
  "a move by another release": async (place) => {
    await place.bed.redis.xadd(keyOf(place, "events"), "*", "browser", "another");
    await place.bed.poolStore.spread(place.partition);
  },
  "a clock that went back": async (place) => {
    const ahead = (await place.bed.poolStore.now()) + 60_000;
    await place.bed.redis.xadd(keyOf(place, "events"), `${ahead}-1`, "browser", "another");
    await place.bed.poolStore.reap(place.partition);
  },
};

/** Everything that is asked of a large pool; each part begins with one of which all but 2,000 are idle. */
export const parts: readonly Steps[] = [
  usual,
  {
    "a refresh of all": async ({ bed, partition }) => {
      const before = await bed.poolStore.now();
      let after: RefreshPlace | undefined;
      do {
        const piece = { before, ...(after && { after }), request: request() };
        after = await bed.poolStore.refresh(partition, piece);
      } while (after.from !== undefined);
    },
  },
  { "a PATCH that discards all": (place) => change(place, { discard: true }) },
  { "a PATCH to a size of 10": (place) => change(place, { spec: { size: 10 } }) },
  {
    "a deletion by force": async ({ bed, partition }) => {
      await bed.poolStore.deletePool(partition, { force: true, request: request() });
      await retireLeft(bed.poolStore, partition);
    },
  },
  rare,
];
