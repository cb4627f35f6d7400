import { beforeEach, expect, onTestFinished } from "vitest";
import { partitionOf, type PoolId } from "../../../src/base/ids.js";
import { until } from "../../support/browser/chromium-until.js";
import type { Lease } from "../../support/daemon/daemon.js";
import type { DaemonProcess } from "../../support/daemon/daemon-process.js";
import { connectRaw } from "../../support/gateway/raw-cdp.js";
import { type RedisCluster, startRedisCluster } from "../../support/store/redis-cluster.js";
import { useFaultBed } from "../../support/faults/bed.js";
import { fault, startWatch } from "../../support/faults/fault.js";

const bed = useFaultBed();
const masters = [0, 1, 2];
const settings = { redis: { cluster: true }, node: { lost_after_ms: 120_000 } };

let cluster: RedisCluster;
let daemon: DaemonProcess;
beforeEach(async () => {
  cluster = await startRedisCluster();
  onTestFinished(() => cluster.stop());
  daemon = await bed.start("all", settings, { redisUrl: cluster.url });
}, 120_000);

async function onMaster<Value>(
  master: number,
  ask: (client: ReturnType<RedisCluster["client"]>) => Promise<Value>,
): Promise<Value> {
  const client = cluster.client(master);
  try {
    return await ask(client);
  } finally {
    client.disconnect();
  }
}

const refused = { status: 503, body: { code: "store_unavailable" } };
const acquire = () => daemon.call("POST /browser_pools/herd/acquire", { acquire_timeout_seconds: 5 });

/** All is as before: the lease that was held is, and another is granted. */
async function expectWell(held: Lease): Promise<number> {
  const watch = startWatch();
  const lease = await until("a lease", async () => {
    const { status, body } = await acquire();
    expect([200, 204, 503]).toContain(status);
    return status === 200 ? (body as Lease) : undefined;
  });
  const recoveryMs = watch.since();
  expect((await daemon.call(`GET /browsers/${held.session_id}`)).body).toMatchObject({
    lease_id: held.lease_id,
  });
  expect(lease.session_id).not.toBe(held.session_id);
  return recoveryMs;
}

const slotOf = async (pool: string): Promise<number> =>
  Number(await onMaster(0, (redis) => redis.cluster("KEYSLOT", `{${partitionOf(pool as PoolId)}}`)));

/** The master that has a slot, where each has as many. */
const masterOf = (slot: number): number => Math.floor(slot / Math.ceil(16_384 / masters.length));

/** Makes pools of one browser until one is at such a master, and has two there. */
async function makeHerd(isWanted: (master: number) => boolean): Promise<void> {
  for (;;) {
    const { id } = await daemon.makePool({ name: "herd" });
    if (isWanted(masterOf(await slotOf(id)))) break;
    expect((await daemon.call("DELETE /browser_pools/herd")).status).toBe(204);
  }
  expect((await daemon.call("PATCH /browser_pools/herd", { size: 2 })).status).toBe(200);
  await daemon.poolWhen("herd", (pool) => pool.available_count === 2);
}

const stateOf = (master: number): Promise<string> =>
  onMaster(master, async (redis) => String(await redis.cluster("INFO")));

const still = 0;
for (const [where, isWanted] of [
  ["with a pool's slot", (master: number) => master === still],
  ["beside that of a pool", (master: number) => master !== still],
] as const)
  fault(
    `a master of a Redis Cluster, ${where}, stands still until the cluster is down (CLUSTERDOWN)`,
    async (tell) => {
      await makeHerd(isWanted);
      const held = (await acquire()).body as Lease;
      const client = await connectRaw(held.cdp_ws_url);
      const page = await client.attach();
      for (const master of masters)
        await onMaster(master, (redis) => redis.config("SET", "cluster-node-timeout", "3000"));
      cluster.signal(still, "SIGSTOP");
      onTestFinished(() => cluster.signal(still, "SIGCONT"));
      await until("the cluster down", async () => {
        const answer = await onMaster(1, (redis) => redis.get("any")).catch((error: Error) => error.message);
        return answer?.startsWith("CLUSTERDOWN");
      });
      for (const [operation, body] of [
        ["POST /browser_pools/herd/acquire", {}],
        ["POST /browsers", { headless: true }],
        ["POST /browser_pools", { size: 1, headless: true }],
        ["PATCH /browser_pools/herd", { size: 1 }],
        ["POST /browser_pools/herd/release", { session_id: held.session_id }],
        ["GET /browser_pools/herd", undefined],
      ] as const)
        expect([operation, await daemon.call(operation, body)]).toMatchObject([operation, refused]);
      expect(await client.evaluate("6 * 7", page)).toBe(42);
      cluster.signal(still, "SIGCONT");
      // What was refused is not carried out now. A master that was missed is so for two timeouts more.
      await until("the cluster up", async () =>
        (await Promise.all(masters.map(stateOf))).every((state) => state.includes("cluster_state:ok")),
      );
      const recoveryMs = await expectWell(held);
      expect(await client.evaluate("6 * 7", page)).toBe(42);
      tell({ saw: "503 store_unavailable; sockets went on", recoveryMs });
    },
    180_000,
  );

fault(
  "the slot of a pool is moved between masters of a Redis Cluster, and stays half moved (TRYAGAIN)",
  async (tell) => {
    const { id } = await daemon.makePool({ name: "herd", size: 2 });
    const held = (await acquire()).body as Lease;
    const slot = await slotOf(id);
    const ids = await Promise.all(
      masters.map((master) => onMaster(master, (redis) => redis.call("CLUSTER", "MYID"))),
    );
    const owner = masterOf(slot);
    const next = (owner + 1) % masters.length;
    const setSlot = (master: number, ...how: readonly string[]): Promise<unknown> =>
      onMaster(master, (redis) => redis.call("CLUSTER", "SETSLOT", `${slot}`, ...how));
    await setSlot(next, "IMPORTING", String(ids[owner]));
    await setSlot(owner, "MIGRATING", String(ids[next]));
    const answer = await daemon.call("POST /browser_pools/herd/acquire", {});
    expect(answer).toMatchObject(refused);
    expect(
      await daemon.call("POST /browser_pools/herd/release", { session_id: held.session_id }),
    ).toMatchObject(refused);
    for (const master of [owner, next]) await setSlot(master, "STABLE");
    const recoveryMs = await expectWell(held);
    tell({ saw: "503 store_unavailable for that pool", recoveryMs });
  },
  180_000,
);
