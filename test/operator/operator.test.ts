import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { TestCluster } from "../support/kubernetes/cluster.js";
import { type RunningOperator, startOperator } from "../support/kubernetes/operator.js";
import { TestPools } from "../support/kubernetes/pools.js";

let cluster: TestCluster;
let pools: TestPools;
let operators: RunningOperator[];

beforeEach(async () => {
  cluster = await TestCluster.open();
  pools = await TestPools.open();
  operators = [];
});
afterEach(async () => {
  for (const { stop } of operators) await stop();
  await Promise.all([cluster.close(), pools.close()]);
});

async function operate(settings: object = { period_seconds: 1, request_limit_seconds: 1 }): Promise<void> {
  const apiKey = "a-key-of-the-organization";
  operators.push(await startOperator({ cluster, apiUrl: pools.url, apiKey, settings }));
}

const eventually = (what: () => void | Promise<void>): Promise<void> =>
  vi.waitFor(what, { timeout: 60_000, interval: 20 });
const statusOf = (name: string) => cluster.resources.get(name)?.status;
const conditionOf = (name: string, type: string) =>
  (statusOf(name)?.["conditions"] as { type: string }[] | undefined)?.find((each) => each.type === type);
const slow = { period_seconds: 600, request_limit_seconds: 30 };

describe("a resource", () => {
  test("becomes a pool, whose state becomes its status", async () => {
    cluster.put("agents", { replicas: 3, pool: { headless: true } });
    await operate();
    await eventually(() =>
      expect(statusOf("agents")).toMatchObject({ replicas: 3, idle: 3, poolId: "id-of-agents" }),
    );
    expect(pools.pools.get("agents")?.body).toEqual({ name: "agents", size: 3, headless: true });
    expect(statusOf("agents")).toMatchObject({
      observedGeneration: 1,
      appliedGeneration: 1,
      selector: "remuda.dev/browsers-of=uid-of-agents",
    });
    expect(conditionOf("agents", "Ready")).toMatchObject({ status: "True", reason: "AtSize" });
  });

  test("holds the pool's finalizer before there is a pool", async () => {
    cluster.put("agents", { replicas: 1 });
    let wasHeld: boolean | undefined;
    const isCreation = (): boolean => pools.asked.some((each) => each.startsWith("POST"));
    cluster.interfere = ({ body }) => {
      if ((body?.["metadata"] as { finalizers?: string[] } | undefined)?.finalizers)
        wasHeld ??= !isCreation();
      return undefined;
    };
    await operate();
    await eventually(() => expect(pools.pools.size).toBe(1));
    expect(wasHeld).toBe(true);
    expect(cluster.resources.get("agents")?.metadata.finalizers).toEqual(["remuda.dev/pool"]);
  });

  test("that is scaled changes the pool's size, by its watch alone", async () => {
    cluster.put("agents", { replicas: 3 });
    await operate(slow);
    await eventually(() => expect(statusOf("agents")).toMatchObject({ replicas: 3 }));
    cluster.put("agents", { replicas: 50 });
    await eventually(() => expect(statusOf("agents")).toMatchObject({ replicas: 50, appliedGeneration: 2 }));
    expect(pools.pools.get("agents")?.size).toBe(50);
  });

  test("is not written to while nothing changes, and never by anything but its status and finalizers", async () => {
    cluster.put("agents", { replicas: 3 });
    // A request that takes too long on a busy machine is news, which would be written.
    await operate({ period_seconds: 1, request_limit_seconds: 30 });
    await eventually(() => expect(conditionOf("agents", "Ready")).toMatchObject({ status: "True" }));
    const patches = (): number => cluster.asked.filter(({ method }) => method === "PATCH").length;
    const before = patches();
    const lists = cluster.asked.length;
    await eventually(() => expect(cluster.asked.length).toBeGreaterThan(lists + 4));
    expect(patches()).toBe(before);
    const touched = cluster.asked.flatMap(({ body }) => Object.keys(body ?? {}));
    expect(touched).not.toContain("spec");
  });

  test("whose pool's counts change all the time is looked at once a period, not whenever its status was written", async () => {
    pools.before = (asked) => {
      const pool = pools.pools.get("agents");
      if (pool && asked === "GET /browser_pools/agents") pool.leased = (pool.leased + 1) % 4;
      return undefined;
    };
    await Promise.all([operate(slow), operate(slow)]);
    await eventually(() => expect(cluster.watching).toBe(2));
    for (const operator of operators)
      await eventually(async () => expect(await operator.readiness()).toBe(200));
    cluster.put("agents", { replicas: 3 });
    await eventually(() => expect(statusOf("agents")).toMatchObject({ poolId: "id-of-agents" }));
    // Each of these takes an operator as many requests as another look at the first pool would.
    for (let replicas = 1; replicas <= 20; replicas += 1) {
      cluster.put("crawlers", { replicas });
      await eventually(() =>
        expect(statusOf("crawlers")).toMatchObject({ replicas, appliedGeneration: replicas }),
      );
    }
    const writes = cluster.asked.filter(({ path }) => path.endsWith("/agents/status"));
    // One of each operator, and one of whichever had seen the resource before the other's finalizer.
    expect(writes.length).toBeLessThanOrEqual(3);
  });

  test("says why the API refuses it, and is tried again", async () => {
    pools.refuseChanges = { status: 400, code: "bad_request", message: "There is no proxy p" };
    cluster.put("agents", { replicas: 3, pool: { proxy_id: "p" } });
    await operate();
    await eventually(() =>
      expect(conditionOf("agents", "Degraded")).toMatchObject({
        status: "True",
        reason: "Refused",
        message: "There is no proxy p",
      }),
    );
    expect(statusOf("agents")?.["appliedGeneration"]).toBeUndefined();
    pools.refuseChanges = undefined;
    await eventually(() => expect(conditionOf("agents", "Ready")).toMatchObject({ status: "True" }));
  });

  test("has its pool made again where somebody has deleted that", async () => {
    cluster.put("agents", { replicas: 3 });
    await operate();
    for (const id of ["id-of-agents", "id-of-agents-2", "id-of-agents-3"]) {
      await eventually(() => expect(statusOf("agents")).toMatchObject({ replicas: 3, poolId: id }));
      pools.pools.clear();
    }
    await eventually(() => expect(conditionOf("agents", "Ready")).toMatchObject({ status: "True" }));
  });
});

