import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { Cluster } from "ioredis";
import { DurableWrites } from "../../../src/store/redis/durable-writes.js";
import { connectAlone } from "../../../src/store/redis/connect.js";
import { ScriptStore } from "../../../src/store/redis/redis.js";
import { yieldTurn } from "../../../src/base/yield-turn.js";
import { silentLog } from "../../support/browser/chromium-host.js";
import { until } from "../../support/browser/chromium-until.js";
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
const writesOf = (
  clock: DrivenClock,
  over: Partial<ConstructorParameters<typeof DurableWrites>[1]> = {},
): DurableWrites => new DurableWrites(store, { allowsLoss: false, clock, ...over });

/** A file whose syncs end when the test says so. */
function heldFile() {
  const ends: ((error?: Error) => void)[] = [];
  const sync = (): Promise<void> =>
    new Promise((resolve, reject) => void ends.push((error) => (error ? reject(error) : resolve())));
  return { ends, file: { sync, close: async () => {} } };
}

test("a write is answered after a sync that began after it; who comes during one shares the next", async () => {
  const { ends, file } = heldFile();
  const writes = writesOf(new DrivenClock(), { file });
  expect(writes.knownSafety()).toBe("durable");
  const answered: string[] = [];
  const write = (name: string): Promise<number> =>
    writes.write(async () => name).then((written) => answered.push(written));
  const first = write("first");
  await yieldTurn();
  const later = [write("second"), write("third")];
  await yieldTurn();
  expect({ syncs: ends.length, answered }).toEqual({ syncs: 1, answered: [] });
  ends[0]?.();
  await first;
  await yieldTurn();
  expect({ syncs: ends.length, answered }).toEqual({ syncs: 2, answered: ["first"] });
  ends[1]?.();
  await Promise.all(later);
  expect({ syncs: ends.length, answered }).toEqual({ syncs: 2, answered: ["first", "second", "third"] });
});

test("a write that could not be synced is not acknowledged, and the next is synced by itself", async () => {
  const { ends, file } = heldFile();
  const writes = writesOf(new DrivenClock(), { file });
  const lost = writes.write(async () => "lost").catch((error: Error) => error.message);
  await yieldTurn();
  ends[0]?.(new Error("no disk"));
  expect(await lost).toBe("no disk");
  const kept = writes.write(async () => "kept");
  await yieldTurn();
  ends[1]?.();
  expect(await kept).toBe("kept");
});

test("a write that fails is not synced", async () => {
  const { ends, file } = heldFile();
  const writes = writesOf(new DrivenClock(), { file });
  await expect(writes.write(async () => Promise.reject(new Error("refused")))).rejects.toThrow("refused");
  expect(ends).toEqual([]);
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

test("who asks while Redis is being looked at shares the look, however long that takes", async () => {
  let looks = 0;
  const isOffered = (): Promise<boolean> => new Promise(() => void (looks += 1));
  const wait = { isOffered, sync: async () => {} };
  const writes = writesOf(new DrivenClock(), { wait });
  await set("appendonly", "yes");
  for (let probe = 0; probe < 5; probe += 1) expect(writes.knownSafety()).toBeUndefined();
  // It is answered after what the probes have asked.
  await set("appendfsync", "everysec");
  await yieldTurn();
  expect(writes.knownSafety()).toBeUndefined();
  await set("appendfsync", "everysec");
  await yieldTurn();
  expect(looks).toBe(1);
});

test("a Redis that could not be asked for its settings is asked again at the next write", async () => {
  const limits = { connectTimeoutMs: 300, commandTimeoutMs: 300 };
  const hasty = new ScriptStore(connectAlone({ url: server.url, isCluster: false, ...limits }), silentLog);
  await hasty.open(new AbortController().signal);
  try {
    await set("appendonly", "yes");
    await set("appendfsync", "always");
    const options = { allowsLoss: false, clock: new DrivenClock() };
    const writes = new DurableWrites(hasty, options);
    server.signal("SIGSTOP");
    await expect(writes.write(async () => "written")).rejects.toMatchObject({ code: "store_unavailable" });
    expect(writes.knownSafety()).toBeUndefined();
    server.signal("SIGCONT");
    // A connection that was made meanwhile may not answer in time yet, either.
    const written = () =>
      writes
        .write(async () => "written")
        .catch((error: unknown) => void expect(error).toMatchObject({ code: "store_unavailable" }));
    expect(await until("a write", written)).toBe("written");
  } finally {
    server.signal("SIGCONT");
    await hasty.close();
  }
});

test("the client of a cluster that knows no masters yet makes no Redis lossy", async () => {
  const cluster = new Cluster([], { lazyConnect: true });
  const asking = { ask: async <Value>(work: (redis: Cluster) => Promise<Value>) => await work(cluster) };
  const writes = new DurableWrites(asking, { allowsLoss: false, clock: new DrivenClock() });
  await expect(writes.write(async () => "written")).rejects.toMatchObject({ code: "store_unavailable" });
  cluster.disconnect();
});
