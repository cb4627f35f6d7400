import { expect, test } from "vitest";
import { newLeaseId, newPoolId, newRequestId, onDemandPartition } from "../../../src/base/ids.js";
import type { ProjectBounds } from "../../../src/pool/ports/project-store.js";
import { RedisLimitStore } from "../../../src/store/organization/limit-store.js";
import { organizationKey } from "../../../src/store/redis/keys.js";
import { age } from "../../support/store/age.js";
import { onBoth } from "../../support/store/on-both.js";
import { controlA, nodeA, PoolBed } from "../../support/store/pool-bed.js";
import { candidateOn, claimOf, poolSpec, writeOf } from "../../support/store/store-bed.js";

const upTo = (pooledSessions: number | null, maxPools = 1000): ProjectBounds => ({
  pooledSessions,
  maxPools,
});

onBoth("sizes of pools", ({ bed }) => {
  const reserve = async (...given: Parameters<ReturnType<typeof bed>["projects"]["reserveSize"]>) =>
    (await bed().projects.reserveSize(...given)).kind;

  test("their sum stays within the limit; shrinking always may", async () => {
    const [one, two] = [newPoolId(), newPoolId()];
    expect(await reserve(one, 6, upTo(10))).toBe("reserved");
    expect(await reserve(two, 5, upTo(10))).toBe("pooled");
    expect(await reserve(two, 4, upTo(10))).toBe("reserved");
    expect(await reserve(one, 7, upTo(10))).toBe("pooled");
    expect(await reserve(one, 6, upTo(5))).toBe("reserved");
    expect(await reserve(one, 5, upTo(3))).toBe("reserved");
    expect(await reserve(two, 100, upTo(null))).toBe("reserved");
  });

  test("there are at most so many pools; one that is there may still be resized", async () => {
    const one = newPoolId();
    expect(await reserve(one, 1, upTo(null, 1))).toBe("reserved");
    expect(await reserve(newPoolId(), 1, upTo(null, 1))).toBe("many");
    expect(await reserve(one, 2, upTo(null, 1))).toBe("reserved");
  });

  test("what no record bears out is put right after its deadline", async () => {
    const { projects, redis } = bed();
    const pool = await PoolBed.create(bed(), { size: 2 });
    expect(await reserve(pool.id, 9, upTo(10))).toBe("reserved");
    expect(await reserve(newPoolId(), 1, upTo(10))).toBe("reserved");
    await projects.sweepReservations();
    expect(await reserve(newPoolId(), 1, upTo(10))).toBe("pooled");
    await age(redis, "remuda:*", 121_000);
    await projects.sweepReservations();
    expect(await reserve(newPoolId(), 9, upTo(10))).toBe("pooled");
    expect(await reserve(newPoolId(), 8, upTo(10))).toBe("reserved");
  });

  test("a pool that is to shrink holds its old size until its record says the new one", async () => {
    const { projects } = bed();
    const pool = await PoolBed.create(bed(), { size: 6 });
    await projects.reserveSize(pool.id, 6, upTo(10));
    const shrinking = await projects.reserveSize(pool.id, 2, upTo(10));
    if (shrinking.kind !== "reserved") throw new Error(shrinking.kind);
    expect(await reserve(newPoolId(), 5, upTo(10))).toBe("pooled");
    const growing = await projects.reserveSize(pool.id, 7, upTo(10));
    await projects.settleSize(pool.id, shrinking);
    expect(await reserve(newPoolId(), 4, upTo(10))).toBe("pooled");
    if (growing.kind !== "reserved") throw new Error(growing.kind);
    await projects.settleSize(pool.id, growing);
    expect(await reserve(newPoolId(), 4, upTo(10))).toBe("reserved");
  });

  test("a change that is not written gives back what it has reserved, and leaves what another has", async () => {
    const { projects } = bed();
    const reserved = async (size: number) => {
      const reply = await projects.reserveSize(pool.id, size, upTo(20));
      if (reply.kind !== "reserved") throw new Error(reply.kind);
      return reply;
    };
    const held = async () => await bed().redis.hget(organizationKey("usage"), "pool");
    const pool = await PoolBed.create(bed(), { size: 6 });
    await reserved(6);
    const [one, other] = [await reserved(8), await reserved(9)];
    await projects.giveBackSize(pool.id, one);
    expect(await held()).toBe("9");
    await projects.giveBackSize(pool.id, other);
    expect(await held()).toBe("8");
    await projects.giveBackSize(pool.id, one);
    expect(await held()).toBe("6");
    const late = await reserved(8);
    await pool.update({ size: 7 });
    await projects.giveBackSize(pool.id, late);
    expect(await held()).toBe("7");
  });

  test("an open pool whose reservation was lost has it again after the next look", async () => {
    const { projects, redis } = bed();
    const pool = await PoolBed.create(bed(), { size: 6 });
    await projects.openPool(pool.id);
    await projects.sweepReservations();
    expect(await redis.hgetall(organizationKey("usage"))).toMatchObject({ pool: "6" });
    expect(await reserve(newPoolId(), 5, upTo(10))).toBe("pooled");
  });
});

