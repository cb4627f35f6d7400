import { onTestFinished } from "vitest";
import type { BrowserId, LeaseId } from "../../../src/base/ids.js";
import type { LeasedBrowser } from "../../../src/pool/browser.js";
import { until } from "../browser/chromium-until.js";
import { age } from "./age.js";
import { type Held, nodeA, nodeB, PoolBed } from "./pool-bed.js";
import { startRedisFailover } from "./redis-failover.js";
import { openStoreBed, type StoreBed } from "./store-bed.js";

export async function bedAt(url: string): Promise<StoreBed> {
  const bed = await openStoreBed({ url } as never, { project: "registration" });
  onTestFinished(() => bed.close());
  return bed;
}

export const answers = (bed: StoreBed): Promise<unknown> =>
  until("Redis back", () =>
    bed.redis.ping().then(
      () => true,
      () => false,
    ),
  );

/** A pool of two with a browser on each of two nodes, in a Redis that can fail over. */
export async function spreadPool(): Promise<{
  pool: PoolBed;
  detach(): Promise<void>;
  failOver(): Promise<void>;
  /** To a server whose clock is an hour behind. */
  failOverBack(): Promise<void>;
}> {
  const redis = await startRedisFailover();
  onTestFinished(() => redis.stop());
  const bed = await bedAt(redis.url);
  const pool = await PoolBed.create(bed, { size: 2 });
  await pool.launch(1, { node: nodeA });
  await pool.launch(1, { node: nodeB });
  const failOver = async (): Promise<void> => {
    await redis.failOver();
    await answers(bed);
  };
  return {
    pool,
    detach: () => redis.detach(),
    failOver,
    failOverBack: async () => {
      await failOver();
      await age(bed.redis, "remuda:*", -3_600_000);
    },
  };
}

/** Opens a lease as a client does; gives the record as its node has it then. */
export async function open(pool: PoolBed, held: Held): Promise<LeasedBrowser> {
  const reply = await pool.connect(held);
  if (reply.kind !== "connected") throw new Error(`it was ${reply.kind}`);
  return reply.browser;
}

export const nodeOf = ({ browser }: Held): typeof nodeA => browser.node;
/** A node registers, with all that its records name but for what it lacks. */
export async function registers(
  pool: PoolBed,
  node: typeof nodeA,
  { opened = [], lacks = [] }: { opened?: readonly LeasedBrowser[]; lacks?: readonly BrowserId[] } = {},
): Promise<{ resumed: readonly LeaseId[]; void: readonly LeaseId[] } | undefined> {
  const own = (await pool.browsers()).filter((browser) => browser.node === node);
  const present = own.map(({ id }) => id).filter((id) => !lacks.includes(id));
  return await pool.bed.reports.register(pool.partition, { node, present, opened });
}
