import { expect, test } from "vitest";
import { newLeaseId } from "../../../src/base/ids.js";
import { PoolNameCache } from "../../../src/pool/lookup.js";
import { onBoth } from "../../support/store/on-both.js";
import { controlA, PoolBed } from "../../support/store/pool-bed.js";
import { claimOf, request, type StoreBed } from "../../support/store/store-bed.js";

const namedPool = async (bed: StoreBed, name: string): Promise<PoolBed> => {
  const pool = await PoolBed.filled(bed, { size: 1, name });
  await bed.projects.reserveName({ kind: "pool", name, owner: pool.id, partition: pool.partition });
  return pool;
};

const rename = async (bed: StoreBed, pool: PoolBed, name: string): Promise<void> => {
  const { name: old = "" } = pool.spec;
  await bed.projects.reserveName({ kind: "pool", name, owner: pool.id, partition: pool.partition });
  await pool.update({ name });
  await bed.projects.freeName({ kind: "pool", name: old, owner: pool.id });
};

/** The pools that a name may mean, each asked for until one is meant, as an acquire does. */
async function acquireBy(bed: StoreBed, names: PoolNameCache, ref: string): Promise<string | undefined> {
  for (const candidate of names.candidates(ref)) {
    const pool = await candidate;
    if (!pool) continue;
    const id = request();
    const waiter = { id, lease: newLeaseId(), control: controlA, connection: id };
    const reply = await bed.poolStore.acquire(pool.partition, {
      pool: pool.id,
      waiter,
      mayWait: false,
      ...(pool.name === undefined ? {} : { name: pool.name }),
    });
    if (reply.kind === "granted") return pool.id;
  }
  return undefined;
}

onBoth("names of pools", ({ bed }) => {
  test("a name that was kept and has moved to another pool means that one", async () => {
    const names = new PoolNameCache(bed().projects);
    const first = await namedPool(bed(), "mine");
    expect(await acquireBy(bed(), names, "mine")).toBe(first.id);
    await rename(bed(), first, "old");
    const second = await namedPool(bed(), "mine");
    expect(await acquireBy(bed(), names, "mine")).toBe(second.id);
    expect((await first.counts()).leased).toBe(1);
  });

  test("a name that was kept and is nobody's any more means no pool", async () => {
    const names = new PoolNameCache(bed().projects);
    const pool = await namedPool(bed(), "mine");
    const held = await acquireBy(bed(), names, "mine");
    await rename(bed(), pool, "other");
    expect(held).toBe(pool.id);
    expect(await acquireBy(bed(), names, "mine")).toBeUndefined();
  });

  test("a release by the name of another pool changes nothing", async () => {
    const pool = await namedPool(bed(), "mine");
    const held = await pool.lend();
    const before = await pool.dump();
    expect(await pool.release(held, { name: "other" })).toBe("elsewhere");
    expect(await pool.dump()).toEqual(before);
    expect(await pool.release(held, { name: "mine" })).toBe("released");
  });

  test("fences that end at once are told apart: a stale claim frees nothing", async () => {
    const pool = await PoolBed.filled(bed(), { size: 3 });
    const held = await Promise.all([pool.lend(), pool.lend(), pool.lend()]);
    for (const each of held) {
      await pool.connect(each);
      await pool.release(each);
    }
    const claims = await Promise.all(held.map(async ({ id }) => claimOf(await pool.record(id))));
    const [one, two, three] = held.map(({ id }, place) =>
      bed().reports.freed(id, place === 1 ? ("0" as never) : (claims[place] ?? ("" as never))),
    );
    expect(await Promise.all([one, two, three])).toEqual(["freed", "stale", "freed"]);
    expect(await pool.counts()).toMatchObject({ idle: 2, resetting: 1 });
  });
});
