import { describe, expect, test } from "vitest";
import { sharedAccessBed } from "../support/access/access-bed.js";

describe.each([
  ["callers without a rate", {}],
  ["callers with a rate", { limits: { requests_per_minute: 600 } }],
])("a Redis that takes no writes, and %s", (_, file) => {
  const bed = sharedAccessBed(1, file);

  /** Has Redis refuse all writes meanwhile. */
  async function without<Got>(setting: string, [sick, well]: [string, string], work: () => Promise<Got>) {
    await bed.redis.config("SET", setting, sick);
    try {
      return await work();
    } finally {
      await bed.redis.config("SET", setting, well);
    }
  }

  test("one that is full lets keys in whose use it cannot note, and nothing is noted", async () => {
    const { id, key } = await bed.make();
    await bed.redis.config("SET", "maxmemory-policy", "noeviction");
    const context = await without("maxmemory", ["1", "0"], () => bed.as(key).call("GET /auth/context"));
    expect(context.status, context.text).toBe(200);
    const read = `GET /org/api_keys/${id}`;
    expect((await bed.root.call(read)).headers.has("x-remuda-last-used-at")).toBe(false);
    await bed.as(key).call("GET /auth/context");
    expect((await bed.root.call(read)).headers.has("x-remuda-last-used-at")).toBe(true);
  });

  test.each([
    ["is full", "maxmemory", "1"],
    ["lacks a replica", "min-replicas-to-write", "1"],
  ])("one that %s answers who reads, and says that it takes no change", async (_what, setting, sick) => {
    const { key } = await bed.make();
    await bed.redis.config("SET", "maxmemory-policy", "noeviction");
    await without(setting, [sick, "0"], async () => {
      for (const client of [bed.root, bed.as(key)]) {
        for (const read of ["GET /auth/context", "GET /browser_pools", "GET /org/api_keys"]) {
          const got = await client.call(read);
          expect(got.status, read + got.text).toBe(200);
        }
        expect(await client.call("POST /org/api_keys", { name: "late" })).toMatchObject({
          status: 503,
          body: { code: "store_unavailable" },
        });
      }
    });
    for (const client of [bed.root, bed.as(key)])
      expect((await client.call("GET /auth/context")).status).toBe(200);
  });
});
