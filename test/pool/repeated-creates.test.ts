import { afterEach, beforeEach, expect, test } from "vitest";
import { partitionOf, type PoolId } from "../../src/base/ids.js";
import type { Pool } from "../../src/pool/pool.js";
import { callerOf, type ControlBed, openControlBed } from "../support/daemon/control-bed.js";
import { beatOfNode, launchAll } from "../support/daemon/control-pools.js";
import { gate } from "../support/gate.js";
import { aProfile } from "../support/node/registered.js";
import { age } from "../support/store/age.js";
import { organizationKey, projectKey } from "../../src/store/redis/keys.js";

let control: ControlBed;
let count = 0;
beforeEach(async () => {
  control = await openControlBed(`creates${(count += 1)}`);
});
afterEach(() => control.close());

const keyed = () => callerOf({ idempotencyKey: "once" });
function poolOf(outcome: { kind: string }): Pool {
  if (outcome.kind !== "done") throw new Error(JSON.stringify(outcome));
  return (outcome as { kind: "done"; value: Pool }).value;
}
const create = async (body: { size: number; name?: string }): Promise<Pool> =>
  poolOf(await control.createPool({ headless: true, ...body }, callerOf()));
const listed = async () => (await control.bed.projects.pools()).toSorted();
const sizeOf = async (id: PoolId) =>
  (await control.bed.redis.hget(organizationKey("reservations"), id))?.split(" ")[2];

const body = { headless: true, size: 15, name: "herd", profile: { name: "login" } };
const repeat = () => control.createPool(body, keyed());

/** The pool of a first request that failed as its key was to say that it is made. */
async function madeUnsaid(): Promise<PoolId> {
  control.broken.add("settleKey");
  await expect(control.createPool(body, keyed())).rejects.toThrow("Redis");
  control.broken.clear();
  const [made] = await listed();
  return made as PoolId;
}

/** The only pool, with its name and its room, which its key tells of. */
async function expectWhole(id: PoolId): Promise<void> {
  expect(await listed()).toEqual([id]);
  expect(await sizeOf(id)).toBe("15");
  expect((await control.bed.projects.findName("pool", "herd"))?.owner).toBe(id);
  expect(await control.createPool({ headless: true, size: 1, name: "herd" }, callerOf())).toMatchObject({
    code: "name_taken",
  });
  expect(poolOf(await repeat()).id).toBe(id);
}

const renamed = async (id: PoolId): Promise<Pool> => {
  poolOf(await control.updatePool(id, { name: "flock" }, callerOf()));
  return await create({ size: 1, name: "herd" });
};
const shrunk = async (id: PoolId): Promise<Pool> => {
  poolOf(await control.updatePool(id, { size: 1 }, callerOf()));
  return await create({ size: 19 });
};
const changes = [
  ["was renamed, and its name is another's", renamed],
  ["has shrunk, and its room is another's", shrunk],
] as const;

test.each(changes)("a pool that %s is what the repeat of its creation is told of", async (_, change) => {
  await aProfile(control.bed, "login");
  const id = await madeUnsaid();
  const other = await change(id);
  const before = poolOf(await control.getPool(id));
  expect(poolOf(await repeat())).toEqual(before);
  expect(await listed()).toEqual([id, other.id].toSorted());
  expect(await sizeOf(id)).toBe(String(before.spec.size));
  expect((await control.bed.projects.findName("pool", before.name ?? ""))?.owner).toBe(id);
  expect(poolOf(await repeat()).id).toBe(id);
});

test.each(changes)("the same where a first request would be refused by now: it %s", async (_, change) => {
  const login = await aProfile(control.bed, "login");
  const id = await madeUnsaid();
  poolOf(await control.updatePool(id, { profile: { name: "" } }, callerOf()));
  await control.bed.profiles.remove(login);
  const other = await change(id);
  expect(poolOf(await repeat()).id).toBe(id);
  expect(await listed()).toEqual([id, other.id].toSorted());
});

test.each(changes)(
  "a repeat that stood still while the first request's pool %s tells of it",
  async (_, change) => {
    await aProfile(control.bed, "login");
    const { projects } = control.bed;
    const { reserveName } = projects;
    let id: PoolId | undefined;
    projects.reserveName = async (...given) => {
      projects.reserveName = reserveName;
      ({ id } = poolOf(await repeat()));
      await change(id);
      return await reserveName.apply(projects, given);
    };
    expect(poolOf(await repeat()).id).toBe(id);
    expect(await listed()).toContain(id);
    const { name = "", spec } = poolOf(await control.getPool(id as PoolId));
    expect((await projects.findName("pool", name))?.owner).toBe(id);
    expect(await sizeOf(id as PoolId)).toBe(String(spec.size));
  },
);

