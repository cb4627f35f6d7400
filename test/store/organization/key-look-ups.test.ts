import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, test } from "vitest";
import type { ApiKey } from "../../../src/access/api-key.js";
import { newApiKeyId, newRequestId, type ProjectId } from "../../../src/base/ids.js";
import { RedisApiKeyStore } from "../../../src/store/organization/api-key-store.js";
import { KeyLookUps } from "../../../src/store/organization/key-look-ups.js";
import { DrivenClock } from "../../support/driven-clock.js";
import { onBoth } from "../../support/store/on-both.js";

const person = { id: "root", email: "root@remuda.invalid", name: null };
const elsewhere = "aaaaaaaaaaaa" as ProjectId;

onBoth("look-ups of API keys", ({ bed, server }) => {
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

  test("requests that come while one is under way share the next, as long as that one does not take long", async () => {
    const key = await make(storeOf(null));
    const clock = new DrivenClock();
    const lookUps = new KeyLookUps(bed().store, null, clock);
    const ask = () => lookUps.admit(key.digest, undefined);
    const asked: ReturnType<typeof ask>[] = [];
    // What is asked behind a paused command waits too.
    const other = server().client();
    const run = await scriptsRun(async () => {
      await other.client("PAUSE", 60_000, "WRITE");
      asked.push(ask());
      await nextTurn();
      for (let turn = 0; turn < 5; turn += 1) {
        asked.push(ask(), ask());
        await nextTurn();
      }
      // The first one takes long, so the second goes, and whoever comes then shares the third.
      await clock.advance(10);
      await nextTurn();
      asked.push(ask(), ask());
      await nextTurn();
      await other.client("UNPAUSE");
      expect(await Promise.all(asked)).toEqual(asked.map(() => ({ kind: "admitted", key })));
    });
    other.disconnect();
    expect(run).toBe(3);
  });

  test("a Redis that has forgotten the script is told it again", async () => {
    const store = storeOf(null);
    const key = await make(store);
    await bed().redis.script("FLUSH");
    expect(await store.admit(key.digest)).toEqual({ kind: "admitted", key });
  });
});
