import { type FileHandle, open, readFile, readlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { Redis } from "ioredis";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { systemClock } from "../../../src/base/clock.js";
import { AppendOnlyFile } from "../../../src/store/redis/append-only-file.js";
import { silentLog } from "../../support/browser/chromium-host.js";
import { startRedis, type TestRedis } from "../../support/store/redis.js";

let server: TestRedis;
let redis: Redis;
let file: AppendOnlyFile;
/** Each sync: which file, and what was in it by then. */
let syncs: { readonly name: string; readonly text: string }[];
let failure: Error | undefined;

beforeEach(async () => {
  server = await startRedis();
  redis = server.client();
  await redis.config("SET", "appendonly", "yes");
  await rewritten();
  const store = { ask: <Value>(command: (client: Redis) => Promise<Value>) => command(redis) };
  file = fileOf(store);
  syncs = [];
  failure = undefined;
  await watchSyncs();
});
afterEach(async () => {
  vi.restoreAllMocks();
  await file.close();
  redis.disconnect();
  await server.stop();
});

const fileOf = (store: ConstructorParameters<typeof AppendOnlyFile>[0]["store"]): AppendOnlyFile =>
  new AppendOnlyFile({ store, directory: dirname(server.url), clock: systemClock, log: silentLog });

/** Looks at what Node.js asks of the kernel; the disk itself cannot be seen. */
async function watchSyncs(): Promise<void> {
  const any = await open("/dev/null");
  const prototype = Object.getPrototypeOf(any) as FileHandle;
  await any.close();
  const { datasync } = prototype;
  vi.spyOn(prototype, "datasync").mockImplementation(async function (this: FileHandle) {
    const path = await readlink(`/proc/self/fd/${this.fd}`);
    syncs.push({ name: path.slice(dirname(server.url).length + 1), text: await readFile(path, "latin1") });
    if (failure) throw failure;
    await datasync.call(this);
  });
}

test("what Redis has answered is in the file when that is synced", async () => {
  await redis.set("item", "the first value");
  await file.sync();
  await redis.set("item", "the second value");
  await file.sync();
  expect(syncs.map(({ name }) => name)).toEqual(Array(2).fill("appendonlydir/appendonly.aof.1.incr.aof"));
  expect(syncs[0]?.text).toContain("the first value");
  expect(syncs[0]?.text).not.toContain("the second value");
  expect(syncs[1]?.text).toContain("the second value");
});

test("a file that Redis has rewritten is left for the one that it writes to now", async () => {
  await file.sync();
  await redis.set("item", "written before");
  await redis.call("BGREWRITEAOF");
  await rewritten();
  await redis.set("item", "written after");
  syncs = [];
  await file.sync();
  expect(syncs.map(({ name }) => name)).toEqual(["appendonlydir/appendonly.aof.2.incr.aof"]);
  expect(syncs[0]?.text).toContain("written after");
});

test("where Redis has begun another file, the one before is synced once more, and no later time", async () => {
  await redis.set("item", "written before");
  // As Redis does at the beginning of a rewrite.
  await (await open(join(dirname(server.url), "appendonlydir/appendonly.aof.2.incr.aof"), "w")).close();
  await file.sync();
  await file.sync();
  expect(syncs.map(({ name }) => name.slice(-10))).toEqual(["1.incr.aof", "2.incr.aof", "2.incr.aof"]);
  expect(syncs[0]?.text).toContain("written before");
});

/** Also what Redis does when it begins to write a file. */
const rewritten = (): Promise<void> =>
  vi.waitFor(
    async () => {
      const told = await redis.info("persistence");
      expect(told).toMatch(/aof_rewrite_in_progress:0\s/);
      expect(told).toMatch(/aof_rewrite_scheduled:0\s/);
      expect(told).toMatch(/aof_last_bgrewrite_status:ok\s/);
    },
    { timeout: 60_000 },
  );

test("what Redis has answered and holds back while it syncs by itself is waited for", async () => {
  const told: string[] = [];
  const at = (base: number, written: number, waiting: number): string =>
    `aof_current_size:${written}\r\naof_base_size:${base}\r\naof_buffer_length:${waiting}\r\n`;
  const positions = [at(1, 100, 50), at(1, 100, 80), at(1, 149, 20), at(1, 150, 9)];
  const postponing = fileOf({
    async ask<Value>() {
      told.push(`${syncs.length}`);
      return positions.shift() as Value;
    },
  });
  await postponing.sync();
  await postponing.close();
  expect({ told, left: positions }).toEqual({ told: ["0", "0", "0", "0"], left: [] });
  expect(syncs).toHaveLength(1);
});

test("a rewrite meanwhile begins the count anew", async () => {
  const at = (base: number, written: number, waiting: number): string =>
    `aof_current_size:${written}\r\naof_base_size:${base}\r\naof_buffer_length:${waiting}\r\n`;
  const positions = [at(1, 1000, 50), at(2, 10, 50), at(2, 30, 30), at(2, 60, 5)];
  const rewriting = fileOf({ ask: async <Value>() => positions.shift() as Value });
  await rewriting.sync();
  await rewriting.close();
  expect(positions).toEqual([]);
});

test("after a sync that has failed nothing is taken for synced any more", async () => {
  failure = Object.assign(new Error("EIO: i/o error, fdatasync"), { code: "EIO" });
  await expect(file.sync()).rejects.toMatchObject({ code: "store_unavailable" });
  failure = undefined;
  await expect(file.sync()).rejects.toMatchObject({ code: "store_unavailable" });
  expect(syncs).toHaveLength(1);
});

test("a Redis that writes no file has nothing to be synced", async () => {
  await redis.config("SET", "appendonly", "no");
  await expect(file.sync()).rejects.toMatchObject({ code: "store_unavailable" });
});
