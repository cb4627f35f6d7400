import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { DurableWrites } from "../../../src/store/redis/durable-writes.js";
import { connectAlone } from "../../../src/store/redis/connect.js";
import { ScriptStore } from "../../../src/store/redis/redis.js";
import { silentLog } from "../../support/browser/chromium-host.js";
import { DrivenClock } from "../../support/driven-clock.js";
import { startRedis, type TestRedis } from "../../support/store/redis.js";

let server: TestRedis;
let store: ScriptStore;
beforeAll(async () => {
  server = await startRedis();
  const options = { url: server.url, isCluster: false, connectTimeoutMs: 2000, commandTimeoutMs: 10_000 };
  store = new ScriptStore(connectAlone(options), silentLog);
  await store.open(new AbortController().signal);
});
afterAll(async () => {
  await store.close();
  await server.stop();
});
beforeEach(async () => {
  await set("appendonly", "no");
  await set("appendfsync", "everysec");
});

const set = (name: string, value: string): Promise<unknown> =>
  store.ask((redis) => redis.config("SET", name, value));
const syncing = async (): Promise<string | undefined> =>
  ((await store.ask((redis) => redis.config("GET", "appendfsync"))) as string[])[1];
const writesOf = (
  clock: DrivenClock,
  over: { isPrivate?: boolean; allowsLoss?: boolean } = {},
): DurableWrites =>
  new DurableWrites(store, { isPrivate: false, allowsLoss: false, clock, log: silentLog, ...over });

test("the private Redis syncs every write while one of a vault is under way, and goes on for 20 ms", async () => {
  const clock = new DrivenClock();
  const writes = writesOf(clock, { isPrivate: true });
  expect(writes.knownSafety()).toBe("durable");
  const [one, other] = await Promise.all([writes.write(syncing), writes.write(syncing)]);
  expect([one, other]).toEqual(["always", "always"]);
  await clock.advance(10);
  expect(await writes.write(syncing)).toBe("always");
  await clock.advance(19);
  expect(await syncing()).toBe("always");
  await clock.advance(1);
  expect(await syncing()).toBe("everysec");
  expect(await writes.write(syncing)).toBe("always");
});

test("a write that fails leaves the next one as sure as it was", async () => {
  const writes = writesOf(new DrivenClock(), { isPrivate: true });
  await expect(writes.write(async () => Promise.reject(new Error("refused")))).rejects.toThrow("refused");
  expect(await writes.write(syncing)).toBe("always");
});

test("a Redis that may lose what it has acknowledged is not written to, unless the operator allows it", async () => {
  const clock = new DrivenClock();
  const writes = writesOf(clock);
  await expect(writes.write(async () => "written")).rejects.toMatchObject({
    code: "not_supported",
    message: expect.stringContaining("vault.allow_lossy_redis"),
  });
  expect(writes.knownSafety()).toBe("refused");
  const lossy = writesOf(clock, { allowsLoss: true });
  expect(await lossy.write(async () => "written")).toBe("written");
  expect(lossy.knownSafety()).toBe("lossy");
});

test("one that syncs each write is written to; its settings are read anew after a minute", async () => {
  const clock = new DrivenClock();
  const writes = writesOf(clock);
  await set("appendfsync", "always");
  // Without a file there is nothing that is synced.
  await expect(writes.write(async () => "written")).rejects.toMatchObject({ code: "not_supported" });
  await set("appendonly", "yes");
  clock.stand(60_000);
  expect(await writes.write(async () => "written")).toBe("written");
  expect(writes.knownSafety()).toBe("durable");
});
