import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Lease } from "../support/daemon/daemon.js";
import { type DaemonProcess, spawnDaemon } from "../support/daemon/daemon-process.js";
import { DaemonPlace } from "../support/daemon/daemon-settings.js";
import { connectRaw } from "../support/gateway/raw-cdp.js";
import { TestCluster } from "../support/kubernetes/cluster.js";
import { type RunningOperator, startOperator } from "../support/kubernetes/operator.js";
import { startRedis, type TestRedis } from "../support/store/redis.js";

const pod = "remuda-node-7c9f4-abcde";
// On a busy machine nobody is lost who is only slow, and nothing ends that is lent there.
const patient = {
  acquire: { control_lost_after_ms: 60_000, provisional_seconds: 60 },
  node: { lost_after_ms: 60_000 },
};
let cluster: TestCluster;
let redis: TestRedis;
let running: DaemonProcess[];
let operator: RunningOperator | undefined;

beforeEach(async () => {
  [cluster, redis] = await Promise.all([TestCluster.open(), startRedis()]);
  [running, operator] = [[], undefined];
});
afterEach(async () => {
  await operator?.stop();
  for (const daemon of running.toReversed()) await daemon.stop();
  await Promise.all([cluster.close(), redis.stop()]);
});

interface Settings {
  readonly node?: object;
  readonly [section: string]: unknown;
}
async function start(role: "control" | "node", more: { file?: Settings; port?: number } = {}) {
  const { file = {}, ...rest } = more;
  const settings = { ...patient, ...file, node: { ...patient.node, ...file.node } };
  const daemon = await spawnDaemon(new DaemonPlace({ role, redisUrl: redis.url, file: settings, ...rest }));
  running.push(daemon);
  return daemon;
}

const eventually = (what: () => void | Promise<void>): Promise<void> =>
  vi.waitFor(what, { timeout: 90_000, interval: 50 });
const statusOf = () => cluster.resources.get("agents")?.status;
const conditionOf = (type: string) =>
  (statusOf()?.["conditions"] as { type: string }[] | undefined)?.find((each) => each.type === type);
const cost = () =>
  cluster.pods.get(pod)?.metadata.annotations?.["controller.kubernetes.io/pod-deletion-cost"];

const pool = { headless: true, timeout_seconds: 600 };

/**
 * A control, a node with a drain that is shorter than the pool's leases may be, and an operator beside them.
 */
async function begin(replicas: number) {
  const control = await start("control");
  const node = await start("node", { file: { node: { id: pod }, drain: { limit_seconds: 30 } } });
  cluster.addPod(pod);
  const settings = { period_seconds: 1, request_limit_seconds: 5 };
  operator = await startOperator({ cluster, apiUrl: control.url, apiKey: control.apiKey, settings });
  cluster.put("agents", { replicas, pool });
  await eventually(() => {
    expect(statusOf()).toMatchObject({ replicas, idle: replicas, leased: 0, appliedGeneration: 1 });
    expect(conditionOf("Ready")).toMatchObject({ status: "True", reason: "AtSize" });
  });
  return { control, node, poolId: statusOf()?.["poolId"] };
}
const acquire = async (control: DaemonProcess): Promise<Lease> =>
  (await control.call("POST /browser_pools/agents/acquire", { acquire_timeout_seconds: 60 })).body as Lease;

/** How often the pool was changed, or its change was refused. */
async function changesOf(control: DaemonProcess): Promise<number> {
  const day = 86_400_000;
  const range = [Date.now() - day, Date.now() + day].map((at) => new Date(at).toISOString());
  const { status, body } = await control.call(
    `GET /audit-logs?start=${range[0]}&end=${range[1]}&method=PATCH&limit=100`,
  );
  expect(status).toBe(200);
  return (body as readonly object[]).length;
}