test("a first request whose pool its repeat opened while it was refused tells of it", async () => {
  await aProfile(control.bed, "login");
  const other = await create({ size: 20 });
  const { projects } = control.bed;
  const { reserveSize } = projects;
  let id: PoolId | undefined;
  projects.reserveSize = async (...given) => {
    projects.reserveSize = reserveSize;
    const refused = await reserveSize.apply(projects, given);
    await control.removePool(other.id, { force: false });
    ({ id } = poolOf(await repeat()));
    return refused;
  };
  expect(poolOf(await repeat()).id).toBe(id);
  await expectWhole(id as PoolId);
});

test("a repeat that comes while what its refused first request began is given back begins anew", async () => {
  await aProfile(control.bed, "login");
  const other = await create({ size: 20 });
  const { projects } = control.bed;
  const { moveTombstones } = projects;
  let id: PoolId | undefined;
  projects.moveTombstones = async () => {
    projects.moveTombstones = moveTombstones;
    await control.removePool(other.id, { force: false });
    ({ id } = poolOf(await repeat()));
  };
  expect(await repeat()).toMatchObject({ code: "limit_exceeded" });
  await expectWhole(id as PoolId);
});

test("a repeat that is refused takes nothing from its first request, which goes on", async () => {
  await aProfile(control.bed, "login");
  const other = await create({ size: 20 });
  const { projects } = control.bed;
  const { reserveSize } = projects;
  let meanwhile: unknown;
  projects.reserveSize = async (...given) => {
    projects.reserveSize = reserveSize;
    meanwhile = await repeat();
    await control.removePool(other.id, { force: false });
    return await reserveSize.apply(projects, given);
  };
  const { id } = poolOf(await repeat());
  expect(meanwhile).toMatchObject({ code: "limit_exceeded" });
  await expectWhole(id);
});

test("a first request that is refused takes nothing from its repeat, which goes on", async () => {
  await aProfile(control.bed, "login");
  const other = await create({ size: 20 });
  const { projects, poolStore } = control.bed;
  const { reserveSize } = projects;
  const { createPool } = poolStore;
  const standing = gate();
  poolStore.createPool = async (...given) => {
    poolStore.createPool = createPool;
    await standing.pass();
    return await createPool.apply(poolStore, given);
  };
  let going: ReturnType<typeof repeat> | undefined;
  projects.reserveSize = async (...given) => {
    projects.reserveSize = reserveSize;
    const refused = await reserveSize.apply(projects, given);
    await control.removePool(other.id, { force: false });
    going = repeat();
    await standing.reached;
    return refused;
  };
  expect(await repeat()).toMatchObject({ code: "limit_exceeded" });
  const notes = await control.bed.redis.hvals(projectKey(control.bed.project, "pools"));
  expect(notes).toContainEqual(expect.stringContaining("creating"));
  standing.open();
  await expectWhole(poolOf(await (going as ReturnType<typeof repeat>)).id);
});

test("a pool that was made unsaid and deleted is looked after until it is empty, and is not made again", async () => {
  await aProfile(control.bed, "login");
  await beatOfNode(control);
  const id = await madeUnsaid();
  const partition = partitionOf(id);
  const browsers = async () => (await control.bed.poolStore.browsers(partition)).browsers;
  await launchAll(control, { partition, browsers });
  await control.removePool(id, { force: true });
  await create({ size: 6, name: "herd" });
  expect(await repeat()).toMatchObject({ code: "pool_not_found" });
  expect(await control.bed.projects.partitions()).toContain(partition);
  expect(await sizeOf(id)).toBe(undefined);
  expect(await listed()).not.toContain(id);
});

test("a repeat that would be refused by now is asked to come again while its first request is under way", async () => {
  const login = await aProfile(control.bed, "login");
  const { poolStore } = control.bed;
  const { createPool } = poolStore;
  let meanwhile: unknown;
  poolStore.createPool = async (...given) => {
    await control.bed.profiles.remove(login);
    meanwhile = await repeat();
    return await createPool.apply(poolStore, given);
  };
  const { id } = poolOf(await repeat());
  expect(meanwhile).toMatchObject({ code: "conflict" });
  expect(poolOf(await repeat()).id).toBe(id);
});

test("a repeat that would be refused by now is refused once its first request can make no pool any more", async () => {
  const login = await aProfile(control.bed, "login");
  control.broken.add("createPool");
  await expect(repeat()).rejects.toThrow("Redis");
  control.broken.clear();
  await control.bed.profiles.remove(login);
  expect(await repeat()).toMatchObject({ code: "conflict" });
  await age(control.bed.redis, "remuda:{*", 130_000);
  expect(await repeat()).toMatchObject({ code: "bad_request" });
  expect(await listed()).toEqual([]);
});

test("another body under the key is a mismatch also where it would be refused by now", async () => {
  await aProfile(control.bed, "login");
  poolOf(await repeat());
  expect(await control.createPool({ ...body, profile: { name: "other" } }, keyed())).toMatchObject({
    code: "idempotency_mismatch",
  });
});
