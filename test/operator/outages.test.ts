import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { TestCluster } from "../support/kubernetes/cluster.js";
import { type RunningOperator, startOperator } from "../support/kubernetes/operator.js";
import { TestPools } from "../support/kubernetes/pools.js";

let cluster: TestCluster;
let pools: TestPools;
let opened: (() => Promise<void>)[];

beforeEach(async () => {
  opened = [];
  ({ cluster, pools } = await open());
});
afterEach(async () => {
  for (const close of opened.toReversed()) await close();
});

interface Place {
  readonly cluster: TestCluster;
  readonly pools: TestPools;
}
async function open(): Promise<Place> {
  const place = { cluster: await TestCluster.open(), pools: await TestPools.open() };
  opened.push(
    () => place.cluster.close(),
    () => place.pools.close(),
  );
  return place;
}

async function operate(settings: object = {}, place: Place = { cluster, pools }): Promise<RunningOperator> {
  const operator = await startOperator({
    cluster: place.cluster,
    apiUrl: place.pools.url,
    apiKey: "a-key-of-the-organization",
    settings: { period_seconds: 1, request_limit_seconds: 1, ...settings },
  });
  opened.push(() => operator.stop());
  return operator;
}

const eventually = (what: () => void | Promise<void>): Promise<void> =>
  vi.waitFor(what, { timeout: 60_000, interval: 20 });
const statusOf = (name: string) => cluster.resources.get(name)?.status;
const conditionOf = (name: string, type: string) =>
  (statusOf(name)?.["conditions"] as { type: string }[] | undefined)?.find((each) => each.type === type);
const deletions = (): readonly string[] => pools.asked.filter((each) => each.startsWith("DELETE"));
const isReady = (operator: RunningOperator, status: number): Promise<void> =>
  eventually(async () => expect(await operator.readiness()).toBe(status));

/** Two resources whose pools are there. */
async function makeTwo(): Promise<void> {
  cluster.put("agents", { replicas: 3 });
  cluster.put("crawlers", { replicas: 2 });
  await eventually(() => {
    expect(statusOf("agents")).toMatchObject({ replicas: 3, idle: 3 });
    expect(statusOf("crawlers")).toMatchObject({ replicas: 2, idle: 2 });
  });
}

describe("an API server of Kubernetes", () => {
  const ends: Readonly<Record<string, () => Promise<() => void>>> = {
    async killed() {
      await cluster.kill();
      return () => void cluster.revive();
    },
    stopped: async () => cluster.hang(),
  };
  test.each(Object.keys(ends))(
    "that is %s amid a run, and goes on: every pool is there, what was lent meanwhile is told, and what comes then is done",
    async (how) => {
      const operator = await operate();
      await makeTwo();
      await eventually(() => expect(cluster.watching).toBe(1));
      await isReady(operator, 200);
      const goOn = await ends[how]?.();
      await isReady(operator, 503);
      const lent = pools.pools.get("crawlers");
      if (lent) lent.leased = 1;
      goOn?.();
      cluster.put("agents", { replicas: 7 });
      await eventually(() => {
        expect(statusOf("agents")).toMatchObject({ replicas: 7, idle: 7, appliedGeneration: 2 });
        expect(statusOf("crawlers")).toMatchObject({ replicas: 2, idle: 1, leased: 1 });
      });
      await isReady(operator, 200);
      await eventually(() => expect(cluster.watching).toBe(1));
      expect(deletions()).toEqual([]);
      expect([...pools.pools.keys()].toSorted()).toEqual(["agents", "crawlers"]);
    },
  );

  test("that lists nothing for a while costs no pool", async () => {
    await operate();
    await makeTwo();
    const kept = [...cluster.resources];
    cluster.resources.clear();
    const lists = (): number => cluster.asked.filter(({ path }) => path.endsWith("/browserpools")).length;
    const before = lists();
    await eventually(() => expect(lists()).toBeGreaterThan(before + 2));
    for (const [name, resource] of kept) cluster.resources.set(name, resource);
    cluster.put("agents", { replicas: 4 });
    await eventually(() => expect(statusOf("agents")).toMatchObject({ replicas: 4 }));
    expect(deletions()).toEqual([]);
    expect(pools.pools.get("crawlers")?.size).toBe(2);
  });

  /** A pool is made, resized and deleted, while one of the requests of that ends as `end` has it. */
  async function liveOn(place: Place, at: number, end: "lost" | "killed"): Promise<void> {
    let count = 0;
    const status = () => place.cluster.resources.get("agents")?.status;
    place.cluster.interfere = () => {
      count += 1;
      if (count !== at) return undefined;
      if (end === "lost") return "lost";
      void place.cluster.kill().then(() => place.cluster.revive());
      return "hang";
    };
    place.cluster.put("agents", { replicas: 3 });
    await operate({}, place);
    await eventually(() => expect(status()).toMatchObject({ replicas: 3, appliedGeneration: 1 }));
    place.cluster.put("agents", { replicas: 5 });
    await eventually(() => expect(status()).toMatchObject({ replicas: 5, appliedGeneration: 2 }));
    await eventually(() => expect(count).toBeGreaterThanOrEqual(at));
    expect(place.pools.asked.filter((each) => each.startsWith("DELETE"))).toEqual([]);
    place.cluster.remove("agents");
    await eventually(() => expect(place.cluster.resources.size).toBe(0));
    expect(place.pools.pools.size).toBe(0);
  }
  test.each(["lost", "killed"] as const)(
    "whose answer is lost, or that is killed (%s), at whichever request: what comes of a resource is the same",
    async (end) => {
      const places = [1, 2, 3, 4, 5, 6, 7, 8, 10, 12];
      await Promise.all(places.map(async (at) => await liveOn(await open(), at, end)));
    },
  );
});

