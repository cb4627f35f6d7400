import { systemClock } from "../../../src/base/clock.js";
import { type ClaimId, newBrowserId, newLeaseId, onDemandPartition } from "../../../src/base/ids.js";
import type { NodeMessage } from "../../../src/pool/ports/messages.js";
import { Queues, startWorker } from "../../../src/schedule/queues.js";
import {
  connect,
  connectForMessages,
  connectForQueues,
  type RedisOptions,
} from "../../../src/store/redis/connect.js";
import { queuePrefix } from "../../../src/store/redis/keys.js";
import { ScriptStore } from "../../../src/store/redis/redis.js";
import { listenAsNode, RedisMessages } from "../../../src/store/messages.js";
import { silentLog } from "../browser/chromium-host.js";
import { until } from "../browser/chromium-until.js";
import { nodeA } from "./pool-bed.js";

const limitMs = 5000;

/** Sends a command, a message and a job, each by the connection that a daemon has for it. */
export async function useEveryConnection(options: RedisOptions): Promise<void> {
  const store = new ScriptStore(connect(options), silentLog);
  await store.open(new AbortController().signal);
  try {
    await store.ask((redis) => redis.set("remuda:{test}:kept", "yes"));
    await hearMessage(store, options);
    await carryOutJob(options);
  } finally {
    await store.close();
  }
}

const browser = newBrowserId(onDemandPartition);

async function hearMessage(store: ScriptStore, options: RedisOptions): Promise<void> {
  const heard: NodeMessage[] = [];
  const listener = await listenAsNode(
    { store, clock: systemClock, log: silentLog, limitMs, connect: () => connectForMessages(options) },
    nodeA,
    { onMessage: (message) => void heard.push(message) },
  );
  try {
    const message: NodeMessage = { kind: "cut", browser, lease: newLeaseId(), why: "over" };
    await until("a message", async () => {
      await new RedisMessages(store).toNode(nodeA, message).catch(() => {});
      return heard.length > 0;
    });
  } finally {
    await listener.close();
  }
}

async function carryOutJob(options: RedisOptions): Promise<void> {
  const connection = connectForQueues(options, silentLog);
  const parts = { connection, prefix: queuePrefix, log: silentLog, clock: systemClock, limitMs };
  const queues = new Queues(parts);
  const taken: string[] = [];
  const worker = await startWorker(parts, nodeA, async ({ claim }) => void taken.push(claim));
  try {
    await queues.add([{ kind: "retire", node: nodeA, browser, claim: "one" as ClaimId }]);
    await until("a job", () => taken.includes("one"));
  } finally {
    await worker.close();
    await queues.close();
    connection.disconnect();
  }
}
