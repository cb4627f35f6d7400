import { expect, test } from "vitest";
import type { ApiKey } from "../../../src/access/api-key.js";
import { defaultProject, newApiKeyId, newRequestId, type ProjectId } from "../../../src/base/ids.js";
import { makeEndLeases } from "../../../src/lease/end-leases.js";
import { RedisApiKeyStore } from "../../../src/store/organization/api-key-store.js";
import { onBoth } from "../../support/store/on-both.js";

const createdBy = { id: "root", email: "root@remuda.invalid", name: null };

onBoth("keys that have ended", ({ bed }) => {
  let count = 0;
  const drawn = (more: Partial<ApiKey> = {}) => ({
    id: newApiKeyId(),
    digest: `digest-${(count += 1)}`,
    mask: "rmd_...wxyz",
    createdBy,
    ...more,
  });
  const limits = { maxKeys: 50, maxDeletedKeys: 5, idempotencyMs: 60_000, requestsPerMinute: null };
  const store = () => new RedisApiKeyStore(bed().store, limits);
  async function make(more: Partial<ApiKey> = {}): Promise<ApiKey> {
    const got = await store().create({ ...drawn(more), name: "one" }, { salt: "salt" });
    if (got.kind !== "issued") throw new Error(`no key: ${got.kind}`);
    return got.key;
  }

  test("a deleted, an expired and an unknown key have ended; one that lives or has a grace has not", async () => {
    const [deleted, expired, living, graced] = [await make(), await make(), await make(), await make()];
    await store().remove(deleted.id, newRequestId());
    await store().rotate({ id: expired.id, graceMs: 0 }, drawn(), { salt: "salt" });
    await store().rotate({ id: graced.id, graceMs: 60_000 }, drawn(), { salt: "salt" });
    const ids = [deleted, expired, living, graced].map(({ id }) => id);
    expect(await store().endedAmong([...ids, "nobody"])).toEqual([deleted.id, expired.id, "nobody"]);
    expect(await store().endedAmong([living.id])).toEqual([]);
    expect([...(await store().ended()).ids].toSorted()).toEqual([deleted.id, expired.id].toSorted());
    const { at } = await store().ended();
    await store().forget(at);
    expect((await store().ended()).ids.size).toBe(0);
    // Those that are still to end are not forgotten.
    expect(await bed().redis.zrange("remuda:{access}:keyEnds", "0", "-1")).toEqual([graced.id]);
  });

  test("a key has ended while its project is not active, and one of the default project never for that", async () => {
    const active = "remuda:{access}:activeProjects";
    const project = "a".repeat(12) as ProjectId;
    const [own, standard] = [await make({ projectId: project }), await make({ projectId: defaultProject })];
    const ids = [own.id, standard.id];
    await bed().redis.sadd(active, project);
    expect(await store().endedAmong(ids)).toEqual([]);
    await bed().redis.srem(active, project);
    expect(await store().endedAmong(ids)).toEqual([own.id]);
  });

  test("where leases are to outlive keys, nothing is looked at, and ended keys are forgotten", async () => {
    const key = await make();
    await store().remove(key.id, newRequestId());
    const never = async (): Promise<never> => {
      throw new Error("it was looked at");
    };
    const ports = {
      keys: store(),
      poolStore: { browsers: never, release: never },
      projects: { partitions: never },
    };
    await expect(makeEndLeases({ ...ports, isWanted: true })()).rejects.toThrow("it was looked at");
    expect((await store().ended()).ids.has(key.id)).toBe(true);
    await makeEndLeases({ ...ports, isWanted: false })();
    expect((await store().ended()).ids.size).toBe(0);
  });
});
