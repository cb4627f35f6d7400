import {
  type ControlId,
  newBrowserId,
  newLeaseId,
  type Partition,
  type PoolId,
} from "../../../src/base/ids.js";
import type { RefreshPlace } from "../../../src/pool/ports/pool-store.js";
import { retireLeft } from "../../../src/pool/pool-operations.js";
import { partitionKey, type PartitionPart } from "../../../src/store/redis/keys.js";
import { request, type StoreBed } from "../../support/store/store-bed.js";
import { times } from "../support/runs.js";
import { lendOften } from "./acquires.js";
import type { SimulatedFleet } from "./fleet.js";

type Step = (bed: StoreBed, fleet: SimulatedFleet) => Promise<unknown>;

const control = "controlscale" as ControlId;
const waitersOfPool = 1000;
const leasedAtOnce = 2000;

const largeOf = ({ partitions: [large] }: SimulatedFleet): Partition => placed(large);
const smallOf = ({ partitions: [, small] }: SimulatedFleet): Partition => placed(small);
function placed<Value>(value: Value | undefined): Value {
  if (value === undefined) throw new Error("the fleet has none");
  return value;
}

const keyOf = (bed: StoreBed, partition: Partition, part: PartitionPart): string =>
  partitionKey(bed.project, partition, part);

async function ask(bed: StoreBed, partition: Partition, mayWait: boolean): Promise<void> {
  const id = request();
  const waiter = { id, lease: newLeaseId(), control, connection: id };
  const pool = (await bed.poolStore.findTerms(partition))?.id as PoolId;
  const reply = await bed.poolStore.acquire(partition, { pool, waiter, mayWait });
  if (reply.kind === "granted") await bed.poolStore.confirm(partition, [waiter.lease]);
}

async function askOften(
  bed: StoreBed,
  partition: Partition,
  { count, mayWait }: { count: number; mayWait: boolean },
): Promise<void> {
  for (let asked = 0; asked < count; asked += 50)
    await Promise.all(times(50).map(() => ask(bed, partition, mayWait)));
}

/** Ends browsers of the large pool, so that as many are lacking. */
async function endSome(bed: StoreBed, partition: Partition, count: number): Promise<void> {
  const ids = await bed.redis.zrange(keyOf(bed, partition, "idle"), "0", String(count - 1));
  await Promise.all(
    ids.map(async (id) => {
      const end = await bed.reports.end(id as never, "crashed", "simulated");
      if (end.kind === "retiring") await bed.reports.gone(id as never, end.claim);
    }),
  );
}

