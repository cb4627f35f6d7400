import { expect, test } from "vitest";
import { RedisLimitStore, RedisRateLimiter } from "../../../src/store/organization/limit-store.js";
import { organizationKey, rateKey } from "../../../src/store/redis/keys.js";
import { onBoth } from "../../support/store/on-both.js";
import { expectBoundBursts, passFor } from "../../support/store/rate-bursts.js";
import { openStoreBed } from "../../support/store/store-bed.js";

const minute = 60_000_000;

onBoth("limits that the API sets", ({ bed }) => {
  test("one is set where it is still what it was read as", async () => {
    const limits = new RedisLimitStore(bed().store, bed().allProjects);
    expect(await limits.read()).toEqual({ ofEachProject: null, isAnySet: false, reserved: 0 });
    expect(await limits.setOfEachProject(null, 5)).toBe("set");
    expect(await limits.setOfEachProject(null, 6)).toBe("changed");
    expect(await limits.setOfEachProject(5, 7)).toBe("set");
    expect((await limits.read()).ofEachProject).toBe(7);
    expect(await limits.setOfEachProject(7, null)).toBe("set");
    expect(await bed().redis.exists("remuda:{organization}:limits")).toBe(0);
  });

  test("a change that is asked for again, since its answer was lost, is answered the same", async () => {
    const limits = new RedisLimitStore(bed().store, bed().allProjects);
    for (const [before, after] of [
      [null, 5],
      [5, null],
    ] as const) {
      expect(await limits.setOfEachProject(before, after)).toBe("set");
      expect(await limits.setOfEachProject(before, after)).toBe("set");
    }
  });

  test("what is used is told where single projects have limits alone, too", async () => {
    const { project, redis, store } = bed();
    const limits = new RedisLimitStore(store, bed().allProjects);
    await limits.setOfProject(project, 3);
    await redis.hset(organizationKey("usage"), "session", 2);
    expect(await limits.read()).toEqual({ ofEachProject: null, isAnySet: true, reserved: 2 });
    await limits.setOfProject(project, null);
    expect(await limits.read()).toEqual({ ofEachProject: null, isAnySet: false, reserved: 2 });
  });
});

onBoth("a rate", ({ bed, server }) => {
  /** Makes so many ms pass for the bucket. */
  const pass = (ms: number) => passFor(bed().redis, rateKey("tries"), ms);

  test.each([1, 2])(
    "bursts at several daemons never have more than it holds, nor less (seed %i)",
    async (seed) => {
      const perMinute = 6;
      const others = await Promise.all([1, 2].map(() => openStoreBed(server(), { project: "other" })));
      const limiters = [bed(), ...others].map(({ store }) => new RedisRateLimiter(store, perMinute));
      const takers = limiters.map((limiter) => () => limiter.take("tries"));
      await expectBoundBursts({ seed, perMinute, now: () => bed().store.now(), pass, takers });
      await Promise.all(others.map((other) => other.close()));
    },
  );

  test("what is left is told, and a refusal takes nothing", async () => {
    const limiter = new RedisRateLimiter(bed().store, 2);
    expect(await limiter.take("tries")).toEqual({ perMinute: 2, remaining: 1 });
    expect(await limiter.take("others")).toEqual({ perMinute: 2, remaining: 1 });
    expect(await limiter.take("tries")).toEqual({ perMinute: 2, remaining: 0 });
    for (let tries = 0; tries < 3; tries += 1)
      expect((await limiter.take("tries")).retryAfterMs).toBeGreaterThan(0);
    await pass(30_000);
    expect(await limiter.take("tries")).toEqual({ perMinute: 2, remaining: 0 });
    expect(await bed().redis.pttl(rateKey("tries"))).toBeGreaterThan(0);
  });

  test("a bucket that is full far ahead, since Redis's clock went back, is empty and no worse", async () => {
    const limiter = new RedisRateLimiter(bed().store, 2);
    await bed().redis.set(rateKey("tries"), String(Date.now() * 1000 + 100 * minute));
    const got = await limiter.take("tries");
    expect(got).toMatchObject({ remaining: 0, retryAfterMs: expect.any(Number) });
    expect(got.retryAfterMs).toBeLessThanOrEqual(30_000);
    // It is refilled from then on, not from when the clock is where it was.
    expect(await bed().redis.pttl(rateKey("tries"))).toBeGreaterThan(0);
    await pass(30_000);
    expect(await limiter.take("tries")).toEqual({ perMinute: 2, remaining: 0 });
  });
});
