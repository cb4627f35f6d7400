import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { CannotStart } from "../../../src/base/cannot-start.js";
import { AppendWait } from "../../../src/store/redis/append-wait.js";
import { connect, type RedisOptions } from "../../../src/store/redis/connect.js";
import { ScriptStore } from "../../../src/store/redis/redis.js";
import { readTls, type RedisTls } from "../../../src/store/redis/tls.js";
import { silentLog } from "../../support/browser/chromium-host.js";
import { until } from "../../support/browser/chromium-until.js";
import { useEveryConnection } from "../../support/store/every-connection.js";
import { redisCertificates } from "../../support/store/redis-certificates.js";
import { type RedisCluster, startRedisCluster } from "../../support/store/redis-cluster.js";
import { type RedisPair, startRedisPair } from "../../support/store/redis-pair.js";

const { ca, otherCa, client: cert, clientKey: key } = redisCertificates;

/** All of them show a certificate of `ca`, and take only clients that show one. */
let pair: RedisPair;
let cluster: RedisCluster;
beforeAll(async () => {
  pair = await startRedisPair({ sentinels: 1, speech: "mutual tls" });
  cluster = await startRedisCluster([], "mutual tls");
});
afterAll(async () => {
  await pair.stop();
  await cluster.stop();
});

type Way = "a single Redis" | "sentinels" | "a Redis Cluster";
const ways: readonly Way[] = ["a single Redis", "sentinels", "a Redis Cluster"];
const urlOf = (way: Way): string =>
  ({ "a single Redis": pair.primary.url, sentinels: pair.sentinelUrl, "a Redis Cluster": cluster.url })[way];
const optionsOf = (way: Way, tls: RedisTls): RedisOptions => ({
  url: urlOf(way),
  isCluster: way === "a Redis Cluster",
  connectTimeoutMs: 5000,
  commandTimeoutMs: 5000,
  tls,
});

test.each(ways)("by TLS, with a CA of one's own and a certificate that is asked for: %s", async (way) => {
  const options = optionsOf(way, { ca, cert, key });
  await useEveryConnection(options);
  // That of vaults' changes as well; in a cluster nobody waits for these.
  if (!options.isCluster) await expect(new AppendWait(options).isOffered()).resolves.toBe(false);
});

test.each(
  ways.flatMap((way) => [
    [way, "another CA", { ca: otherCa, cert, key }] as const,
    [way, "no CA of one's own", { cert, key }] as const,
    [way, "no certificate", { ca }] as const,
  ]),
)("%s is not spoken to with %s", async (way, _, tls) => {
  const said: string[] = [];
  const log = { ...silentLog, warn: (_fields: object, message: string) => void said.push(message) };
  const store = new ScriptStore(connect(optionsOf(way, tls)), log);
  const stopping = new AbortController();
  const opening = store.open(stopping.signal).catch(() => {});
  onTestFinished(async () => {
    stopping.abort();
    await opening;
    await store.close();
  });
  await until("refusals", () => said.filter((text) => text === "redis connection failed").length > 2);
  expect(store.hasContact).toBe(false);
});

test("files that cannot be read, or do not go together, keep a daemon from its start", async () => {
  const folder = await mkdtemp(join(tmpdir(), "remuda-tls-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const place = async (name: string, text: string): Promise<string> => {
    await writeFile(join(folder, name), text);
    return join(folder, name);
  };
  const files = {
    tlsCaFile: await place("ca.pem", ca),
    tlsCertificateFile: await place("client.pem", cert),
    tlsKeyFile: await place("client.key", key),
  };
  expect(readTls(files)).toEqual({ ca, cert, key });
  expect(readTls({ tlsCaFile: null, tlsCertificateFile: null, tlsKeyFile: null })).toEqual({});
  const other = await place("other.key", redisCertificates.serverKey);
  expect(() => readTls({ ...files, tlsKeyFile: other })).toThrow(CannotStart);
  expect(() => readTls({ ...files, tlsCaFile: join(folder, "none.pem") })).toThrow(/tls_ca_file.*ENOENT/);
});
