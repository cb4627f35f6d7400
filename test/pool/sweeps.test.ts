import { afterEach, beforeEach, expect, test } from "vitest";
import { newPoolId, partitionOf, type PoolId } from "../../src/base/ids.js";
import { organizationKey, partitionKey, projectKey } from "../../src/store/redis/keys.js";
import { age } from "../support/store/age.js";
import { startRedis, type TestRedis } from "../support/store/redis.js";
import { openStoreBed, poolSpec, request, type StoreBed, writeOf } from "../support/store/store-bed.js";

const count = 300;
/** One look at each pool, and what it takes to find out which are due. */
const cheap = {
  asked: expect.toSatisfy((asked: number) => asked < count + 10),
  atOnce: expect.toSatisfy((atOnce: number) => atOnce > 32 && atOnce <= 64),
};

let server: TestRedis;
let bed: StoreBed;
beforeEach(async () => {
  server = await startRedis();
  bed = await openStoreBed(server, { project: "sweeps" });
  await Promise.all(Array.from({ length: count }, (_, place) => makePool(`pool-${place}`)));
  await age(bed.redis, "remuda:*", 10_000_000);
});
afterEach(async () => {
  await bed.close();
  await server.stop();
});

/** As a control makes one, or as it leaves one that dies before the record is written. */
async function makePool(name: string, isWritten = true): Promise<PoolId> {
  const { projects, poolStore } = bed;
  const id = newPoolId();
  await projects.addPool(id);
  await projects.reserveName({ kind: "pool", name, owner: id, partition: partitionOf(id) });
  await projects.reserveSize(id, 1, { pooledSessions: null, maxPools: count * 2 });
  if (!isWritten) return id;
  const write = writeOf(poolSpec({ size: 1, name }));
  await poolStore.createPool(partitionOf(id), { id, write, request: request() });
  await projects.openPool(id);
  return id;
}

interface Asking {
  readonly asked: number;
  /** The most that were under way side by side. */
  readonly atOnce: number;
}

/** What some work asks Redis beside scripts. */
async function askingOf(work: () => Promise<unknown>): Promise<Asking> {
  const { store } = bed;
  const ask = store.ask.bind(store);
  let [asked, underWay, atOnce] = [0, 0, 0];
  store.ask = async (command) => {
    asked += 1;
    atOnce = Math.max(atOnce, (underWay += 1));
    return await ask(command).finally(() => (underWay -= 1));
  };
  await work();
  store.ask = ask;
  return { asked, atOnce };
}

test("a look at the names of many pools does not ask for one after another", async () => {
  await makePool("nobody's", false);
  await age(bed.redis, "remuda:*", 10_000_000);
  expect(await askingOf(() => bed.projects.sweepNames())).toMatchObject(cheap);
  expect(await bed.projects.findName("pool", "nobody's")).toBeUndefined();
  expect(await bed.projects.findName("pool", `pool-${count - 1}`)).toBeDefined();
});

test("a look at the sizes of many pools does not ask for one after another", async () => {
  await makePool("nobody's", false);
  await age(bed.redis, "remuda:*", 10_000_000);
  expect(await askingOf(() => bed.projects.sweepReservations())).toMatchObject(cheap);
  expect(await bed.redis.hgetall(organizationKey("usage"))).toMatchObject({ pool: `${count}` });
  await bed.redis.del(organizationKey("reservations"), organizationKey("usage"));
  expect(await askingOf(() => bed.projects.sweepReservations())).toMatchObject(cheap);
  expect(await bed.redis.hgetall(organizationKey("usage"))).toMatchObject({ pool: `${count}` });
});

test("pools whose records cannot be read keep no other from being settled, and none from being listed", async () => {
  const { project, projects, redis } = bed;
  const spoil = (id: PoolId): Promise<unknown> =>
    redis.set(partitionKey(project, partitionOf(id), "pool"), "no record");
  const unmade = await Promise.all(["one", "two", "three"].map((name) => makePool(name, false)));
  const spoiled = [await makePool("spoiled", false), await makePool("spoiled too")];
  await age(redis, "remuda:*", 10_000_000);
  for (const id of spoiled) await spoil(id);
  await redis.del(projectKey(project, "poolOrder"));
  await expect(projects.sweepPools()).rejects.toThrow("WRONGTYPE");
  const noted = await redis.hkeys(projectKey(project, "pools"));
  expect(noted).toHaveLength(count + 2);
  expect(noted.filter((id) => unmade.some((one) => one === id))).toEqual([]);
  expect(await projects.newestPools(0, count * 2)).toHaveLength(count);
});
