import { afterEach, beforeEach, expect, onTestFinished, test } from "vitest";
import { systemClock } from "../../../src/base/clock.js";
import { type ClaimId, newLeaseId, newBrowserId, onDemandPartition } from "../../../src/base/ids.js";
import type { Job } from "../../../src/pool/ports/pool-store.js";
import type { NodeMessage } from "../../../src/pool/ports/messages.js";
import { Queues, startWorker } from "../../../src/schedule/queues.js";
import {
  connect,
  connectForMessages,
  connectForQueues,
  keepAlive,
} from "../../../src/store/redis/connect.js";
import { queuePrefix } from "../../../src/store/redis/keys.js";
import { ScriptStore } from "../../../src/store/redis/redis.js";
import { listenAsNode, RedisMessages } from "../../../src/store/messages.js";
import { silentLog } from "../../support/browser/chromium-host.js";
import { until } from "../../support/browser/chromium-until.js";
import { nodeA } from "../../support/store/pool-bed.js";
import { type RedisCluster, startRedisCluster } from "../../support/store/redis-cluster.js";

let cluster: RedisCluster;
beforeEach(async () => {
  cluster = await startRedisCluster();
});
afterEach(() => cluster.stop());

const limitMs = 500;
const options = () => ({
  url: cluster.url,
  isCluster: true,
  connectTimeoutMs: 1000,
  commandTimeoutMs: limitMs,
});
const freeze = (): void => cluster.proxies.forEach((proxy) => proxy.freeze());
/** A tag for each master. */
const tags = ["a", "b", "c", "d", "e", "f", "g", "h"];
const recoveryMs = 60_000;

async function openStore(): Promise<ScriptStore> {
  const store = new ScriptStore(connect(options()), silentLog);
  onTestFinished(() => store.close());
  await store.open(new AbortController().signal);
  return store;
}

test("commands to every master of a cluster whose connections have died are answered again, and the trouble until then is the store's", async () => {
  const store = await openStore();
  const write = async (tag: string): Promise<unknown> =>
    await store.ask((client) => client.set(`remuda:{${tag}}:x`, "x"));
  await Promise.all(tags.map(write));
  freeze();
  const codes = new Set<unknown>();
  for (const tag of tags) {
    await until(
      `an answer for ${tag}`,
      () => write(tag).catch((error: { code?: unknown }) => void codes.add(error.code)),
      recoveryMs,
    );
  }
  expect([...codes].filter((code) => code !== "store_unavailable")).toEqual([]);
});

test("messages and jobs go again over a cluster whose connections have died", async () => {
  const store = await openStore();
  const heard: NodeMessage[] = [];
  const listener = await listenAsNode(
    { store, clock: systemClock, log: silentLog, limitMs, connect: () => connectForMessages(options()) },
    nodeA,
    { onMessage: (given) => void heard.push(given) },
  );
  const connection = connectForQueues(options(), silentLog);
  const stopWatch = keepAlive(connection, { clock: systemClock, log: silentLog, limitMs });
  const queueOptions = { connection, prefix: queuePrefix, log: silentLog, clock: systemClock, limitMs };
  const queues = new Queues(queueOptions);
  const taken: string[] = [];
  const worker = await startWorker(queueOptions, nodeA, async ({ claim }) => void taken.push(claim));
  const message: NodeMessage = {
    kind: "cut",
    browser: newBrowserId(onDemandPartition),
    lease: newLeaseId(),
    why: "over",
  };
  const job = (claim: string): Job => ({
    kind: "retire",
    node: nodeA,
    browser: newBrowserId(onDemandPartition),
    claim: claim as ClaimId,
  });
  const say = async (): Promise<boolean> => {
    const before = heard.length;
    await new RedisMessages(store).toNode(nodeA, message).catch(() => {});
    return before > 0;
  };
  await until("a message", say);
  await until("a job", () =>
    queues.add([job("before")]).then(
      () => true,
      () => false,
    ),
  );
  await until("it taken", () => taken.includes("before"));
  freeze();
  heard.length = 0;
  await until("a message again", say, recoveryMs);
  await until(
    "a job again",
    () =>
      queues.add([job("after")]).then(
        () => true,
        () => false,
      ),
    recoveryMs,
  );
  await until("it taken", () => taken.includes("after"), recoveryMs);
  listener.close();
  await worker.close();
  await queues.close();
  stopWatch();
  connection.disconnect();
});
