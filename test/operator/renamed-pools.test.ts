import { afterEach, beforeEach, expect, test } from "vitest";
import { eventually, OperatorBed } from "../support/kubernetes/operator-bed.js";

let bed: OperatorBed;
beforeEach(async () => {
  bed = await OperatorBed.open();
  bed.cluster.put("agents", { replicas: 3, pool: { headless: true } });
  await bed.operate({ request_limit_seconds: 30 });
  const fields = { replicas: 3, poolId: "id-of-agents" };
  await eventually(() => expect(bed.statusOf("agents")).toMatchObject(fields));
});
afterEach(() => bed.close());

test.each(["others", "Others_of.mine", "."])(
  "a pool that was renamed to %s gets its name back",
  async (to) => {
    bed.pools.rename("agents", to);
    await eventually(() => expect([...bed.pools.pools.keys()]).toEqual(["agents"]));
    await bed.rounds(3);
    expect(bed.pools.pools.get("agents")).toMatchObject({ id: "id-of-agents", size: 3 });
    expect(bed.statusOf("agents")).toMatchObject({
      replicas: 3,
      poolId: "id-of-agents",
      appliedGeneration: 1,
    });
    expect(bed.asked("POST")).toHaveLength(1);
    expect(bed.asked("PATCH")).toHaveLength(1);
  },
);

test("a pool that was renamed goes with its resource", async () => {
  bed.pools.before = (asked) => {
    const isDeleted = bed.cluster.resources.get("agents")?.metadata.deletionTimestamp !== undefined;
    if (isDeleted && asked === "GET /browser_pools/agents") bed.pools.rename("agents", "others");
    return undefined;
  };
  bed.cluster.remove("agents");
  await eventually(() => expect(bed.cluster.resources.size).toBe(0));
  expect(bed.pools.pools.size).toBe(0);
});

test("a pool that was given the name of another resource is that one's, and is not renamed to and fro", async () => {
  bed.pools.rename("agents", "crawlers");
  bed.cluster.put("crawlers", { replicas: 2 });
  await eventually(() => {
    expect(bed.statusOf("crawlers")).toMatchObject({ replicas: 2, poolId: "id-of-agents" });
    expect(bed.statusOf("agents")).toMatchObject({ replicas: 3, poolId: "id-of-agents-2" });
  });
  const changes = bed.asked("PATCH").length;
  await bed.rounds(3);
  expect(bed.asked("PATCH")).toHaveLength(changes);
  expect(bed.pools.pools.get("crawlers")?.id).toBe("id-of-agents");
  expect(bed.asked("DELETE")).toEqual([]);
});
