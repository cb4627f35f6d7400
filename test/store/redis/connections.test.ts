import { afterEach, beforeEach, expect, onTestFinished, test } from "vitest";
import { systemClock } from "../../../src/base/clock.js";
import { type ClaimId, newLeaseId, newBrowserId, onDemandPartition } from "../../../src/base/ids.js";
import { wasNeverSent } from "../../../src/base/store-fault.js";
import type { Job } from "../../../src/pool/ports/pool-store.js";
import type { NodeMessage } from "../../../src/pool/ports/messages.js";
import { Queues, startWorker } from "../../../src/schedule/queues.js";
import {
  connectAlone,
  connectForMessages,
  connectForQueues,
  keepAlive,
} from "../../../src/store/redis/connect.js";
import { queuePrefix } from "../../../src/store/redis/keys.js";
import type { ScriptStore } from "../../../src/store/redis/redis.js";
import { listenAsNode, RedisMessages } from "../../../src/store/messages.js";
import { silentLog } from "../../support/browser/chromium-host.js";
import { until } from "../../support/browser/chromium-until.js";
import { DrivenClock } from "../../support/driven-clock.js";
import { nodeA } from "../../support/store/pool-bed.js";
import { openRedisProxy, type RedisProxy } from "../../support/store/redis-proxy.js";
import { namesKey, openScriptStore, reserveName } from "../../support/store/open-script-store.js";
import { startRedis, type TestRedis } from "../../support/store/redis.js";

let redis: TestRedis;
let proxy: RedisProxy;
beforeEach(async () => {
  redis = await startRedis();
  proxy = await openRedisProxy(redis.url);
});
afterEach(async () => {
  await proxy.close();
  await redis.stop();
});

const limitMs = 800;
const options = () => ({
  url: proxy.url,
  isCluster: false,
  connectTimeoutMs: 1000,
  commandTimeoutMs: limitMs,
});

const openStore = (): Promise<ScriptStore> => openScriptStore(proxy.url, limitMs);
async function redisNames(): Promise<number> {
  const client = redis.client();
  return await client.hlen(namesKey).finally(() => client.disconnect());
}

const message: NodeMessage = {
  kind: "cut",
  browser: newBrowserId(onDemandPartition),
  lease: newLeaseId(),
  why: "over",
};

test("a script asked on a connection that has died without a word is answered on the next one", async () => {
  const store = await openStore();
  proxy.freeze();
  expect((await reserveName(store)).kind).toBe("reserved");
});

test("so is a plain command, and all who asked meanwhile", async () => {
  const store = await openStore();
  proxy.freeze();
  const asked = Array.from({ length: 20 }, (_, at) =>
    store.ask((client) => client.set(`remuda:{test}:${at}`, "x")),
  );
  expect(await Promise.all(asked)).toEqual(asked.map(() => "OK"));
});

test("so is a command before whose silence one that was asked earlier was still answered", async () => {
  // Long, so that the earlier answer comes well within its tenth also where the machine is busy.
  const store = await openScriptStore(proxy.url, 15_000);
  const beside = redis.client();
  onTestFinished(() => beside.disconnect());
  const earlier = store.ask((client) => client.brpop("remuda:{test}:list", 0));
  await expect.poll(async () => (await beside.info("clients")).includes("blocked_clients:1")).toBe(true);
  const silent = proxy.freezeAt("remuda:{test}:silent", "requests");
  const asked = store.ask((client) => client.set("remuda:{test}:silent", "x"));
  await silent;
  await beside.lpush("remuda:{test}:list", "y");
  expect(await earlier).toEqual(["remuda:{test}:list", "y"]);
  expect(await asked).toBe("OK");
});

test("of a script that failed it is known whether it never left, and not where it may have arrived", async () => {
  const store = await openStore();
  const refused = (): Promise<unknown> => reserveName(store).catch((error: unknown) => error);
  proxy.freeze("replies");
  const mayHaveRun = refused();
  await until("the script's arrival", async () => (await redisNames()) > 0);
  await proxy.cut();
  expect(wasNeverSent(await mayHaveRun)).toBe(false);
  const error = await refused();
  expect(error).toMatchObject({ code: "store_unavailable" });
  expect(wasNeverSent(error)).toBe(true);
});

test("a mistake of ours is neither taken for trouble of Redis nor tried again", async () => {
  const store = await openStore();
  let times = 0;
  const wrong = (): Promise<never> => {
    times += 1;
    return Promise.reject(new TypeError("ours"));
  };
  await expect(store.ask(wrong)).rejects.toBeInstanceOf(TypeError);
  await expect(store.askOnce(wrong)).rejects.toBeInstanceOf(TypeError);
  expect(times).toBe(2);
});

