import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { Redis } from "ioredis";
import { afterEach, beforeEach, expect, onTestFinished, test } from "vitest";
import { systemClock } from "../../../src/base/clock.js";
import { defaultProject, newBrowserId, onDemandPartition } from "../../../src/base/ids.js";
import type { ClaimId } from "../../../src/base/ids.js";
import { Queues } from "../../../src/schedule/queues.js";
import { RedisCallerStore } from "../../../src/store/organization/caller-store.js";
import { connectAlone, connectForQueues } from "../../../src/store/redis/connect.js";
import { queuePrefix } from "../../../src/store/redis/keys.js";
import { ScriptStore } from "../../../src/store/redis/redis.js";
import { silentLog } from "../../support/browser/chromium-host.js";
import { until } from "../../support/browser/chromium-until.js";
import { nodeA } from "../../support/store/pool-bed.js";
import { openRedisProxy } from "../../support/store/redis-proxy.js";
import { redisProgram } from "../../support/store/redis-server.js";
import { namesKey, openScriptStore, reserveName } from "../../support/store/open-script-store.js";
import { startRedis, type TestRedis } from "../../support/store/redis.js";
import { freePort } from "../../support/free-port.js";

let redis: TestRedis;
beforeEach(async () => {
  redis = await startRedis();
});
afterEach(() => redis.stop());

const limitMs = 5000;
const openStore = (url: string): Promise<ScriptStore> => openScriptStore(url, limitMs);
const write = (store: ScriptStore) => store.ask((client) => client.set("remuda:{test}:x", "x"));
const writeAll = (store: ScriptStore) =>
  store.ask((client) => client.multi().set("remuda:{test}:x", "x").exec());
const unavailable = { code: "store_unavailable" };

/** What makes a Redis refuse, and what makes it take things again. */
const sicknesses: readonly (readonly [
  word: string,
  make: (client: Redis) => Promise<unknown>,
  mend: (client: Redis) => Promise<unknown>,
])[] = [
  ["READONLY", (client) => client.replicaof("127.0.0.1", 1), (client) => client.replicaof("NO", "ONE")],
  ["MISCONF", breakSaves, (client) => client.config("SET", "stop-writes-on-bgsave-error", "no")],
  [
    "OOM",
    (client) => client.config("SET", "maxmemory", "1"),
    (client) => client.config("SET", "maxmemory", "0"),
  ],
  [
    "NOREPLICAS",
    (client) => client.config("SET", "min-replicas-to-write", "1"),
    (client) => client.config("SET", "min-replicas-to-write", "0"),
  ],
];

/** A directory stands where the file would. */
async function breakSaves(client: Redis): Promise<void> {
  await mkdir(join(dirname(redis.url), "dump.rdb"));
  await client.config("SET", "save", "3600 1");
  await client.bgsave();
  await until("a failed save", async () =>
    (await client.info("persistence")).includes("rdb_last_bgsave_status:err"),
  );
}

test.each(sicknesses)(
  "a Redis that answers %s is the store's trouble, and is used again when it is well",
  async (_word, make, mend) => {
    const store = await openStore(redis.url);
    const client = redis.client();
    onTestFinished(() => client.disconnect());
    await make(client);
    for (const ask of [reserveName, write, writeAll])
      await expect(ask(store)).rejects.toMatchObject(unavailable);
    await mend(client);
    await until("it takes things again", () =>
      reserveName(store).then(
        ({ kind }) => kind === "reserved",
        () => false,
      ),
    );
  },
);