describe("a deletion", () => {
  const made = async (): Promise<void> => {
    cluster.put("agents", { replicas: 2 });
    await operate();
    await eventually(() => expect(statusOf("agents")).toBeDefined());
  };
  test("deletes the pool, then lets the resource go", async () => {
    await made();
    cluster.remove("agents");
    await eventually(() => expect(cluster.resources.size).toBe(0));
    expect(pools.pools.size).toBe(0);
  });
  test("waits for leases and says so, unless it is to end them", async () => {
    await made();
    const pool = pools.pools.get("agents");
    if (pool) pool.leased = 1;
    cluster.remove("agents");
    await eventually(() =>
      expect(conditionOf("agents", "Progressing")).toMatchObject({
        status: "True",
        reason: "WaitingForLeases",
      }),
    );
    if (pool) pool.leased = 2;
    await eventually(() => expect(statusOf("agents")).toMatchObject({ replicas: 2, idle: 0, leased: 2 }));
    cluster.annotate("agents", { "remuda.dev/force-delete": "true" });
    await eventually(() => expect(cluster.resources.size).toBe(0));
    expect(pools.pools.size).toBe(0);
  });
  test("of a resource whose pool is gone already is no obstacle", async () => {
    await made();
    pools.pools.clear();
    cluster.interfere = ({ method, path }) =>
      method === "PATCH" && path.endsWith("/status") ? 409 : undefined;
    cluster.remove("agents");
    await eventually(() => expect(cluster.resources.size).toBe(0));
  });
});

describe("a cluster in trouble", () => {
  const seen = async (change: () => void): Promise<void> => {
    cluster.put("agents", { replicas: 1 });
    await operate();
    await eventually(() => expect(cluster.watching).toBe(1));
    change();
    cluster.put("agents", { replicas: 7 });
    await eventually(() => expect(pools.pools.get("agents")?.size).toBe(7));
  };
  test("that cuts watches is watched anew", async () => {
    await seen(() => cluster.cutWatches());
    await eventually(() => expect(cluster.watching).toBe(1));
  });
  test("that says 410 in a watch is listed anew", async () => {
    await seen(() => cluster.expireWatches());
    await eventually(() => expect(cluster.watching).toBe(1));
  });
  test("that hangs is given up, and found again", async () => {
    let hung = 0;
    await seen(() => {
      // With no watch, only what hangs could tell of the change.
      cluster.cutWatches();
      cluster.interfere = ({ path }) => (path.endsWith("browserpools") && hung++ < 2 ? "hang" : undefined);
    });
    await eventually(() => expect(hung).toBeGreaterThan(2));
    cluster.put("agents", { replicas: 8 });
    await eventually(() => expect(pools.pools.get("agents")?.size).toBe(8));
  });
  test("that answers 500 to everything for a while is borne", async () => {
    let left = 6;
    await seen(() => {
      cluster.interfere = () => (left-- > 0 ? 500 : undefined);
    });
  });
  test("that refuses a change because of another is asked again", async () => {
    let left = 3;
    cluster.interfere = ({ method }) => (method === "PATCH" && left-- > 0 ? 409 : undefined);
    cluster.put("agents", { replicas: 1 });
    await operate();
    await eventually(() => expect(conditionOf("agents", "Ready")).toMatchObject({ status: "True" }));
  });
});

