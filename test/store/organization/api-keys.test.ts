import { expect, test } from "vitest";
import type { ApiKey, IssueResult } from "../../../src/access/api-key.js";
import { newApiKeyId, newRequestId } from "../../../src/base/ids.js";
import { RedisApiKeyStore } from "../../../src/store/organization/api-key-store.js";
import { onBoth } from "../../support/store/on-both.js";

const person = { id: "root", email: "root@remuda.invalid", name: null };
let count = 0;
const drawn = (more: Partial<ApiKey> = {}) => ({
  id: newApiKeyId(),
  digest: `digest-${(count += 1)}`,
  mask: "rmd_...wxyz",
  createdBy: person,
  ...more,
});
const plain = { salt: "salt" };
const day = 24 * 60 * 60 * 1000;

const keyOf = (got: IssueResult | { readonly kind: string }): ApiKey => {
  if (!("key" in got)) throw new Error(`no key: ${got.kind}`);
  return got.key;
};

onBoth("API keys", ({ bed }) => {
  const store = (limits = {}) =>
    new RedisApiKeyStore(bed().store, {
      maxKeys: 5,
      maxDeletedKeys: 2,
      idempotencyMs: 60_000,
      requestsPerMinute: null,
      ...limits,
    });
  const make = async (more: Partial<ApiKey> = {}): Promise<ApiKey> =>
    keyOf(await store({ maxKeys: 100 }).create({ ...drawn(more), name: more.name ?? "one" }, plain));

  test("a name that reads like a project of the key's is none", async () => {
    const made = await make({ name: '","projectId":"aaaaaaaaaaaa' });
    expect(await store().admit(made.digest)).toEqual({ kind: "admitted", key: made });
    const scoped = await make({ name: '"projectId":"default"', projectId: "aaaaaaaaaaaa" as never });
    expect(await store().admit(scoped.digest)).toEqual({ kind: "elsewhere", key: scoped });
  });

  test("a key is found by its digest, with all it was made with, until it is deleted", async () => {
    const policy = { statements: [{ action: "browsers:use", resource: "projects/default/*" }] };
    const made = await make({ policy, name: 'ü " / \\ \u2028' });
    expect(made).toMatchObject({
      name: 'ü " / \\ \u2028',
      policy,
      createdBy: person,
      createdAt: expect.any(Number),
    });
    expect("expiresAt" in made || "deletedAt" in made || "projectId" in made).toBe(false);
    expect(await store().admit(made.digest)).toEqual({ kind: "admitted", key: made });
    expect(await store().admit("another")).toEqual({ kind: "unknown" });
    expect(await store().lastUsed(made.id)).toBeGreaterThanOrEqual(made.createdAt);
    const request = newRequestId();
    expect(await store().remove(made.id, request)).toBe("deleted");
    // The command again, whose answer was lost on its way; and another one.
    expect(await store().remove(made.id, request)).toBe("deleted");
    expect(await store().remove(made.id, newRequestId())).toBe("missing");
    expect(await store().admit(made.digest)).toEqual({ kind: "unknown" });
    expect(await store().find(made.id)).toMatchObject({ id: made.id, deletedAt: expect.any(Number) });
    expect(await store().rename(made.id, "late")).toBeUndefined();
  });

  test("Redis's time decides whether a key has expired", async () => {
    const made = await make({ lifetimeDays: 10 });
    expect(made.expiresAt).toBe(made.createdAt + 10 * day);
    expect(await store().admit(made.digest)).toMatchObject({ kind: "admitted" });
    const [, next] = await Promise.all([
      store().rotate({ id: made.id, graceMs: 0 }, drawn(), plain),
      make({ lifetimeDays: 1 }),
    ]);
    expect(await store().admit(made.digest)).toMatchObject({ kind: "expired", key: { id: made.id } });
    expect(await store().admit(next.digest)).toMatchObject({ kind: "admitted" });
  });

  test("a rotation copies name, project, policy and life, and brings the old end only nearer", async () => {
    const policy = { statements: [{ action: "browsers:use", resource: "projects/default/*" }] };
    const old = keyOf(
      await store().create(
        { ...drawn({ policy, lifetimeDays: 5 }), name: "old", projectId: "default" as never },
        plain,
      ),
    );
    const next = keyOf(await store().rotate({ id: old.id, graceMs: day }, drawn(), plain));
    expect(next).toMatchObject({
      name: "old",
      projectId: "default",
      policy,
      lifetimeDays: 5,
      rotatedFrom: old.id,
    });
    expect(next.expiresAt).toBe(next.createdAt + 5 * day);
    const graced = await store().find(old.id);
    expect(graced?.expiresAt).toBe(next.createdAt + day);
    await store().rotate({ id: old.id, graceMs: 4 * day }, drawn(), plain);
    expect((await store().find(old.id))?.expiresAt).toBe(graced?.expiresAt);
    expect(await store().rotate({ id: old.id, graceMs: 6 * day }, drawn(), plain)).toEqual({ kind: "short" });
    expect(await store().rotate({ id: newApiKeyId(), graceMs: 0 }, drawn(), plain)).toEqual({
      kind: "missing",
    });
  });

  test("a create that is sent again is answered as before; one under its idempotency key is told the salt", async () => {
    const ask = { ...drawn(), name: "once" };
    const first = await store().create(ask, plain);
    expect(await store().create(ask, plain)).toEqual(first);
    const idempotencyKey = { key: "k1", body: "b1" };
    const issued = keyOf(await store().create({ ...drawn(), name: "x" }, { salt: "first", idempotencyKey }));
    const again = await store().create({ ...drawn(), name: "x" }, { salt: "second", idempotencyKey });
    expect(again).toEqual({ kind: "same", salt: "first", key: issued });
    const other = { key: "k1", body: "b2" };
    expect(await store().create({ ...drawn(), name: "y" }, { salt: "s", idempotencyKey: other })).toEqual({
      kind: "mismatch",
    });
    expect((await store().page({ limit: 10, offset: 0 }, null)).items).toHaveLength(2);
  });

  test("there are no more than there may be, and of the deleted the oldest go", async () => {
    const made: ApiKey[] = [];
    for (let at = 0; at < 5; at += 1) made.push(await make({ name: `key ${at}` }));
    expect(await store().create({ ...drawn(), name: "six" }, plain)).toEqual({ kind: "many", most: 5 });
    expect(await store().page({ limit: 2, offset: 1 }, null)).toMatchObject({
      items: [{ name: "key 3" }, { name: "key 2" }],
      hasMore: true,
      nextOffset: 3,
    });
    for (const { id } of made.slice(0, 4)) await store().remove(id, newRequestId());
    const all: ApiKey[] = [];
    for (const state of ["living", "deleted"] as const)
      for await (const part of store().each(null, state)) all.push(...part);
    expect(all.map(({ name }) => name).toSorted()).toEqual(["key 2", "key 3", "key 4"]);
    expect(await bed().redis.hlen("remuda:{access}:apiKeys")).toBe(3);
    expect(await bed().redis.hlen("remuda:{access}:keyDigests")).toBe(1);
  });

  test("to admit costs as much with a hundred keys as with one, and seldom writes", async () => {
    const made = await make();
    const cost = async (): Promise<string> => {
      await bed().redis.config("RESETSTAT");
      await store().admit(made.digest);
      const text = await bed().redis.info("commandstats");
      const counts = [...text.matchAll(/^cmdstat_(\w+):calls=(\d+)/gm)].map(
        ([, name, calls]) => `${name} ${calls}`,
      );
      return counts
        .filter((line) => !/^(config|info|script|select)/.test(line))
        .toSorted()
        .join(", ");
    };
    expect(await cost()).toContain("hset 1");
    const alone = await cost();
    expect(alone).not.toContain("hset");
    for (let at = 0; at < 60; at += 1) await make();
    expect(await cost()).toBe(alone);
  });
});
