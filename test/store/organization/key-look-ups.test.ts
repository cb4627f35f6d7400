import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, test } from "vitest";
import type { ApiKey } from "../../../src/access/api-key.js";
import { newApiKeyId, newRequestId, type ProjectId } from "../../../src/base/ids.js";
import { RedisApiKeyStore } from "../../../src/store/organization/api-key-store.js";
import { onBoth } from "../../support/store/on-both.js";

const person = { id: "root", email: "root@remuda.invalid", name: null };
const elsewhere = "aaaaaaaaaaaa" as ProjectId;

onBoth("look-ups of API keys", ({ bed }) => {
  const storeOf = (requestsPerMinute: number | null): RedisApiKeyStore =>
    new RedisApiKeyStore(bed().store, {
      maxKeys: 9,
      maxDeletedKeys: 2,
      idempotencyMs: 60_000,
      requestsPerMinute,
    });
  let count = 0;
  async function make(store: RedisApiKeyStore): Promise<ApiKey> {
    const drawn = {
      id: newApiKeyId(),
      digest: `digest-${(count += 1)}`,
      mask: "rmd_...wxyz",
      createdBy: person,
    };
    const got = await store.create({ ...drawn, name: "one" }, { salt: "salt" });
    if (got.kind !== "issued") throw new Error(`no key: ${got.kind}`);
    return got.key;
  }
  /** How many scripts Redis has run meanwhile. */
  async function scriptsRun(work: () => Promise<unknown>): Promise<number> {
    await bed().redis.config("RESETSTAT");
    await work();
    const text = await bed().redis.info("commandstats");
    return Number(/^cmdstat_evalsha:calls=(\d+)/m.exec(text)?.[1] ?? 0);
  }

  test("a key that has come is known until a note of its use is due, where one script may judge it", async () => {
    const store = storeOf(null);
    const key = await make(store);
    expect(store.recall(key.digest)).toBeUndefined();
    await store.admit(key.digest);
    expect(store.recall(key.digest)).toEqual(bed().store.hasOneSlot ? key : undefined);
    await store.remove(key.id, newRequestId());
    await store.admit(key.digest);
    expect(store.recall(key.digest)).toBeUndefined();
  });

  test("requests of one key in one turn share one, and each is judged by itself", async () => {
    const store = storeOf(3);
    const [key, another] = [await make(store), await make(store)];
    let judged: unknown;
    const run = await scriptsRun(async () => {
      judged = await Promise.all([
        store.admit(key.digest),
        store.admit(key.digest, elsewhere),
        store.admit(another.digest),
        store.admit(key.digest),
        store.admit(key.digest),
        store.admit("unknown"),
        store.admit("unknown"),
      ]);
    });
    expect(judged).toEqual([
      { kind: "admitted", key, rate: { perMinute: 3, remaining: 2 } },
      { kind: "elsewhere", key, rate: { perMinute: 3, remaining: 1 } },
      { kind: "admitted", key: another, rate: { perMinute: 3, remaining: 2 } },
      { kind: "admitted", key, rate: { perMinute: 3, remaining: 0 } },
      { kind: "limited", key, rate: { perMinute: 3, remaining: 0, retryAfterMs: expect.any(Number) } },
      { kind: "unknown" },
      { kind: "unknown" },
    ]);
    expect(run).toBe(3);
  });

  test("a request that comes while another's is under way has one of its own", async () => {
    const store = storeOf(null);
    const key = await make(store);
    const run = await scriptsRun(async () => {
      const first = store.admit(key.digest);
      await nextTurn();
      // The first one is on its way to Redis, and so this deletion comes after it.
      const removed = store.remove(key.id, newRequestId());
      await nextTurn();
      const second = store.admit(key.digest);
      expect(await Promise.all([first, removed, second])).toEqual([
        { kind: "admitted", key },
        "deleted",
        { kind: "unknown" },
      ]);
    });
    expect(run).toBe(3);
  });

  test("a Redis that has forgotten the script is told it again", async () => {
    const store = storeOf(null);
    const key = await make(store);
    await bed().redis.script("FLUSH");
    expect(await store.admit(key.digest)).toEqual({ kind: "admitted", key });
  });
});