test("an idle connection that has died is replaced before anybody asks", async () => {
  const store = await openStore();
  const { stream } = store.redis as ReturnType<typeof connectAlone>;
  proxy.freeze();
  await until("another connection", () => stream.destroyed && store.isConnected);
});

test("a connection that is slow but answers is kept", async () => {
  // What a busy machine adds to it is no more than it may take.
  const slowLimitMs = 5000;
  const store = await openScriptStore(proxy.url, slowLimitMs);
  const { stream } = store.redis as ReturnType<typeof connectAlone>;
  proxy.delay(slowLimitMs * 0.15);
  for (let times = 0; times < 6; times += 1) await reserveName(store);
  expect([stream.destroyed, (store.redis as ReturnType<typeof connectAlone>).stream === stream]).toEqual([
    false,
    true,
  ]);
});

test("a subscription whose connection has died hears again, and says that it may have missed something", async () => {
  const store = await openStore();
  const heard: NodeMessage[] = [];
  let agains = 0;
  const parts = {
    store,
    clock: systemClock,
    log: silentLog,
    limitMs,
    connect: () => connectForMessages(options()),
  };
  const listener = await listenAsNode(parts, nodeA, {
    onMessage: (given) => void heard.push(given),
    onAgain: () => (agains += 1),
  });
  onTestFinished(() => listener.close());
  const messages = new RedisMessages(store);
  await messages.toNode(nodeA, message);
  await until("the first", () => heard.length === 1);
  proxy.freeze("subscriptions");
  await until("it listens again", () => agains === 1);
  await messages.toNode(nodeA, message);
  await until("the second", () => heard.length === 2);
});

test("a subscription on a Redis that nobody speaks to any more follows those who speak", async () => {
  const other = await startRedis();
  onTestFinished(() => other.stop());
  const store = await openStore();
  const heard: NodeMessage[] = [];
  let place = other.url;
  const connect = () => connectForMessages({ ...options(), url: place });
  const listener = await listenAsNode(
    { store, clock: systemClock, log: silentLog, limitMs, connect },
    nodeA,
    { onMessage: (given) => void heard.push(given) },
  );
  onTestFinished(() => listener.close());
  place = proxy.url;
  const messages = new RedisMessages(store);
  await until("it hears", async () => {
    await messages.toNode(nodeA, message);
    return heard.length > 0;
  });
});

const job = (claim: string): Job => ({
  kind: "retire",
  node: nodeA,
  browser: newBrowserId(onDemandPartition),
  claim: claim as ClaimId,
});

async function queueKeys(): Promise<readonly string[]> {
  const client = redis.client();
  return await client.keys(`${queuePrefix}:*`).finally(() => client.disconnect());
}

test("a queue is dropped although its connection has just died without a word", async () => {
  // What a busy machine adds to a command is no more than it may take.
  const parts = { log: silentLog, clock: systemClock, limitMs: 3000 };
  const connection = connectForQueues(options(), silentLog);
  const stopWatch = keepAlive(connection, parts);
  const queues = new Queues({ ...parts, connection, prefix: queuePrefix });
  await queues.add([job("before")]);
  proxy.freeze();
  await queues.drop(nodeA);
  expect(await queueKeys()).toEqual([]);
  stopWatch();
  await queues.close();
  connection.disconnect();
});

test("a drop has a whole limit left where the watch has needed its own to find the connection dead", async () => {
  const connection = connectForQueues(options(), silentLog);
  const clock = new DrivenClock();
  const queues = new Queues({ connection, prefix: queuePrefix, log: silentLog, clock, limitMs });
  await queues.add([job("before")]);
  proxy.freeze();
  const dropped = queues.drop(nodeA).catch((error: unknown) => error);
  // This is how long the watch may take.
  await clock.advance(3 * limitMs);
  await proxy.cut();
  await proxy.restore();
  expect(await dropped).toBeUndefined();
  expect(await queueKeys()).toEqual([]);
  await queues.close();
  connection.disconnect();
});

test("queues and workers whose connections have died carry jobs again", async () => {
  const connection = connectForQueues(options(), silentLog);
  const stopWatch = keepAlive(connection, { clock: systemClock, log: silentLog, limitMs });
  const queueOptions = { connection, prefix: queuePrefix, log: silentLog, clock: systemClock, limitMs };
  const queues = new Queues(queueOptions);
  const taken: string[] = [];
  const worker = await startWorker(queueOptions, nodeA, async ({ claim }) => void taken.push(claim));
  await queues.add([job("before")]);
  await until("the first job", () => taken.includes("before"));
  proxy.freeze();
  await until("a job taken in", () =>
    queues.add([job("after")]).then(
      () => true,
      () => false,
    ),
  );
  await until("the job", () => taken.includes("after"));
  await worker.close();
  await queues.close();
  stopWatch();
  connection.disconnect();
});
