import { afterEach, beforeEach, expect, test } from "vitest";
import { partitionOf, type PoolId } from "../../src/base/ids.js";
import type { Pool } from "../../src/pool/pool.js";
import type { PoolPatch } from "../../src/spec/bodies.js";
import { callerOf, type ControlBed, openControlBed } from "../support/daemon/control-bed.js";
import { organizationKey, projectKey } from "../../src/store/redis/keys.js";
import { PoolBed } from "../support/store/pool-bed.js";
import { age } from "../support/store/age.js";

let control: ControlBed;
let count = 0;
beforeEach(async () => {
  control = await openControlBed(`pools${(count += 1)}`);
});
afterEach(() => control.close());

const body = { size: 3, headless: true };
const keyed = () => callerOf({ idempotencyKey: "once" });
const sizes = async (): Promise<Record<string, string | undefined>> => {
  const held = await control.bed.redis.hgetall(organizationKey("reservations"));
  return Object.fromEntries(Object.entries(held).map(([owner, text]) => [owner, text.split(" ")[2]]));
};
const sizeOf = async (id: PoolId) => (await sizes())[id];
const holderOf = async (name: string) => (await control.bed.projects.findName("pool", name))?.owner;

function poolOf(outcome: { kind: string }): Pool {
  if (outcome.kind !== "done") throw new Error(JSON.stringify(outcome));
  return (outcome as { kind: "done"; value: Pool }).value;
}
const create = async (over = {}): Promise<Pool> =>
  poolOf(await control.createPool({ ...body, ...over }, callerOf()));

test("a create that is repeated under its key makes one pool; another body is refused", async () => {
  const first = poolOf(await control.createPool(body, keyed()));
  expect(poolOf(await control.createPool(body, keyed())).id).toBe(first.id);
  expect(await control.createPool({ ...body, size: 4 }, keyed())).toMatchObject({
    code: "idempotency_mismatch",
  });
  expect(await control.bed.projects.pools()).toEqual([first.id]);
});

test.each([
  "remember!",
  "addPool",
  "addPool!",
  "reserveName",
  "reserveName!",
  "reserveSize",
  "reserveSize!",
  "createPool",
  "createPool!",
  "openPool",
  "openPool!",
  "settleKey",
  "settleKey!",
])("a create in which %s fails is gone on with by its retry", async (call) => {
  control.broken.add(call);
  await expect(control.createPool({ ...body, name: "herd" }, keyed())).rejects.toThrow("Redis");
  control.broken.clear();
  const pool = poolOf(await control.createPool({ ...body, name: "herd" }, keyed()));
  expect(await control.bed.projects.pools()).toEqual([pool.id]);
  expect([await holderOf("herd"), await sizeOf(pool.id)]).toEqual([pool.id, "3"]);
});

test("a key that was sent twice, since its first answer was lost, makes its pool", async () => {
  const { projects } = control.bed;
  const remember = projects.remember.bind(projects);
  projects.remember = async (...given) => {
    await remember(...given);
    return await remember(...given);
  };
  expect(poolOf(await control.createPool(body, keyed()))).toMatchObject({ spec: { size: 3 } });
});

test("a create that failed is gone on with minutes later, when nothing is left of its first attempt", async () => {
  control.broken.add("createPool");
  await expect(control.createPool({ ...body, name: "herd" }, keyed())).rejects.toThrow("Redis");
  control.broken.clear();
  await age(control.bed.redis, "remuda:{*", 130_000);
  await control.bed.projects.sweepNames();
  await control.bed.projects.sweepPools();
  await control.bed.projects.sweepReservations();
  expect(await sizes()).toEqual({});
  expect(await control.bed.redis.hlen(projectKey(control.bed.project, "pools"))).toBe(0);
  const pool = poolOf(await control.createPool({ ...body, name: "herd" }, keyed()));
  expect([await control.bed.projects.pools(), await holderOf("herd")]).toEqual([[pool.id], pool.id]);
});

