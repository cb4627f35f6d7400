import { Cluster, type Redis } from "ioredis";
import { expect, test } from "vitest";
import { CannotStart } from "../../../src/base/cannot-start.js";
import { schemaKey } from "../../../src/store/redis/keys.js";
import { checkEviction, checkSchema } from "../../../src/store/redis/schema.js";
import { onBoth } from "../../support/store/on-both.js";

onBoth("the schema number", ({ bed }) => {
  const noted = async (): Promise<number> => Number(await bed().redis.get(schemaKey));

  test("is noted in a Redis that has none, which the next start finds in order", async () => {
    await checkSchema(bed().store);
    expect(await noted()).toBeGreaterThan(1);
    await checkSchema(bed().store);
  });

  test("of an older daemon is refused: it says so, what to do, and changes nothing", async () => {
    await bed().redis.set(schemaKey, "1");
    await expect(checkSchema(bed().store)).rejects.toThrow(
      /schema 1, written by an older daemon; this one reads \d+ only: .* then empty this Redis/,
    );
    expect(await noted()).toBe(1);
  });

  test("of a newer daemon is refused, and stays", async () => {
    await bed().redis.set(schemaKey, "999");
    await expect(checkSchema(bed().store)).rejects.toThrow(/schema 999, written by a newer daemon/);
    expect(await noted()).toBe(999);
  });

  test.each(["x", "", "1.5", "-1", "0x2", " 2"])("%j is none, and is refused", async (text) => {
    await bed().redis.set(schemaKey, text);
    await expect(checkSchema(bed().store)).rejects.toThrow(/no number of a schema: .* or empty this one/);
    expect(await bed().redis.get(schemaKey)).toBe(text);
  });

  test.each(["1", "999", "x"])("of %j ends a start with one line, without a stack", async (text) => {
    await bed().redis.set(schemaKey, text);
    const error = await checkSchema(bed().store).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(CannotStart);
    expect((error as Error).stack).toBe((error as Error).message);
  });
});

onBoth("a Redis whose memory has a bound", ({ bed }) => {
  const policy = async (name: string): Promise<void> => {
    await Promise.all(mastersOf(bed().redis).map((one) => one.config("SET", "maxmemory-policy", name)));
  };

  test("is refused where it would remove keys, with what to set", async () => {
    await policy("allkeys-lru");
    await expect(checkEviction(bed().store)).rejects.toThrow(
      /maxmemory-policy allkeys-lru.*Set maxmemory-policy noeviction/,
    );
    await policy("volatile-ttl");
    await expect(checkEviction(bed().store)).rejects.toThrow(/maxmemory-policy volatile-ttl/);
    await policy("noeviction");
    await checkEviction(bed().store);
  });
});

const mastersOf = (redis: Redis | Cluster): Redis[] =>
  redis instanceof Cluster ? redis.nodes("master") : [redis];