test("a pool of a control and a node is made, scaled, refused a change, changed and lent from, and its status and the pod's cost say so", async () => {
  const { control, poolId } = await begin(1);
  expect(await control.call("GET /browser_pools/agents")).toMatchObject({ body: { id: poolId } });

  cluster.put("agents", { replicas: 2, pool });
  await eventually(() => expect(statusOf()).toMatchObject({ replicas: 2, idle: 2, appliedGeneration: 2 }));

  cluster.put("agents", { replicas: 2, pool: { ...pool, proxy_id: "nosuchproxyatall" } });
  await eventually(() =>
    expect(conditionOf("Degraded")).toMatchObject({ status: "True", reason: "Refused" }),
  );
  expect(statusOf()).toMatchObject({ poolId, replicas: 2, appliedGeneration: 2, observedGeneration: 3 });

  const viewport = { width: 1024, height: 768 };
  cluster.put("agents", { replicas: 2, pool: { ...pool, timeout_seconds: 900, viewport } });
  await eventually(() =>
    expect(conditionOf("Ready")).toMatchObject({ status: "True", observedGeneration: 4 }),
  );
  expect(await control.call("GET /browser_pools/agents")).toMatchObject({
    body: { id: poolId, browser_pool_config: { timeout_seconds: 900, viewport } },
  });

  expect((await control.call("PATCH /browser_pools/agents", { timeout_seconds: 300 })).status).toBe(200);
  await eventually(async () =>
    expect(await control.call("GET /browser_pools/agents")).toMatchObject({
      body: { browser_pool_config: { timeout_seconds: 900, viewport } },
    }),
  );

  const lease = await acquire(control);
  const client = await connectRaw(lease.cdp_ws_url);
  expect(await client.evaluate("6 * 7", await client.attach())).toBe(42);
  await eventually(() => {
    expect(statusOf()).toMatchObject({ replicas: 2, idle: 1, leased: 1 });
    expect(cost()).toBe("1000010");
  });
  const changed = await changesOf(control);
  await client.close();
  await control.call("POST /browser_pools/agents/release", { session_id: lease.session_id });
  await eventually(() => {
    expect(statusOf()).toMatchObject({ replicas: 2, idle: 2, leased: 0 });
    expect(cost()).toBe("0");
  });
  // What each of these rounds read of the pool was what it had been given.
  expect(await changesOf(control)).toBe(changed);
}, 300_000);

test("a pool outlives its control, is made again where somebody deletes it, and goes with its resource and last lease", async () => {
  const { control, poolId } = await begin(1);
  await acquire(control);
  await eventually(() => expect(statusOf()).toMatchObject({ replicas: 1, leased: 1 }));
  await control.end("SIGKILL");
  running = running.filter((daemon) => daemon !== control);
  await eventually(() =>
    expect(conditionOf("Ready")).toMatchObject({ status: "Unknown", reason: "ApiUnavailable" }),
  );
  expect(statusOf()).toMatchObject({ poolId, replicas: 1, leased: 1 });
  control.place.remove();
  const next = await start("control", { port: control.port });
  await eventually(() => {
    expect(conditionOf("Ready")).toMatchObject({ status: "True", reason: "AtSize" });
    expect(statusOf()).toMatchObject({ poolId, replicas: 1, leased: 1 });
  });

  expect((await next.call("DELETE /browser_pools/agents", { force: true })).status).toBe(204);
  await eventually(() => {
    expect(statusOf()?.["poolId"]).not.toBe(poolId);
    expect(statusOf()).toMatchObject({ replicas: 1, idle: 1, leased: 0 });
  });

  await acquire(next);
  cluster.remove("agents");
  await eventually(() =>
    expect(conditionOf("Progressing")).toMatchObject({ status: "True", reason: "WaitingForLeases" }),
  );
  expect((await next.call("GET /browser_pools/agents")).status).toBe(200);
  cluster.annotate("agents", { "remuda.dev/force-delete": "true" });
  await eventually(() => expect(cluster.resources.size).toBe(0));
  expect((await next.call("GET /browser_pools/agents")).status).toBe(404);
  await eventually(async () => expect((await next.call("GET /nodes")).body).toMatchObject([{ browsers: 0 }]));
}, 300_000);