/** Everything that is asked of a large pool, each step on what the one before has left. */
export const steps: Readonly<Record<string, Step>> = {
  "acquires and releases": (bed, { partitions }) => lendOften(bed, partitions, { count: 300 }),
  ticks: async (_, { maintenance }) => {
    for (const name of ["fill", "reap", "recycle"] as const) await maintenance[name]();
  },
  "a fill": async (bed, fleet) => {
    await endSome(bed, largeOf(fleet), 1000);
    await fleet.fillAll();
  },
  readers: async (bed, fleet) => {
    const partition = largeOf(fleet);
    await bed.poolStore.browsers(partition);
    await bed.poolStore.findPool(partition);
    await bed.scaling.leasedByNode(partition);
    await bed.nodes.living();
    for (const node of fleet.nodes.slice(0, 20)) await bed.poolStore.browsersOf(partition, node);
  },
  "a node's room": async (bed, fleet) => {
    const living = await bed.nodes.living();
    for (const node of living.slice(0, 20)) {
      const id = newBrowserId(largeOf(fleet));
      await bed.nodes.reserveRoom(node, { id, bytes: 1 });
      await bed.nodes.freeRoom(node.id, id);
      await bed.nodes.sweepRooms(node.id);
    }
  },
  "nodes that drain and go on": async (bed, fleet) => {
    for (const node of fleet.nodes.slice(0, 10)) {
      const drains = { node, ms: 60_000 };
      await bed.poolStore.recycle(largeOf(fleet), { maxLeases: null, drains, request: request() });
      await bed.poolStore.reopenNode(largeOf(fleet), node);
    }
  },
  "nodes that are silent and answer": async (bed, fleet) => {
    for (const node of fleet.nodes.slice(10, 20)) {
      await bed.poolStore.silenceNode(largeOf(fleet), node, 60_000);
      await bed.poolStore.silenceNode(largeOf(fleet), node, 0);
    }
  },
  "nodes that are lost": async (bed, fleet) => {
    for (const node of fleet.nodes.slice(20, 40)) {
      const lost = { node, why: "node_lost", which: "lost", request: request() } as const;
      await bed.poolStore.clearNode(largeOf(fleet), lost);
    }
    await bed.nodes.lost();
    await fleet.fillAll();
  },
  "a pool with 1,000 waiters, and its deletion": async (bed, fleet) => {
    const partition = smallOf(fleet);
    await askOften(bed, partition, { count: waitersOfPool, mayWait: true });
    await bed.poolStore.beat(partition, control);
    await fleet.maintenance.reap();
    await bed.poolStore.deletePool(partition, { force: true, request: request() });
    await retireLeft(bed.poolStore, partition);
  },
  "a recycling of all": async (bed, fleet) => {
    const key = keyOf(bed, largeOf(fleet), "ageIndex");
    await bed.redis.zunionstore(key, 1, key, "WEIGHTS", "0");
    await fleet.maintenance.recycle();
    await fleet.maintenance.reap();
  },
  "a refresh of all": async (bed, fleet) => {
    const before = await bed.poolStore.now();
    let after: RefreshPlace | undefined;
    do {
      const piece = { before, ...(after && { after }), request: request() };
      after = await bed.poolStore.refresh(largeOf(fleet), piece);
    } while (after.from !== undefined);
    await fleet.fillAll();
  },
  "a flush": async (bed, fleet) => {
    await bed.poolStore.flush(largeOf(fleet), request());
    await retireLeft(bed.poolStore, largeOf(fleet));
    await fleet.maintenance.reap();
    await fleet.fillAll();
  },
  "a PATCH that discards all": async (_, fleet) => {
    await fleet.update({ stealth: true }, { discard: true });
    await fleet.maintenance.reap();
    await fleet.fillAll();
  },
  "a PATCH to a size of 10, and back": async (_, fleet) => {
    const size = fleet.size.largest;
    await fleet.update({ size: 10 });
    await fleet.update({ size });
    await fleet.fillAll();
  },
  "another epoch": async (bed, fleet) => {
    const partition = largeOf(fleet);
    await bed.redis.hset(keyOf(bed, partition, "pool"), "replicationId", "0".repeat(40), "run", "another");
    await fleet.maintenance.reap();
    for (const node of fleet.nodes) {
      const { browsers } = await bed.poolStore.browsersOf(partition, node);
      const present = browsers.map(({ id }) => id);
      await bed.reports.register(partition, { node, present, opened: [] });
    }
  },
  "a move by another release": async (bed, fleet) => {
    await bed.redis.xadd(keyOf(bed, largeOf(fleet), "events"), "*", "browser", "another");
    await bed.poolStore.spread(largeOf(fleet));
  },
  "a clock that went back": async (bed, fleet) => {
    const ahead = (await bed.poolStore.now()) + 60_000;
    await bed.redis.xadd(keyOf(bed, largeOf(fleet), "events"), `${ahead}-1`, "browser", "another");
    await fleet.maintenance.reap();
  },
  "a deletion by force, 2,000 of them leased": async (bed, fleet) => {
    await askOften(bed, largeOf(fleet), { count: leasedAtOnce, mayWait: false });
    await bed.poolStore.deletePool(largeOf(fleet), { force: true, request: request() });
    await retireLeft(bed.poolStore, largeOf(fleet));
    await fleet.settled();
  },
};

/** What happens once after a fault or an upgrade, and looks at every browser of the pool for that. */
export const onceOnly: ReadonlySet<string> = new Set([
  "another epoch",
  "a move by another release",
  "a clock that went back",
]);
