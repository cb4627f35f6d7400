import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Daemon } from "../support/daemon/daemon.js";
import { startDaemon } from "../support/daemon/daemon.js";
import { TestCluster } from "../support/kubernetes/cluster.js";
import { type RunningOperator, startOperator } from "../support/kubernetes/operator.js";

let cluster: TestCluster;
let daemon: Daemon;
let operators: RunningOperator[];

beforeEach(async () => {
  cluster = await TestCluster.open();
  const file = {
    // On a busy machine nobody is lost who is only slow, and nothing ends that is lent there.
    acquire: { control_lost_after_ms: 60_000, provisional_seconds: 60 },
    node: { id: "remuda-node-x", lost_after_ms: 60_000 },
    projects: { enabled: true },
    drain: { limit_seconds: 600 },
    limits: { pooled_sessions: 2 },
  };
  daemon = await startDaemon({ file });
  operators = [];
});
afterEach(async () => {
  for (const { stop } of operators) await stop();
  await cluster.close();
  await daemon.stop();
});

const operate = async (apiKey: string): Promise<RunningOperator> => {
  const operator = await startOperator({ cluster, apiUrl: daemon.url, apiKey });
  operators.push(operator);
  return operator;
};
const eventually = (what: () => void | Promise<void>): Promise<void> =>
  vi.waitFor(what, { timeout: 60_000, interval: 50 });
const statusOf = (name: string) => cluster.resources.get(name)?.status;
const costOf = (name: string) =>
  cluster.pods.get(name)?.metadata.annotations?.["controller.kubernetes.io/pod-deletion-cost"];
async function makeKey(body: object): Promise<string> {
  const { status, body: made } = await daemon.call("POST /org/api_keys", { name: "operator", ...body });
  expect(status).toBe(201);
  return String((made as { key: string }).key);
}
const pool = { headless: true, timeout_seconds: 600 };

test("two operators with a key of their own make a daemon's pool, resize it and delete it when its lease has ended", async () => {
  cluster.addPod("remuda-node-x");
  const key = await makeKey({});
  await Promise.all([operate(key), operate(key)]);
  cluster.put("agents", { replicas: 1, pool });
  await eventually(() => expect(statusOf("agents")).toMatchObject({ replicas: 1, idle: 1 }));
  const { body: made } = await daemon.call("GET /browser_pools");
  expect(made).toMatchObject([{ name: "agents", browser_pool_config: { size: 1 } }]);

  cluster.put("agents", { replicas: 2, pool });
  await eventually(() => expect(statusOf("agents")).toMatchObject({ replicas: 2, idle: 2 }));
  expect(await daemon.call("GET /browser_pools/agents")).toMatchObject({
    body: { browser_pool_config: { size: 2, headless: true, timeout_seconds: 600 } },
  });

  cluster.put("agents", { replicas: 3, pool });
  await eventually(() =>
    expect(statusOf("agents")?.["conditions"]).toContainEqual(
      expect.objectContaining({
        type: "Degraded",
        reason: "Refused",
        message: expect.any(String) as unknown,
      }),
    ),
  );
  expect(statusOf("agents")).toMatchObject({ replicas: 2, appliedGeneration: 2, observedGeneration: 3 });
  cluster.put("agents", { replicas: 2, pool });
  const { poolId: id } = statusOf("agents") ?? {};
  expect((await daemon.call("PATCH /browser_pools/agents", { name: "others" })).status).toBe(200);
  await eventually(async () =>
    expect((await daemon.call("GET /browser_pools/agents")).body).toMatchObject({ id, name: "agents" }),
  );

  const { body: lease } = await daemon.call("POST /browser_pools/agents/acquire", {});
  await eventually(() => expect(costOf("remuda-node-x")).toBe("10"));
  cluster.remove("agents");
  await eventually(() =>
    expect(statusOf("agents")?.["conditions"]).toContainEqual(
      expect.objectContaining({ type: "Progressing", reason: "WaitingForLeases" }),
    ),
  );
  const { session_id } = lease as { session_id: string };
  await daemon.call("POST /browser_pools/agents/release", { session_id });
  await eventually(() => expect(cluster.resources.size).toBe(0));
  await eventually(async () => expect((await daemon.call("GET /browser_pools/agents")).status).toBe(404));
});

test("an operator with a key of one project makes pools there and nowhere else, and says once that it writes no costs", async () => {
  const { body: project } = await daemon.call("POST /org/projects", { name: "team" });
  const { id } = project as { id: string };
  cluster.addPod("remuda-node-x");
  const operator = await operate(await makeKey({ project_id: id }));
  cluster.put("agents", { replicas: 1, pool });
  await eventually(() => expect(statusOf("agents")).toMatchObject({ replicas: 1, idle: 1 }));
  expect((await daemon.call("GET /browser_pools/agents")).status).toBe(404);
  const there = await daemon.call("GET /browser_pools/agents", undefined, { "x-kernel-project-id": id });
  expect(there.status).toBe(200);
  const lists = (): number => cluster.asked.filter(({ path }) => path.endsWith("/browserpools")).length;
  const before = lists();
  await eventually(() => expect(lists()).toBeGreaterThan(before + 3));
  const said = operator.said("costs of pods are not written");
  expect(said).toHaveLength(1);
  expect(costOf("remuda-node-x")).toBeUndefined();
});