test("a create that was refused, and whose key could not be forgotten, is judged again", async () => {
  const other = await create({ name: "herd" });
  control.broken.add("forgetKey");
  await expect(control.createPool({ ...body, name: "herd" }, keyed())).rejects.toThrow("Redis");
  control.broken.clear();
  expect(await control.createPool({ ...body, name: "herd" }, keyed())).toMatchObject({ code: "name_taken" });
  await control.removePool(other.id, { force: false });
  expect(poolOf(await control.createPool({ ...body, name: "herd" }, keyed())).name).toBe("herd");
});

test("a pool that was made under a key and deleted is not made again", async () => {
  const { id } = poolOf(await control.createPool(body, keyed()));
  await control.removePool(id, { force: false });
  expect(await control.createPool(body, keyed())).toMatchObject({ code: "pool_not_found" });
});

test("a create that was refused reserves nothing, and its key may be used again", async () => {
  const herd = await create({ name: "herd" });
  expect(await control.createPool({ ...body, name: "herd" }, keyed())).toMatchObject({ code: "name_taken" });
  expect(await control.createPool({ ...body, size: 18 }, keyed())).toMatchObject({ code: "limit_exceeded" });
  expect(await sizes()).toEqual({ [herd.id]: "3" });
  poolOf(await control.createPool(body, keyed()));
});

test("a key whose pool was deleted makes no other one", async () => {
  const pool = poolOf(await control.createPool(body, keyed()));
  await control.removePool(pool.id, { force: false });
  expect(await control.createPool(body, keyed())).toMatchObject({ code: "pool_not_found" });
});

test.each([
  [
    "a wrong expectation",
    { expected_network: { private_hosts: [] }, size: 9, name: "other" },
    "stale_network",
  ],
  ["a size beyond the limit", { size: 21, name: "other" }, "limit_exceeded"],
  ["a taken name", { size: 4, name: "taken" }, "name_taken"],
  ["a body at fault", { size: 4, name: "other", refresh_on_profile_update: true }, "bad_request"],
])("%s changes nothing", async (_, patch, code) => {
  const pool = await create({ name: "herd" });
  await create({ name: "taken", size: 1 });
  expect(await control.updatePool("herd", patch, callerOf())).toMatchObject({ code });
  expect(poolOf(await control.getPool(pool.id))).toEqual(pool);
  expect([await sizeOf(pool.id), await holderOf("other"), await holderOf("herd")]).toEqual([
    "3",
    undefined,
    pool.id,
  ]);
});

test("a pool from before the operator's largest size was lowered may be changed in the rest", async () => {
  const large = await PoolBed.create(control.bed, { size: 1001 });
  expect(await control.updatePool(large.id, { timeout_seconds: 90 }, callerOf())).toMatchObject({
    value: { spec: { size: 1001, timeout_seconds: 90 } },
  });
  expect(await control.updatePool(large.id, { size: 1002 }, callerOf())).toMatchObject({
    code: "bad_request",
  });
});

test("a pool that is deleted while it is changed leaves neither name nor size", async () => {
  const pool = await create({ name: "herd" });
  const { reserveSize } = control.bed.projects;
  control.bed.projects.reserveSize = async (...given) => {
    const reserved = await reserveSize.apply(control.bed.projects, given);
    await control.removePool(pool.id, { force: true });
    return reserved;
  };
  expect(await control.updatePool(pool.id, { size: 9, name: "other" }, callerOf())).toMatchObject({
    code: "pool_not_found",
  });
  expect(await sizes()).toEqual({});
  expect([await holderOf("other"), await holderOf("herd")]).toEqual([undefined, undefined]);
});

const allowing = (host: string) => ({ allowed_hosts: [host] });

test.each<[string, PoolPatch, string]>([
  ["its network is another by then", { network: allowing("b.example") }, "stale_network"],
  ["its name is taken by then", { name: "other" }, "name_taken"],
  ["its caller has gone", { stealth: true }, "conflict"],
])(
  "a change that came second and is not tried to the end, since %s, gives back the size that it had reserved",
  async (_, first, code) => {
    const pool = await create({ name: "herd", network: allowing("a.example") });
    const { poolStore } = control.bed;
    const { updatePool } = poolStore;
    poolStore.updatePool = async (...given) => {
      poolStore.updatePool = updatePool;
      await control.updatePool(pool.id, first, callerOf());
      if (code === "name_taken") await create({ name: "herd", size: 1 });
      return await updatePool.apply(poolStore, given);
    };
    const gone = code === "conflict" ? AbortSignal.abort() : new AbortController().signal;
    const patch = { name: "herd", size: 9, expected_network: allowing("a.example") };
    expect(await control.updatePool(pool.id, patch, callerOf({ gone }))).toMatchObject({ code });
    expect(await sizeOf(pool.id)).toBe("3");
  },
);

