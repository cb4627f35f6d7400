import { expect, onTestFinished, test } from "vitest";
import { systemClock } from "../../../src/base/clock.js";
import { within } from "../../../src/base/deadline.js";
import { type ClaimId, newLeaseId, newBrowserId, onDemandPartition } from "../../../src/base/ids.js";
import { redisEndpoints } from "../../../src/daemon/reserved-endpoints.js";
import type { NodeMessage } from "../../../src/pool/ports/messages.js";
import { Queues, startWorker } from "../../../src/schedule/queues.js";
import { connectAlone, connectForMessages, connectForQueues } from "../../../src/store/redis/connect.js";
import { queuePrefix } from "../../../src/store/redis/keys.js";
import { ScriptStore } from "../../../src/store/redis/redis.js";
import { sentinelsIn } from "../../../src/store/redis/sentinels.js";
import { listenAsNode, RedisMessages } from "../../../src/store/messages.js";
import { silentLog } from "../../support/browser/chromium-host.js";
import { until } from "../../support/browser/chromium-until.js";
import { nodeA } from "../../support/store/pool-bed.js";
import { startRedisPair } from "../../support/store/redis-pair.js";

const limits = { connectTimeoutMs: 1000, commandTimeoutMs: 1000 };

test("a URL of sentinels names each, their master and whoever asks", () => {
  const url = "rediss+sentinel://me:p%40ss@one.example:26380,two.example,[fd00::1]:7/herd";
  expect(sentinelsIn({ url, ...limits, sentinelPassword: "theirs" })).toMatchObject({
    name: "herd",
    username: "me",
    password: "p@ss",
    sentinelPassword: "theirs",
    tls: {},
    sentinelTLS: {},
    enableTLSForSentinelMode: true,
    sentinels: [
      { host: "one.example", port: 26_380 },
      { host: "two.example", port: 26_379 },
      { host: "fd00::1", port: 7 },
    ],
  });
  // Closed to browsers, as Redis itself is.
  expect(redisEndpoints(url)).toEqual([
    { host: "one.example", port: 26_380 },
    { host: "two.example", port: 26_379 },
    { host: "fd00::1", port: 7 },
  ]);
});

test.each([
  ["in clear text", false],
  ["by TLS", true],
])(
  "commands, messages and jobs, %s, follow the master that sentinels name, also from one that stands still",
  async (_, isSecure) => {
    const pair = await startRedisPair({ sentinels: 1, speech: isSecure ? "tls" : "clear" });
    onTestFinished(() => pair.stop());
    if (isSecure) await trustAny(pair.sentinelUrl);
    const options = { url: pair.sentinelUrl, isCluster: false, ...limits };
    const store = new ScriptStore(connectAlone(options), silentLog);
    onTestFinished(() => store.close());
    await store.open(new AbortController().signal);
    const heard: NodeMessage[] = [];
    const listener = await listenAsNode(
      {
        store,
        clock: systemClock,
        log: silentLog,
        limitMs: 1000,
        connect: () => connectForMessages(options),
      },
      nodeA,
      { onMessage: (message) => void heard.push(message) },
    );
    onTestFinished(() => listener.close());
    await store.ask((client) => client.set("remuda:{test}:kept", "yes"));
    await pair.caughtUp();
    await pair.failOverSoon();
    pair.primary.signal("SIGSTOP");
    await until("the other one", async () => (await pair.primaryPort()) === pair.replica.port);
    const kept = await until("an answer", () =>
      store.ask((client) => client.get("remuda:{test}:kept")).catch(() => undefined),
    );
    expect(kept).toBe("yes");
    await until("it is written", () =>
      store.ask((client) => client.set("remuda:{test}:x", "x")).catch(() => undefined),
    );
    const message: NodeMessage = {
      kind: "cut",
      browser: newBrowserId(onDemandPartition),
      lease: newLeaseId(),
      why: "over",
    };
    await until("a message", async () => {
      await new RedisMessages(store).toNode(nodeA, message).catch(() => {});
      return heard.length > 0;
    });
    const connection = connectForQueues(options, silentLog);
    onTestFinished(() => connection.disconnect());
    const queueOptions = {
      connection,
      prefix: queuePrefix,
      log: silentLog,
      clock: systemClock,
      limitMs: 1000,
    };
    const queues = new Queues(queueOptions);
    const taken: string[] = [];
    const worker = await startWorker(queueOptions, nodeA, async ({ claim }) => void taken.push(claim));
    const job = { kind: "retire", node: nodeA, browser: message.browser, claim: "one" as ClaimId } as const;
    await until("a job", () =>
      queues.add([job]).then(
        () => true,
        () => false,
      ),
    );
    await until("it taken", () => taken.includes("one"));
    await worker.close();
    await queues.close();
    pair.primary.signal("SIGCONT");
  },
);

/**
 * Nobody vouches for the certificate of tests; what NODE_EXTRA_CA_CERTS says at the start cannot be said now.
 */
async function trustAny(url: string): Promise<void> {
  const said: string[] = [];
  const log = { ...silentLog, warn: (fields: object) => void said.push(JSON.stringify(fields)) };
  const store = new ScriptStore(connectAlone({ url, isCluster: false, ...limits }), log);
  const stopping = new AbortController();
  const opening = store.open(stopping.signal).catch(() => {});
  // A connection whose certificate is refused is closed; ioredis does not say why.
  await until("refusals", () => said.filter((text) => text.includes("Connection is closed")).length > 2);
  expect(store.hasContact).toBe(false);
  stopping.abort();
  await opening;
  await store.close();
  process.env["NODE_TLS_REJECT_UNAUTHORIZED"] = "0";
  onTestFinished(() => void delete process.env["NODE_TLS_REJECT_UNAUTHORIZED"]);
}

test("while no sentinel answers a command is the store's trouble, not a wait without end", async () => {
  const options = { url: "redis+sentinel://127.0.0.1:1/herd", isCluster: false, ...limits };
  const store = new ScriptStore(connectAlone(options), silentLog);
  const stopping = new AbortController();
  const opening = store.open(stopping.signal).catch(() => {});
  onTestFinished(async () => {
    stopping.abort();
    await opening;
    await store.close();
  });
  const asked = store.ask((client) => client.ping());
  await expect(within(systemClock, { what: "an answer", limitMs: 10_000 }, asked)).rejects.toMatchObject({
    code: "store_unavailable",
  });
});
