import { Redis } from "ioredis";
import { expect } from "vitest";
import { defaultProject, newBrowserId, newLeaseId, onDemandPartition } from "../../../src/base/ids.js";
import { projectKey } from "../../../src/store/redis/keys.js";
import type { DaemonProcess } from "../../support/daemon/daemon-process.js";
import { PoolBed } from "../../support/store/pool-bed.js";
import { openStoreBed } from "../../support/store/store-bed.js";
import { useFaultBed } from "../../support/faults/bed.js";
import { fault } from "../../support/faults/fault.js";

const bed = useFaultBed();

const stale = 1000;
const tombstones = 100_000;
/** All stale records have some 400 kB, all tombstones some 30 MB. */
const mostBytes = 30_000;

/** A control looks after pools and nodes as seldom as it can, so that what it reads is the request's. */
const quiet = {
  periods: { fill_ms: 600_000, reap_ms: 600_000, recycle_ms: 3_600_000 },
  node: { lost_after_ms: 600_000 },
  limits: { max_pool_size: stale },
};

/** A pool of stale browsers, all but one lent, and tombstones of others, written without a daemon. */
async function fill(): Promise<string> {
  const store = await openStoreBed(bed.redis, { project: "default" });
  const pool = await PoolBed.filled(store, { size: stale });
  await pool.update({ viewport: { width: 1024, height: 768, refresh_rate: 60 } }, { isNewLaunch: true });
  await store.projects.addPool(pool.id);
  await store.projects.openPool(pool.id);
  for (let lent = 1; lent < stale; lent += 1) await pool.lend();
  const now = Date.now();
  for (let made = 0; made < tombstones; made += 1000) {
    const records = Array.from({ length: 1000 }, (_, place) => ({
      id: newBrowserId(onDemandPartition),
      lease: newLeaseId(),
      deletedAt: now - made - place,
      createdAt: now - 1000,
      reason: "released",
      headless: true,
      stealth: false,
      kiosk_mode: false,
      memory: "1GiB",
      timeoutSeconds: 60,
      name: `session-${made + place}`,
    }));
    const pending = records.flatMap((record) => [record.id, JSON.stringify(record)]);
    await store.redis.hset(pool.key("pendingTombstones"), ...pending);
    await store.projects.moveTombstones(pool.partition);
  }
  expect(await store.redis.zcard(projectKey(defaultProject, "tombstoneOrder"))).toBe(tombstones);
  await store.close();
  return pool.id;
}

const sentBy = async (redis: Redis): Promise<number> =>
  Number(/^total_net_output_bytes:(\d+)/m.exec(await redis.info("stats"))?.[1]);

fault(
  "a control among 1,000 stale browsers and 100,000 tombstones reads what it answers with",
  async (tell) => {
    const pool = await fill();
    const control: DaemonProcess = await bed.start("control", quiet);
    const redis = new Redis(bed.redis.url);
    const costs: string[] = [];
    const cost = async (what: string, work: () => Promise<unknown>): Promise<void> => {
      const before = await sentBy(redis);
      await work();
      const bytes = (await sentBy(redis)) - before;
      costs.push(`${what} ${(bytes / 1000).toFixed(1)} kB`);
      expect([what, bytes]).toEqual([what, expect.toSatisfy((sent: number) => sent < mostBytes)]);
    };
    const acquire = (body: object) => control.call(`POST /browser_pools/${pool}/acquire`, body);
    const opening = { start_url: "https://a.example/", acquire_timeout_seconds: 0 };
    await cost("acquire", async () => expect((await acquire(opening)).status).toBe(200));
    let answer: Promise<unknown> = Promise.resolve();
    await cost("waiting acquire", async () => {
      answer = acquire({}).then(({ status }) => status);
      await control.poolWhen(pool, ({ waiting_count }) => waiting_count === 1);
    });
    await cost("GET", async () => {
      expect((await control.call("GET /browsers/nobody?include_deleted=true")).status).toBe(404);
    });
    expect((await control.call(`GET /browser_pools/${pool}`)).body).toMatchObject({ stale_count: stale });
    expect((await control.call(`DELETE /browser_pools/${pool}`, { force: true })).status).toBe(204);
    expect(await answer).toBe(404);
    redis.disconnect();
    tell({ saw: costs.join(", ") });
  },
);