test("three operators at once make one pool of a resource, agree on its status, and delete it", async () => {
  await Promise.all([operate(), operate(), operate()]);
  cluster.put("agents", { replicas: 4 });
  await eventually(() => expect(conditionOf("agents", "Ready")).toMatchObject({ status: "True" }));
  cluster.put("agents", { replicas: 9 });
  await eventually(() => expect(statusOf("agents")).toMatchObject({ replicas: 9, appliedGeneration: 2 }));
  expect([...pools.pools.keys()]).toEqual(["agents"]);
  expect(cluster.resources.get("agents")?.metadata.finalizers).toEqual(["remuda.dev/pool"]);
  cluster.remove("agents");
  await eventually(() => expect(cluster.resources.size).toBe(0));
  expect(pools.pools.size).toBe(0);
});

describe("costs of pods", () => {
  const cost = (name: string) =>
    cluster.pods.get(name)?.metadata.annotations?.["controller.kubernetes.io/pod-deletion-cost"];
  test("follow the leases of their nodes, by steps", async () => {
    const leases = { idle: 0, one: 1, five: 5, many: 17 };
    for (const [name, count] of Object.entries(leases)) {
      cluster.addPod(name);
      pools.leases.set(name, count);
    }
    cluster.addPod("unknown", { "controller.kubernetes.io/pod-deletion-cost": "7" });
    await operate();
    await eventually(() =>
      expect(["idle", "one", "five", "many", "unknown"].map(cost)).toEqual([
        undefined,
        "10",
        "100",
        "1000",
        "7",
      ]),
    );
    pools.leases.set("many", 0);
    await eventually(() => expect(cost("many")).toBe("0"));
  });
  test("are above those of all others where a node's drain may not see the end of what is lent there", async () => {
    for (const [name, count] of Object.entries({ many: 100, long: 1, longer: 6 })) {
      cluster.addPod(name);
      pools.leases.set(name, count);
    }
    pools.outlasting.add("long").add("longer");
    await operate();
    await eventually(() =>
      expect(["many", "long", "longer"].map(cost)).toEqual(["1000", "1000010", "1000100"]),
    );
    pools.outlasting.delete("long");
    await eventually(() => expect(cost("long")).toBe("10"));
  });
  test("are written of all other pods where one cannot be written to", async () => {
    for (const name of ["a", "b", "c"]) {
      cluster.addPod(name);
      pools.leases.set(name, 1);
    }
    cluster.interfere = ({ method, path }) =>
      method === "PATCH" && path.endsWith("/pods/a") ? 500 : undefined;
    await operate();
    await eventually(() => expect(["a", "b", "c"].map(cost)).toEqual([undefined, "10", "10"]));
  });
  test("are those of a control that does not tell how long leases last", async () => {
    cluster.addPod("node");
    pools.leases.set("node", 2);
    pools.isEarlier = true;
    await operate();
    await eventually(() => expect(cost("node")).toBe("10"));
  });
  test("are written when a step is passed, not with each lease", async () => {
    cluster.addPod("node");
    pools.leases.set("node", 2);
    await operate();
    await eventually(() => expect(cost("node")).toBe("10"));
    const writes = (): number => cluster.asked.filter(({ path }) => path.endsWith("/pods/node")).length;
    const before = writes();
    pools.leases.set("node", 4);
    const asked = pools.asked.filter((each) => each === "GET /scaling").length;
    await eventually(() =>
      expect(pools.asked.filter((each) => each === "GET /scaling").length).toBeGreaterThan(asked + 1),
    );
    expect(writes()).toBe(before);
  });
});