onBoth(
  "sessions on demand",
  ({ bed }) => {
    const bounds = upTo(null);
    const reserved = async (): Promise<number> =>
      (await bed().projects.reserveSession(newLeaseId())).kind === "reserved" ? 1 : 0;
    const usage = () => bed().redis.hgetall(organizationKey("usage"));
    const pass = async (ms: number): Promise<void> => {
      await age(bed().redis, "remuda:*", ms);
      await bed().projects.sweepReservations();
    };
    const launched = async (reservedUntil?: number) => {
      const { poolStore, project } = bed();
      const id = newRequestId();
      const waiter = { id, lease: newLeaseId(), control: controlA, connection: id, timeoutSeconds: 60 };
      const { template } = writeOf(poolSpec());
      const reply = await poolStore.createSession(onDemandPartition, {
        candidate: candidateOn(onDemandPartition, nodeA),
        waiter,
        template,
        ...(reservedUntil !== undefined && { reservedUntil }),
      });
      return { waiter, reply, project };
    };

    test("share the limit with pools, whose sizes count whole", async () => {
      const { projects } = bed();
      const pool = newPoolId();
      expect((await projects.reserveSize(pool, 3, bounds)).kind).toBe("reserved");
      expect([await reserved(), await reserved(), await reserved()]).toEqual([1, 1, 0]);
      expect((await projects.reserveSize(newPoolId(), 1, bounds)).kind).toBe("concurrent");
      expect((await projects.reserveSize(pool, 4, bounds)).kind).toBe("concurrent");
      await projects.dropPool(pool);
      expect([await reserved(), await reserved(), await reserved(), await reserved()]).toEqual([1, 1, 1, 0]);
    });

    test("a project has its own limit, else the organization's default for projects", async () => {
      const { projects, redis, project } = bed();
      await redis.hset(organizationKey("limits"), "default", 2);
      expect([await reserved(), await reserved(), await reserved()]).toEqual([1, 1, 0]);
      await redis.hset(organizationKey("limits"), `project ${project}`, 3);
      expect([await reserved(), await reserved()]).toEqual([1, 0]);
      await redis.del(organizationKey("limits"));
      expect((await projects.reserveSize(newPoolId(), 2, bounds)).kind).toBe("reserved");
      expect(await reserved()).toBe(0);
    });

    test("one that was never claimed is given back after its deadline", async () => {
      expect(await reserved()).toBe(1);
      await pass(1000);
      expect(await usage()).toMatchObject({ session: "1" });
      await pass(30_000);
      expect(await usage()).toEqual({});
    });

    test("nothing is claimed under a reservation that is void by then", async () => {
      const { store } = bed();
      const now = await store.now();
      expect((await launched(now - 1)).reply.kind).toBe("full");
      expect((await launched(now + 30_000)).reply.kind).toBe("claimed");
    });

    test("one that waits or lives keeps its place, also where its reservation was lost", async () => {
      const { waiter, reply } = await launched();
      if (reply.kind !== "claimed") throw new Error(reply.kind);
      await pass(0);
      await pass(40_000);
      expect(await usage()).toMatchObject({ session: "1" });
      await bed().poolStore.beat(onDemandPartition, controlA);
      await bed().reports.launched(reply.browser.id, claimOf(reply.browser), "{}");
      await pass(40_000);
      expect(await usage()).toMatchObject({ session: "1" });
      await bed().projects.settleSession(waiter.lease, waiter.id);
      expect(await usage()).toMatchObject({ session: "1" });
      await bed().poolStore.undo(onDemandPartition, waiter.lease, newRequestId());
      expect(await usage()).toEqual({});
    });

    test("giving back twice is harmless", async () => {
      const { projects } = bed();
      const lease = newLeaseId();
      await projects.reserveSession(lease);
      await projects.reserveSession(lease);
      expect(await usage()).toMatchObject({ session: "1" });
      await Promise.all([projects.freeSession(lease), projects.freeSession(lease)]);
      await projects.forgetPool(newPoolId());
      expect(await usage()).toEqual({});
    });
  },
  { concurrentSessions: 5 },
);

onBoth("without a limit of the organization", ({ bed }) => {
  test("sessions on demand are reserved once the API has set one, those that live at the next look", async () => {
    const { projects, redis } = bed();
    expect((await projects.reserveSession(newLeaseId())).kind).toBe("unlimited");
    expect(await redis.exists(organizationKey("reservations"))).toBe(0);
    await redis.hset(organizationKey("limits"), "default", 1);
    await expect.poll(async () => (await projects.reserveSession(newLeaseId())).kind).toBe("reserved");
    expect((await projects.reserveSession(newLeaseId())).kind).toBe("ofProject");
    expect((await projects.reserveSize(newPoolId(), 1, upTo(null))).kind).toBe("ofProject");
  });

  test("the control that sets a first limit goes by it at once, one of a project too, and by its removal", async () => {
    const { store, projects, allProjects, project } = bed();
    const limits = new RedisLimitStore(store, allProjects);
    const reserve = async (): Promise<string> => (await projects.reserveSession(newLeaseId())).kind;
    expect(await reserve()).toBe("unlimited");
    expect(await limits.setOfEachProject(null, 1)).toBe("set");
    expect([await reserve(), await reserve()]).toEqual(["reserved", "ofProject"]);
    expect(await limits.setOfEachProject(1, null)).toBe("set");
    expect(await reserve()).toBe("unlimited");
    await limits.setOfProject(project, 2);
    expect([await reserve(), await reserve()]).toEqual(["reserved", "ofProject"]);
    await limits.setOfProject(project, null);
    expect(await reserve()).toBe("unlimited");
  });
});
