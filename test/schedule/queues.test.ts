import { Queue } from "bullmq";
import { afterEach, beforeEach, expect, test } from "vitest";
import { systemClock } from "../../src/base/clock.js";
import { newBrowserId, onDemandPartition } from "../../src/base/ids.js";
import type { ClaimId } from "../../src/base/ids.js";
import type { Job } from "../../src/pool/ports/pool-store.js";
import { Queues, startWorker } from "../../src/schedule/queues.js";
import { queuePrefix } from "../../src/store/redis/keys.js";
import { connectForQueues } from "../../src/store/redis/connect.js";
import { silentLog } from "../support/browser/chromium-host.js";
import { until } from "../support/browser/chromium-until.js";
import { nodeA } from "../support/store/pool-bed.js";
import { startRedis, type TestRedis } from "../support/store/redis.js";

let server: TestRedis;
beforeEach(async () => {
  server = await startRedis();
});
afterEach(() => server.stop());

const job = (claim: string): Job => ({
  kind: "retire",
  node: nodeA,
  browser: newBrowserId(onDemandPartition),
  claim: claim as ClaimId,
});
const open = (url: string, limitMs = 20_000) => {
  const connection = connectForQueues(
    { url, isCluster: false, connectTimeoutMs: limitMs, commandTimeoutMs: limitMs },
    silentLog,
  );
  return {
    connection,
    options: { connection, prefix: queuePrefix, log: silentLog, clock: systemClock, limitMs },
  };
};

test("adding a job ends within its limit where Redis cannot be reached", async () => {
  const { connection, options } = open("/nowhere/redis.sock", 200);
  const queues = new Queues(options);
  await expect(queues.add([job("one")])).rejects.toMatchObject({ code: "store_unavailable" });
  connection.disconnect();
});

test("a queue that a control left paused, since it was killed while it dropped it, takes jobs once it is dropped", async () => {
  const { connection, options } = open(server.url);
  const queues = new Queues(options);
  // What BullMQ does first of all when it obliterates a queue.
  const left = new Queue(`node-${nodeA}`, { connection, prefix: queuePrefix, skipVersionCheck: true });
  await queues.add([job("before")]);
  await left.pause();
  await queues.drop(nodeA);
  const taken: Job[] = [];
  const worker = await startWorker(options, nodeA, async (given) => void taken.push(given));
  await queues.add([job("after")]);
  await until("the job", () => taken.length === 1);
  expect(taken).toMatchObject([{ claim: "after" }]);
  await worker.close();
  await left.close();
  await queues.close();
  connection.disconnect();
});

test("a job reaches its node's worker once, and nothing of it is kept, also where it fails", async () => {
  const { connection, options } = open(server.url);
  const queues = new Queues(options);
  const taken: Job[] = [];
  const worker = await startWorker(options, nodeA, async (given) => {
    taken.push(given);
    if (given.claim === "fails") throw new Error("it fails");
  });
  const jobs = [job("one"), job("fails")];
  await queues.add(jobs);
  await queues.add([]);
  await until("both jobs", () => taken.length === 2);
  expect(taken.map(({ claim }) => claim).toSorted()).toEqual(["fails", "one"]);
  const redis = server.client();
  await until("an empty queue", async () => (await redis.keys(`${queuePrefix}:*retire-*`)).length === 0);
  await worker.close();
  await queues.drop(nodeA);
  await queues.close();
  redis.disconnect();
  connection.disconnect();
});
