import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { defaultProject, partitionOf, type PoolId } from "../../src/base/ids.js";
import { partitionKey } from "../../src/store/redis/keys.js";
import { makeFakeChromium, standIn } from "../support/browser/chromium-fake.js";
import { until } from "../support/browser/chromium-until.js";
import { type Daemon, type Lease, startDaemon } from "../support/daemon/daemon.js";
import { connectRaw } from "../support/gateway/raw-cdp.js";
import { newDirectory } from "../support/killed-runs.js";
import { redisCertificates } from "../support/store/redis-certificates.js";
import { type ReplicatedCluster, startReplicatedCluster } from "../support/store/redis-cluster.js";

/** It has the beats, the ticks and the epoch, and is asked every moment. */
const master = 1;
const size = 3;

/** The settings by which the cluster is believed, and by which it believes the daemon. */
function tlsFiles(): Record<string, string> {
  const folder = newDirectory("tls");
  const place = (name: string, text: string): string => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };
  return {
    tls_ca_file: place("ca.pem", redisCertificates.ca),
    tls_certificate_file: place("client.pem", redisCertificates.client),
    tls_key_file: place("client.key", redisCertificates.clientKey),
  };
}

async function start(cluster: ReplicatedCluster): Promise<Daemon> {
  const fake = await makeFakeChromium();
  const file = {
    ...standIn(fake),
    redis: { cluster: true, ...tlsFiles() },
    // It is asked to hand over, and is without an answer for some beats.
    node: { beat_period_ms: 500, lost_after_ms: 30_000 },
  };
  const daemon = await startDaemon({ redisUrl: cluster.url, file });
  onTestFinished(async () => {
    await daemon.stop();
    await fake.remove();
  });
  return daemon;
}

/** The only 503 that is no answer yet. */
function isAway(body: unknown): undefined {
  expect(body).toMatchObject({ code: "store_unavailable" });
}

/** A pool whose keys that master has. */
async function makePool(daemon: Daemon, cluster: ReplicatedCluster): Promise<void> {
  const client = cluster.client(master);
  await until("a pool there", async () => {
    const made = await daemon.call("POST /browser_pools", { name: "herd", size, headless: true });
    // One whose making was answered 503 may be there all the same.
    const { status, body } = made.status === 409 ? await daemon.call("GET /browser_pools/herd") : made;
    if (status === 503) return isAway(body);
    expect([200, 201]).toContain(status);
    const partition = partitionOf(body.id as PoolId);
    const slot = await client.cluster("KEYSLOT", partitionKey(defaultProject, partition, "pool"));
    if (Math.floor(Number(slot) / Math.ceil(16_384 / 3)) === master) return true;
    await daemon.call(`DELETE /browser_pools/${body.id}`, { force: true });
    return false;
  });
  client.disconnect();
  await full(daemon);
}

const full = (daemon: Daemon): Promise<unknown> =>
  daemon.poolWhen("herd", (pool) => pool.available_count === size);

/** Lends, is driven, takes back with a new browser in its place; what is no answer yet is asked again. */
async function lendOnce(daemon: Daemon): Promise<void> {
  const lease = await until("a lease", async () => {
    const { status, body } = await daemon.call("POST /browser_pools/herd/acquire", {
      acquire_timeout_seconds: 5,
    });
    if (status === 503) return isAway(body);
    expect([200, 204]).toContain(status);
    return status === 200 ? (body as Lease) : undefined;
  });
  const client = await connectRaw(lease.cdp_ws_url);
  expect((await client.send("Browser.getVersion")).result).toBeDefined();
  const { session_id, lease_id } = lease;
  const given = { session_id, lease_id, reuse: false };
  expect((await daemon.call("POST /browser_pools/herd/release", given)).status).toBe(204);
  expect((await client.closed).code).toBe(4410);
  await full(daemon);
}

/** How often a server has sent somebody on to the one that has a slot now. */
async function movedBy(cluster: ReplicatedCluster): Promise<number> {
  const client = cluster.client(master);
  const info = await client.info("errorstats");
  client.disconnect();
  return Number(/errorstat_MOVED:count=(\d+)/.exec(info)?.[1] ?? 0);
}

test("a daemon on a Redis Cluster that speaks TLS alone lends and recycles, follows MOVED, and goes on after a failover", async () => {
  // A master that a busy machine keeps waiting is not to be taken for gone.
  const cluster = await startReplicatedCluster(master, "mutual tls", 5000);
  onTestFinished(() => cluster.stop());
  expect(cluster.url).toMatch(/^rediss:/);
  const daemon = await start(cluster);
  await makePool(daemon, cluster);
  await lendOnce(daemon);
  expect(await movedBy(cluster)).toBe(0);
  await cluster.handOver();
  await lendOnce(daemon);
  expect(await movedBy(cluster)).toBeGreaterThan(0);
  // The one that was master first takes over again, since the other ends.
  await cluster.failOver();
  await lendOnce(daemon);
  expect((await daemon.call("DELETE /browser_pools/herd")).status).toBe(204);
  expect(daemon.log).not.toContain("CROSSSLOT");
});