test("two changes at once are both made, and the size that is reserved is the one that stands", async () => {
  const pool = await create();
  await Promise.all([
    control.updatePool(pool.id, { size: 5 }, callerOf()),
    control.updatePool(pool.id, { stealth: true }, callerOf()),
    control.updatePool(pool.id, { size: 7 }, callerOf()),
  ]);
  const { spec } = poolOf(await control.getPool(pool.id));
  expect(spec.stealth).toBe(true);
  expect([5, 7]).toContain(spec.size);
  await control.bed.projects.settleSize(pool.id);
  expect(await sizeOf(pool.id)).toBe(String(spec.size));
});

test("a renamed pool's old name is free, its new one is not", async () => {
  const pool = await create({ name: "herd" });
  await control.updatePool("herd", { name: "flock" }, callerOf());
  expect([await holderOf("herd"), await holderOf("flock")]).toEqual([undefined, pool.id]);
  expect(await control.getPool("herd")).toMatchObject({ code: "pool_not_found" });
});

/** `first` has done all but `call` when `second` runs whole. */
async function between(
  call: "reserveName" | "freeName",
  first: () => Promise<unknown>,
  second: () => Promise<unknown>,
): Promise<unknown> {
  const { projects } = control.bed;
  const real = projects[call] as (...given: unknown[]) => Promise<unknown>;
  (projects as unknown as Record<string, unknown>)[call] = async (...given: unknown[]) => {
    (projects as unknown as Record<string, unknown>)[call] = real;
    if (call === "freeName") await second();
    const answer = await real.apply(projects, given);
    if (call === "reserveName") await second();
    return answer;
  };
  return await first();
}

test("two changes at once give a pool the same name: it has it", async () => {
  const pool = await create({ name: "herd" });
  const renamed = () => control.updatePool(pool.id, { name: "flock" }, callerOf());
  await between("reserveName", renamed, renamed);
  expect([await holderOf("herd"), await holderOf("flock")]).toEqual([undefined, pool.id]);
  expect(poolOf(await control.getPool("flock")).id).toBe(pool.id);
});

test("a pool that is given its old name back before that was given up has it", async () => {
  const pool = await create({ name: "herd" });
  const to = (name: string) => () => control.updatePool(pool.id, { name }, callerOf());
  await between("freeName", to("flock"), to("herd"));
  expect([await holderOf("herd"), await holderOf("flock")]).toEqual([pool.id, undefined]);
});

test.each(["deletePool!", "dropPool", "dropPool!"])(
  "a delete in which %s fails is finished by its repeat",
  async (call) => {
    for (const by of ["name", "id"] as const) {
      const pool = await create({ name: "herd" });
      const ref = by === "id" ? pool.id : "herd";
      control.broken.add(call);
      await expect(control.removePool(ref, { force: false })).rejects.toThrow("Redis");
      control.broken.clear();
      const again = await control.removePool(ref, { force: false });
      expect(again.kind === "done" || (again.kind === "refused" && again.code === "pool_not_found")).toBe(
        true,
      );
      expect([await holderOf("herd"), await sizes()]).toEqual([undefined, {}]);
      expect(await control.bed.projects.pools()).toEqual([]);
    }
  },
);

test("the name of a deleted pool is free at the reply", async () => {
  const pool = await create({ name: "herd" });
  expect(await control.removePool("herd", { force: false })).toMatchObject({ kind: "done" });
  expect((await create({ name: "herd" })).id).not.toBe(pool.id);
  expect(await control.bed.poolStore.findPool(partitionOf(pool.id))).toBeUndefined();
});
