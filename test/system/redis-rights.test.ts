import type { Redis } from "ioredis";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { type FakeChromium, makeFakeChromium, standIn } from "../support/browser/chromium-fake.js";
import { type Lease, startDaemon } from "../support/daemon/daemon.js";
import { connectRaw } from "../support/gateway/raw-cdp.js";
import { newDirectory } from "../support/killed-runs.js";
import { redisCertificates } from "../support/store/redis-certificates.js";
import { startRedisCluster } from "../support/store/redis-cluster.js";
import { startRedisPair } from "../support/store/redis-pair.js";
import { clusterRights, leastRights, sentinelRights, vaultRights } from "../support/store/redis-rights.js";
import { StreamFollower } from "../support/telemetry/stream-follower.js";

let fake: FakeChromium;
beforeAll(async () => {
  fake = await makeFakeChromium();
});
afterAll(() => fake.remove());

const login = {
  type: "credential",
  spec: {
    provider: "native",
    description: "Shop",
    fields: [{ name: "password", type: "password", value: "hunter2" }],
  },
};

interface Way {
  readonly redisUrl: string;
  readonly redis: object;
  /** Where refusals are remembered. */
  readonly servers: readonly Redis[];
}

const user = (rights: string): string => `remuda on >secret ${rights} ${vaultRights}`;

async function inCluster(): Promise<Way> {
  const cluster = await startRedisCluster(["--user", ...user(`${leastRights} ${clusterRights}`).split(" ")]);
  onTestFinished(() => cluster.stop());
  const servers = [...cluster.proxies.keys()].map((at) => cluster.client(at));
  onTestFinished(() => void servers.forEach((server) => server.disconnect()));
  return {
    redisUrl: cluster.url.replace("://", "://remuda:secret@"),
    redis: { cluster: true, command_timeout_ms: 10_000 },
    servers,
  };
}

async function bySentinels(): Promise<Way> {
  const users = { servers: user(leastRights), sentinels: `remuda on >secret ${sentinelRights}` };
  const pair = await startRedisPair({ sentinels: 1, speech: "mutual tls", users });
  onTestFinished(() => pair.stop());
  const folder = newDirectory("certificates");
  const file = async (name: string, text: string): Promise<string> => {
    await writeFile(join(folder, name), text);
    return join(folder, name);
  };
  const redis = {
    command_timeout_ms: 10_000,
    sentinel_username: "remuda",
    sentinel_password: "secret",
    tls_ca_file: await file("ca.pem", redisCertificates.ca),
    tls_certificate_file: await file("client.pem", redisCertificates.client),
    tls_key_file: await file("client.key", redisCertificates.clientKey),
  };
  return {
    redisUrl: pair.sentinelUrl.replace("://", "://remuda:secret@"),
    redis,
    servers: [pair.primary.client()],
  };
}

test.each([
  ["in a Redis Cluster", inCluster],
  ["by sentinels, and TLS that asks for certificates", bySentinels],
])("a user with the least rights has all that a daemon does, %s", async (_, open) => {
  const { redisUrl, redis, servers } = await open();
  const daemon = await startDaemon({ redisUrl, file: { ...standIn(fake), redis } });
  onTestFinished(() => daemon.stop());
  const call = async (operation: string, body?: object): Promise<Record<string, unknown>> => {
    const got = await daemon.call(operation, body);
    expect([operation, got.status < 300 ? "done" : got.text]).toEqual([operation, "done"]);
    return got.body as Record<string, unknown>;
  };
  await daemon.makePool({ name: "herd", size: 2 });
  const key = await call("POST /org/api_keys", { name: "caller" });
  expect(key).toHaveProperty("key");
  const lease = (await call("POST /browser_pools/herd/acquire", {
    name: "mine",
    telemetry: { enabled: true },
  })) as unknown as Lease;
  const follower = new StreamFollower([daemon], lease.session_id);
  const client = await connectRaw(lease.cdp_ws_url);
  expect(await client.send("Browser.getVersion")).toBeDefined();
  await client.close();
  await call("PATCH /browsers/mine", { name: "ours" });
  await call("GET /browsers");
  await call("POST /vaults", { name: "logins" });
  await call("PUT /vaults/logins/items/shop", login);
  await call("GET /vaults/logins/items");
  await call("DELETE /vaults/logins/items/shop");
  await call("POST /browser_pools/herd/release", { session_id: lease.session_id });
  await follower.stop();
  await call("PATCH /browser_pools/herd", { size: 1 });
  await call("POST /browser_pools/herd/flush");
  await daemon.poolWhen("herd", (pool) => pool.available_count === 1);
  const [start, end] = [-3_600_000, 3_600_000].map((ms) => new Date(Date.now() + ms).toISOString());
  await call(`GET /audit-logs?start=${start}&end=${end}`);
  await call("GET /scaling");
  await call("GET /nodes");
  await call("DELETE /browser_pools/herd");
  for (const server of servers) expect(await server.call("ACL", "LOG")).toEqual([]);
  expect(daemon.log).not.toContain("NOPERM");
});