test.each(sicknesses)(
  "a Redis that answers %s lets in whose rate it cannot note, unless it has to be left",
  async (word, make, mend) => {
    const callers = new RedisCallerStore(await openStore(redis.url), 600);
    const client = redis.client();
    onTestFinished(() => client.disconnect());
    await make(client);
    const admitted = callers.admit("root", defaultProject);
    if (word === "READONLY") await expect(admitted).rejects.toMatchObject(unavailable);
    else expect(await admitted).toEqual({ kind: "admitted", rate: { perMinute: 600, remaining: 599 } });
    await mend(client);
    await until("its rate is held", async () => {
      const { rate } = await callers.admit("root", defaultProject);
      return (rate?.remaining ?? 599) < 599;
    });
  },
);

test("a rate that Redis may not note for another reason is a fault", async () => {
  const callers = new RedisCallerStore(await openStore(redis.url), 600);
  const client = redis.client();
  onTestFinished(() => client.disconnect());
  await client.call("ACL", "SETUSER", "default", "-set");
  await expect(callers.admit("root", defaultProject)).rejects.toThrow();
});

test("jobs for a Redis that takes none are the store's trouble too", async () => {
  const connection = connectForQueues(
    { url: redis.url, isCluster: false, connectTimeoutMs: 500, commandTimeoutMs: 500 },
    silentLog,
  );
  const queues = new Queues({ connection, prefix: queuePrefix, log: silentLog, clock: systemClock, limitMs });
  const client = redis.client();
  await client.replicaof("127.0.0.1", 1);
  await expect(
    queues.add([
      { kind: "retire", node: nodeA, browser: newBrowserId(onDemandPartition), claim: "one" as ClaimId },
    ]),
  ).rejects.toMatchObject(unavailable);
  await client.replicaof("NO", "ONE");
  await queues.close();
  for (const each of [client, connection]) each.disconnect();
});

test("a master that was demoted is left for the one that its name leads to, within the command that met it", async () => {
  const other = await startRedis();
  onTestFinished(() => other.stop());
  const proxy = await openRedisProxy(redis.url);
  onTestFinished(() => proxy.close());
  const store = await openStore(proxy.url);
  const client = redis.client();
  await client.replicaof("127.0.0.1", 1);
  client.disconnect();
  proxy.move(other.url);
  expect((await reserveName(store)).kind).toBe("reserved");
});

test("a script that goes wrong is our fault and not the store's", async () => {
  const store = await openStore(redis.url);
  await store.ask((client) => client.set(namesKey, "not a hash"));
  const fault: unknown = await reserveName(store).catch((error: unknown) => error);
  expect(fault).toMatchObject({
    name: "ReplyError",
    message: expect.stringContaining("WRONGTYPE") as string,
  });
});

test("a Redis that still reads its file is waited for", async () => {
  const [folder, port] = [await mkdtemp(join(tmpdir(), "remuda-loading-")), await freePort()];
  const start = (...more: string[]) =>
    spawn(
      redisProgram,
      ["--port", `${port}`, "--bind", "127.0.0.1", "--dir", folder, "--save", "", ...more],
      { stdio: "ignore" },
    );
  const first = start();
  const client = new Redis(port, { lazyConnect: true, retryStrategy: () => 20, maxRetriesPerRequest: null });
  client.on("error", () => {});
  await client
    .call("DEBUG", "POPULATE", "2000")
    .catch(() => client.eval("for i = 1, 2000 do redis.call('SET', 'key:' .. i, i) end", 0));
  await client.call("SAVE");
  client.disconnect();
  first.kill("SIGKILL");
  await once(first, "exit");
  const second = start("--key-load-delay", "500", "--loading-process-events-interval-bytes", "1024");
  onTestFinished(async () => {
    second.kill("SIGKILL");
    await once(second, "exit");
    await rm(folder, { recursive: true });
  });
  const store = new ScriptStore(
    connectAlone({
      url: `redis://127.0.0.1:${port}`,
      isCluster: false,
      connectTimeoutMs: 1000,
      commandTimeoutMs: limitMs,
    }),
    silentLog,
  );
  onTestFinished(() => store.close());
  await store.open(new AbortController().signal);
  expect((await reserveName(store)).kind).toBe("reserved");
});