test("a resource is Unknown while the API is away", async () => {
  pools.refuse = { status: 503, code: "store_unavailable", message: "Redis does not answer" };
  cluster.put("agents", { replicas: 3 });
  await operate();
  await eventually(() =>
    expect(conditionOf("agents", "Ready")).toMatchObject({ status: "Unknown", reason: "ApiUnavailable" }),
  );
});

describe("an operator that is late", () => {
  const unhurried = { request_limit_seconds: 30 };

  test("with a resource as it was listed does not undo what it was scaled to since", async () => {
    await operate(unhurried);
    await makeTwo();
    const { reached, goOn } = pools.holdUp((asked) => asked === "GET /browser_pools/agents");
    await reached;
    // Another operator has seen it, and was faster.
    cluster.put("agents", { replicas: 50 });
    const pool = pools.pools.get("agents");
    if (pool) pool.size = 50;
    goOn();
    await eventually(() => expect(statusOf("agents")).toMatchObject({ replicas: 50, appliedGeneration: 2 }));
    expect(pools.sizes).not.toContain(3);
  });

  test("with a resource as it was listed does not tell of what that was since it has told of what it is", async () => {
    const others = [1, 2, 3, 4, 5, 6, 7, 8].map((number) => `other-${number}`);
    for (const name of [...others, "agents"]) cluster.put(name, { replicas: 3 });
    await operate(unhurried);
    for (const name of [...others, "agents"])
      await eventually(() => expect(statusOf(name)).toMatchObject({ appliedGeneration: 1 }));
    await eventually(() => expect(cluster.watching).toBe(1));
    let goOn = (): void => {};
    const held = new Promise<void>((resolve) => (goOn = resolve));
    const waiting = new Set<string>();
    pools.before = (asked) => {
      if (!asked.startsWith("GET /browser_pools/other-")) return undefined;
      waiting.add(asked);
      return held;
    };
    // So many are reconciled at once: the last one of the list waits.
    await eventually(() => expect(waiting.size).toBe(8));
    cluster.put("agents", { replicas: 3, pool: { headless: true } });
    await eventually(() => expect(statusOf("agents")).toMatchObject({ appliedGeneration: 2 }));
    const lent = pools.pools.get("agents");
    if (lent) lent.leased = 1;
    goOn();
    await eventually(() => expect(statusOf("agents")).toMatchObject({ observedGeneration: 2, leased: 1 }));
    const told = cluster.asked.filter(({ path }) => path.endsWith("/agents/status"));
    expect(told.map(({ body }) => body?.["status"])).toMatchObject(
      [1, 2, 2].map((observedGeneration) => ({ observedGeneration })),
    );
  });

  test("with a deletion leaves a pool of the same name that has been made for another resource since", async () => {
    await operate(unhurried);
    await makeTwo();
    const { reached, goOn } = pools.holdUp((asked) => asked.startsWith("DELETE"));
    cluster.remove("agents");
    await reached;
    pools.pools.delete("agents");
    cluster.resources.delete("agents");
    await operate(unhurried);
    cluster.put("agents", { replicas: 6 });
    await eventually(() => expect(pools.pools.get("agents")?.size).toBe(6));
    const { id } = pools.pools.get("agents") ?? {};
    goOn();
    await eventually(() => expect(statusOf("agents")).toMatchObject({ replicas: 6, poolId: id }));
    expect(deletions()).toHaveLength(1);
    expect(pools.pools.get("agents")?.id).toBe(id);
  });
});

