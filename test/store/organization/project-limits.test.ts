import { expect, test } from "vitest";
import { newLeaseId, newPoolId, newProjectId, type ProjectId } from "../../../src/base/ids.js";
import { RedisLimitStore } from "../../../src/store/organization/limit-store.js";
import { RedisProjects } from "../../../src/store/project/projects.js";
import { organizationKey } from "../../../src/store/redis/keys.js";
import { Random } from "../../simulation/random.js";
import { age } from "../../support/store/age.js";
import { onBoth } from "../../support/store/on-both.js";
import { openStoreBed } from "../../support/store/store-bed.js";
import { defaultLimits } from "../../support/store/store-limits.js";
import { unsynced } from "../../support/store/unsynced.js";

const ofAll = 12;
const daemons = 3;

onBoth("limits of projects", ({ bed, server }) => {
  const usage = () => bed().redis.hgetall(organizationKey("usage"));
  const usedBy = async (project: ProjectId): Promise<number> => {
    const used = await usage();
    return Number(used[`pool ${project}`] ?? 0) + Number(used[`session ${project}`] ?? 0);
  };
  const projectsAt = (store: ReturnType<typeof bed>["store"], ids: readonly ProjectId[]): RedisProjects =>
    new RedisProjects(store, {
      vaultWrites: unsynced,
      limits: { ...defaultLimits, concurrentSessions: ofAll },
      unnamed: bed().project,
      others: async () => ids,
    });

  test.each([1, 2])(
    "bursts at several daemons, some of which die, never exceed one, and leave nothing of it unused (seed %i)",
    async (seed) => {
      const random = new Random(seed);
      const ids = [newProjectId(), newProjectId(), newProjectId()];
      const own = new Map(ids.map((id, at) => [id, [5, 3, 7][at] ?? 0]));
      const limits = new RedisLimitStore(bed().store, bed().allProjects);
      for (const [id, limit] of own) await limits.setOfProject(id, limit);
      const beds = await Promise.all(
        Array.from({ length: daemons }, () => openStoreBed(server(), { project: "other" })),
      );
      const all = beds.map(({ store }) => projectsAt(store, ids));
      const pick = <Value>(values: readonly Value[]): Value => random.pick(values) as Value;
      for (let burst = 0; burst < 15; burst += 1) {
        const calls = Array.from({ length: random.between(1, 12) }, async () => {
          const { projects } = pick(all).of(pick(ids));
          const size = random.between(1, 3);
          if (random.chance(0.5)) {
            const pool = newPoolId();
            await projects.reserveSize(pool, size, { pooledSessions: null, maxPools: 100 });
            // Whoever dies here gives nothing back.
            return random.chance(0.3) ? await projects.dropPool(pool) : undefined;
          }
          const lease = newLeaseId();
          await projects.reserveSession(lease);
          return random.chance(0.6) ? await projects.freeSession(lease) : undefined;
        });
        await Promise.all(calls);
        for (const [id, limit] of own) expect(await usedBy(id)).toBeLessThanOrEqual(limit);
        const { pool = 0, session = 0 } = await usage();
        expect(Number(pool) + Number(session)).toBeLessThanOrEqual(ofAll);
        if (!random.chance(0.2)) continue;
        await age(bed().redis, "remuda:*", random.between(10_000, 130_000));
        await pick(all).sweepReservations();
      }
      await age(bed().redis, "remuda:*", 130_000);
      await pick(all).sweepReservations();
      expect(await usage()).toEqual({});
      for (const [id, limit] of own) {
        const { projects } = pick(all).of(id);
        const leases = Array.from({ length: limit + 2 }, () => newLeaseId());
        const got = await Promise.all(leases.map((lease) => projects.reserveSession(lease)));
        expect(got.filter(({ kind }) => kind === "reserved")).toHaveLength(limit);
        await Promise.all(leases.map((lease) => projects.freeSession(lease)));
      }
      await Promise.all(beds.map((other) => other.close()));
    },
  );

  test("the account is read once for all projects, also for one of which nothing else is known", async () => {
    const ids = Array.from({ length: 5 }, () => newProjectId());
    const forgotten = newProjectId();
    const { store } = bed();
    const projects = projectsAt(store, ids);
    await projects.of(forgotten).projects.reserveSession(newLeaseId());
    await age(bed().redis, "remuda:*", 130_000);
    const mapsRead = async (): Promise<number> =>
      Number(/cmdstat_hgetall:calls=(\d+)/.exec(await bed().redis.info("commandstats"))?.[1] ?? 0);
    const before = await mapsRead();
    await projects.sweepReservations();
    // The account, and the pools of each project: the five, the first one and the one that is forgotten.
    expect((await mapsRead()) - before).toBe(1 + 7);
    expect(await usage()).toEqual({});
  });
});
