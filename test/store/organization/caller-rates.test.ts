import { expect, test } from "vitest";
import type { ApiKey } from "../../../src/access/api-key.js";
import type { Rate } from "../../../src/access/rate-limiter.js";
import { defaultProject, newApiKeyId, type ProjectId } from "../../../src/base/ids.js";
import { RedisApiKeyStore } from "../../../src/store/organization/api-key-store.js";
import { RedisCallerStore } from "../../../src/store/organization/caller-store.js";
import { callerRateKey } from "../../../src/store/redis/keys.js";
import type { ScriptStore } from "../../../src/store/redis/redis.js";
import { onBoth } from "../../support/store/on-both.js";
import { expectBoundBursts, passFor } from "../../support/store/rate-bursts.js";
import { openStoreBed } from "../../support/store/store-bed.js";

const person = { id: "root", email: "root@remuda.invalid", name: null };
const keysIn = (store: ScriptStore, requestsPerMinute: number | null): RedisApiKeyStore =>
  new RedisApiKeyStore(store, { maxKeys: 9, maxDeletedKeys: 2, idempotencyMs: 60_000, requestsPerMinute });

onBoth("the rate of a caller", ({ bed, server }) => {
  let count = 0;
  async function make(more: Partial<ApiKey> = {}): Promise<ApiKey> {
    const digest = `digest-${(count += 1)}`;
    const drawn = { id: newApiKeyId(), digest, mask: "rmd_...wxyz", createdBy: person, ...more };
    const got = await keysIn(bed().store, null).create({ ...drawn, name: "one" }, { salt: "salt" });
    if (got.kind !== "issued") throw new Error(`no key: ${got.kind}`);
    return got.key;
  }
  /** Makes so many ms pass for the bucket. */
  const pass = (caller: string, ms: number) => passFor(bed().redis, callerRateKey(caller), ms);
  const rateOf = async (store: RedisApiKeyStore, { digest }: ApiKey): Promise<Rate> => {
    const got = await store.admit(digest);
    if (got.kind === "unknown" || got.rate === undefined) throw new Error(`no rate: ${got.kind}`);
    expect(got.kind).toBe(got.rate.retryAfterMs === undefined ? "admitted" : "limited");
    return got.rate;
  };

  test.each([1, 2, 3])(
    "bursts of one key at several daemons never have more than its rate, nor less (seed %i)",
    async (seed) => {
      const perMinute = 6;
      const other = await openStoreBed(server(), { project: "other" });
      const stores = [bed(), other].map(({ store }) => keysIn(store, perMinute));
      const key = await make();
      await expectBoundBursts({
        seed,
        perMinute,
        now: () => bed().store.now(),
        pass: (ms) => pass(key.digest, ms),
        takers: stores.map((store) => () => rateOf(store, key)),
      });
      await other.close();
    },
  );

  test("each key has a bucket of its own, in the one command that lets it in", async () => {
    const [one, another] = [await make(), await make()];
    const store = keysIn(bed().store, 2);
    expect(await rateOf(store, one)).toEqual({ perMinute: 2, remaining: 1 });
    expect(await rateOf(store, one)).toEqual({ perMinute: 2, remaining: 0 });
    expect(await rateOf(store, one)).toMatchObject({ remaining: 0, retryAfterMs: expect.any(Number) });
    expect(await rateOf(store, another)).toEqual({ perMinute: 2, remaining: 1 });
    await pass(one.digest, 30_000);
    expect(await rateOf(store, one)).toEqual({ perMinute: 2, remaining: 0 });
    const keptMs = await bed().redis.pttl(callerRateKey(one.digest));
    expect(keptMs).toBeGreaterThan(0);
    expect(keptMs).toBeLessThanOrEqual(60_000);
  });

  test("a bucket from which little is taken is kept until the next request", async () => {
    const key = await make();
    await rateOf(keysIn(bed().store, 1_000_000), key);
    // It is full again after 60 µs.
    expect(await bed().redis.pttl(callerRateKey(key.digest))).toBeGreaterThan(1000);
  });

  test("what is refused for another reason is counted where the key is good, and only there", async () => {
    const store = keysIn(bed().store, 5);
    const key = await make();
    expect(await store.admit(key.digest, "aaaaaaaaaaaa" as ProjectId)).toMatchObject({
      kind: "elsewhere",
      rate: { remaining: 4 },
    });
    expect(await store.admit("another")).toEqual({ kind: "unknown" });
    await store.rotate({ id: key.id, graceMs: 0 }, { ...key, id: newApiKeyId(), digest: "d" }, { salt: "s" });
    expect(await store.admit(key.digest)).toEqual({ kind: "expired", key: expect.anything() });
    expect(await bed().redis.keys("*{access}:rate:*")).toEqual([callerRateKey(key.digest)]);
  });

  test("a request that is not counted takes nothing out, and is let in where nothing is left", async () => {
    const [store, key] = [keysIn(bed().store, 1), await make()];
    const callers = new RedisCallerStore(bed().store, 1);
    const uncounted = async () => [
      await store.admit(key.digest, undefined, true),
      await callers.admit("root", defaultProject, true),
    ];
    expect(await uncounted()).toEqual([{ kind: "admitted", key }, { kind: "admitted" }]);
    // Beside one of the same turn that is counted.
    const both = await Promise.all([rateOf(store, key), store.admit(key.digest, undefined, true)]);
    expect(both).toEqual([
      { perMinute: 1, remaining: 0 },
      { kind: "admitted", key },
    ]);
    expect(await callers.admit("root", defaultProject)).toMatchObject({ kind: "admitted" });
    for (const limited of [store.admit(key.digest), callers.admit("root", defaultProject)])
      expect(await limited).toMatchObject({ kind: "limited" });
    expect(await uncounted()).toEqual([{ kind: "admitted", key }, { kind: "admitted" }]);
  });

  test("a caller without a key has one too, and without a rate nothing is kept", async () => {
    const callers = new RedisCallerStore(bed().store, 2);
    expect(await callers.admit("root", defaultProject)).toEqual({
      kind: "admitted",
      rate: { perMinute: 2, remaining: 1 },
    });
    expect(await callers.admit("root", "aaaaaaaaaaaa" as ProjectId)).toMatchObject({
      kind: "elsewhere",
      rate: { remaining: 0 },
    });
    expect(await callers.admit("root", defaultProject)).toMatchObject({
      kind: "limited",
      rate: { retryAfterMs: expect.any(Number) },
    });
    const unlimited = new RedisCallerStore(bed().store, null);
    expect(await unlimited.admit("somebody", defaultProject)).toEqual({ kind: "admitted" });
    expect(await bed().redis.exists(callerRateKey("somebody"))).toBe(0);
  });
});