describe("a resource whose pool is not as it was made", () => {
  test("gives its configuration to a pool that somebody has made in the place of its own", async () => {
    cluster.put("agents", { replicas: 3, pool: { headless: true } });
    await operate();
    await eventually(() => expect(statusOf("agents")).toMatchObject({ poolId: "id-of-agents" }));
    const body = { name: "agents", size: 3, timeout_seconds: 60 };
    pools.pools.set("agents", { id: "id-of-another", size: 3, leased: 0, body });
    await eventually(() => expect(statusOf("agents")).toMatchObject({ poolId: "id-of-another" }));
    expect(pools.pools.get("agents")?.body).toEqual({ ...body, headless: true });
  });

  test("gives its pool back the configuration that a failover of Redis, or somebody, has taken from it", async () => {
    cluster.put("agents", { replicas: 3, pool: { headless: true, viewport: { width: 800, height: 600 } } });
    await operate();
    await eventually(() => expect(conditionOf("agents", "Ready")).toMatchObject({ status: "True" }));
    const pool = pools.pools.get("agents");
    if (pool) pool.body = { ...pool.body, viewport: { width: 1024, height: 768 } };
    await eventually(() =>
      expect(pools.pools.get("agents")?.body["viewport"]).toEqual({ width: 800, height: 600 }),
    );
    // What the resource does not name is left to others.
    const changes = (): number => pools.sizes.length;
    const before = changes();
    const asked = pools.asked.length;
    if (pool) pool.body = { ...pool.body, timeout_seconds: 60, viewport: { height: 600, width: 800 } };
    await eventually(() => expect(pools.asked.length).toBeGreaterThan(asked + 6));
    expect(changes()).toBe(before);
  });

  test.each([
    { status: 403, code: "limit_exceeded", message: "The sizes of all pools would exceed the limit" },
    { status: 403, code: "insufficient_scope", message: "The policy of this API key does not allow that" },
  ])("says why the API refuses a change of it ($code), and what it has meanwhile", async (refusal) => {
    cluster.put("agents", { replicas: 3 });
    await operate();
    await eventually(() => expect(statusOf("agents")).toMatchObject({ idle: 3, appliedGeneration: 1 }));
    pools.refuseChanges = refusal;
    cluster.put("agents", { replicas: 50 });
    const { message } = refusal;
    await eventually(() => {
      expect(conditionOf("agents", "Degraded")).toMatchObject({ status: "True", reason: "Refused", message });
      expect(conditionOf("agents", "Ready")).toMatchObject({ status: "False", reason: "Refused", message });
    });
    const pool = pools.pools.get("agents");
    if (pool) pool.leased = 2;
    const fields = { replicas: 3, idle: 1, leased: 2, appliedGeneration: 1, observedGeneration: 2 };
    await eventually(() => expect(statusOf("agents")).toMatchObject(fields));
    pools.refuseChanges = undefined;
    await eventually(() => expect(statusOf("agents")).toMatchObject({ replicas: 50, appliedGeneration: 2 }));
  });

  test("has no browsers where its pool is gone and the API makes no other", async () => {
    await operate();
    await makeTwo();
    pools.refuseChanges = { status: 403, code: "limit_exceeded", message: "There are as many as may be" };
    pools.pools.delete("agents");
    await eventually(() => {
      expect(statusOf("agents")).toMatchObject({ poolId: "id-of-agents", replicas: 0, idle: 0, leased: 0 });
      expect(conditionOf("agents", "Ready")).toMatchObject({ status: "False", reason: "Refused" });
    });
    pools.refuseChanges = undefined;
    await eventually(() => expect(statusOf("agents")).toMatchObject({ replicas: 3, idle: 3 }));
  });

  test("says nothing of a generation that the API no longer takes for its pool", async () => {
    cluster.put("agents", { replicas: 3, pool: { headless: true } });
    await operate();
    await eventually(() => expect(statusOf("agents")).toMatchObject({ appliedGeneration: 1 }));
    pools.refuseChanges = { status: 400, code: "bad_request", message: "There is no proxy p" };
    pools.pools.set("agents", { id: "id-of-another", size: 3, leased: 0, body: { name: "agents", size: 3 } });
    await eventually(() => expect(conditionOf("agents", "Degraded")).toMatchObject({ reason: "Refused" }));
    expect(statusOf("agents")).not.toHaveProperty("appliedGeneration");
    pools.refuseChanges = undefined;
    await eventually(() => expect(statusOf("agents")).toMatchObject({ appliedGeneration: 1 }));
    expect(pools.pools.get("agents")?.body).toMatchObject({ headless: true });
  });
});
