import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { eventually, OperatorBed } from "../support/kubernetes/operator-bed.js";

let bed: OperatorBed;
beforeEach(async () => {
  bed = await OperatorBed.open();
});
afterEach(() => bed.close());

const unhurried = { request_limit_seconds: 30 };
const deleted = "DELETE /browser_pools/id-of-agents";

/** An operator that makes the pool of a resource, which is deleted meanwhile without its finalizer. */
async function deleteAmidCreation(settings: object = unhurried): Promise<() => void> {
  await bed.operate(settings);
  const { reached, goOn } = bed.pools.holdUp((asked) => asked.startsWith("POST"));
  bed.cluster.put("agents", { replicas: 3 });
  await reached;
  bed.cluster.resources.delete("agents");
  return goOn;
}
/** Has Kubernetes fail, once the pool is there, whenever it is asked for the resource. */
function failLooks(): { readonly failed: () => number; readonly end: () => void } {
  let [failed, isOver] = [0, false];
  bed.cluster.interfere = ({ method, path }) => {
    const isLook = method === "GET" && path.endsWith("/browserpools/agents");
    if (isOver || !isLook || !bed.pools.pools.has("agents")) return undefined;
    failed += 1;
    return 500;
  };
  return { failed: () => failed, end: () => (isOver = true) };
}

describe("a pool that was made for a resource which was deleted meanwhile", () => {
  test("is taken back", async () => {
    const goOn = await deleteAmidCreation();
    goOn();
    await eventually(() => expect(bed.asked("DELETE")).toEqual([deleted]));
    await eventually(() => expect(bed.pools.pools.size).toBe(0));
  });

  test("is taken back when Kubernetes tells of the resource again, which failed at first", async () => {
    const goOn = await deleteAmidCreation();
    const looks = failLooks();
    goOn();
    await eventually(() => expect(looks.failed()).toBeGreaterThan(2));
    expect(bed.asked("DELETE")).toEqual([]);
    looks.end();
    await eventually(() => expect(bed.pools.pools.size).toBe(0));
    await bed.rounds(3);
    expect(bed.asked("DELETE")).toEqual([deleted]);
    expect(bed.asked("POST")).toHaveLength(1);
  });

  test("is taken back when its leases have ended", async () => {
    const goOn = await deleteAmidCreation();
    const lend = (leased: number): void => {
      const pool = bed.pools.pools.get("agents");
      if (pool) pool.leased = leased;
    };
    bed.pools.before = (asked) => {
      if (asked === deleted && bed.asked("DELETE").length === 1) lend(1);
      return undefined;
    };
    goOn();
    await eventually(() => expect(bed.asked("DELETE").length).toBeGreaterThan(2));
    expect(bed.pools.pools.size).toBe(1);
    lend(0);
    await eventually(() => expect(bed.pools.pools.size).toBe(0));
  });

  test("is left to the resource whose name it was given meanwhile", async () => {
    const goOn = await deleteAmidCreation();
    bed.pools.before = (asked) => {
      const pool = bed.pools.pools.get("agents");
      if (asked !== deleted || !pool) return undefined;
      pool.leased = 1;
      bed.cluster.put("crawlers", { replicas: 2 });
      bed.pools.rename("agents", "crawlers");
      return undefined;
    };
    goOn();
    await eventually(() => expect(bed.statusOf("crawlers")).toMatchObject({ poolId: "id-of-agents" }));
    const pool = bed.pools.pools.get("crawlers");
    if (pool) pool.leased = 0;
    await bed.rounds(3);
    expect(bed.pools.pools.get("crawlers")).toMatchObject({ id: "id-of-agents", size: 2 });
    expect(bed.asked("DELETE")).toEqual([deleted]);
  });

  test("is taken back where the answer to its creation was lost", async () => {
    const goOn = await deleteAmidCreation({ request_limit_seconds: 1 });
    await eventually(() => expect(bed.asked("DELETE")).toContain(deleted));
    goOn();
    await bed.rounds(3);
    await eventually(() => expect(bed.pools.pools.size).toBe(0));
    expect(new Set(bed.asked("DELETE"))).toEqual(new Set([deleted]));
    expect(bed.asked("POST").length).toBeGreaterThanOrEqual(2);
  });

  test("is left to another resource of that name that has it already", async () => {
    const goOn = await deleteAmidCreation();
    const looks = failLooks();
    goOn();
    await eventually(() => expect(looks.failed()).toBeGreaterThan(0));
    // Another operator has made it that one's.
    bed.cluster.put("agents", { replicas: 6 }).status = { poolId: "id-of-agents" };
    looks.end();
    const fields = { replicas: 6, poolId: "id-of-agents" };
    await eventually(() => expect(bed.statusOf("agents")).toMatchObject(fields));
    await bed.rounds(3);
    expect(bed.asked("DELETE")).toEqual([]);
  });
});
