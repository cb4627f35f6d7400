import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Redis } from "ioredis";
import { expect, onTestFinished, test } from "vitest";
import { loadScripts } from "../../../src/store/redis/scripts.js";
import { useEveryConnection } from "../../support/store/every-connection.js";
import { redisCertificates } from "../../support/store/redis-certificates.js";
import { startRedisCluster } from "../../support/store/redis-cluster.js";
import { startRedisPair } from "../../support/store/redis-pair.js";
import { clusterRights, leastRights, sentinelRights, vaultRights } from "../../support/store/redis-rights.js";
import { startRedis } from "../../support/store/redis.js";

const limits = { connectTimeoutMs: 5000, commandTimeoutMs: 5000 };
const user = (rights: string): string => `remuda on >secret ${rights}`;

/** A command's name and how many words it has, its name among them (redis.io, COMMAND). */
type Info = readonly [name: string, arity: number] | null;

/** What the server has refused somebody, as it remembers that. */
async function refusedBy(redis: Redis): Promise<readonly unknown[]> {
  return (await redis.call("ACL", "LOG")) as readonly unknown[];
}

test("the documentation shows these rights", () => {
  const page = readFileSync(join(import.meta.dirname, "../../../docs/deployment.md"), "utf8");
  for (const rights of [leastRights, clusterRights, sentinelRights, vaultRights])
    expect(page).toContain(rights);
});

test("whatever a script does, the least rights allow", async () => {
  const server = await startRedis();
  onTestFinished(() => server.stop());
  const redis = server.client();
  onTestFinished(() => redis.disconnect());
  await redis.call("ACL", "SETUSER", ...user(leastRights).split(" "));
  const found = new Set(
    [...loadScripts().values()].flatMap(({ text, judged }) =>
      [text, judged?.text ?? ""].flatMap((each) =>
        [...each.matchAll(/redis\.p?call\("([A-Z]+)"(?:, "([A-Z]+)")?/g)].map(([, ...words]) =>
          words.filter(Boolean).join(" "),
        ),
      ),
    ),
  );
  expect(found.size).toBeGreaterThan(40);
  const refused: string[] = [];
  for (const words of found) {
    const [name = "", ...rest] = words.split(" ");
    const [sub, plain] = (await redis.call("COMMAND", "INFO", `${name}|${rest[0] ?? ""}`, name)) as Info[];
    const lacking = Math.abs((sub ?? plain)?.[1] ?? 0) - 1 - rest.length;
    const given = [...rest, ...Array.from({ length: Math.max(0, lacking) }, () => "remuda:{test}:key")];
    const answer = await redis.call("ACL", "DRYRUN", "remuda", name, ...given);
    if (answer !== "OK") refused.push(`${words}: ${String(answer)}`);
  }
  expect(refused).toEqual([]);
  // And nothing of anybody else's.
  expect(await redis.call("ACL", "DRYRUN", "remuda", "SET", "others", "x")).not.toBe("OK");
  expect(await redis.call("ACL", "DRYRUN", "remuda", "FLUSHALL")).not.toBe("OK");
});

test("commands, messages and jobs of a user with the least rights, in a Redis Cluster", async () => {
  const cluster = await startRedisCluster(["--user", ...user(`${leastRights} ${clusterRights}`).split(" ")]);
  onTestFinished(() => cluster.stop());
  const url = new URL(cluster.url);
  [url.username, url.password] = ["remuda", "secret"];
  await useEveryConnection({ url: url.href, isCluster: true, ...limits });
  for (const at of cluster.proxies.keys()) {
    const redis = cluster.client(at);
    onTestFinished(() => redis.disconnect());
    expect(await refusedBy(redis)).toEqual([]);
  }
});

test("commands, messages and jobs of users with the least rights, by sentinels and TLS", async () => {
  const users = { servers: user(leastRights), sentinels: user(sentinelRights) };
  const pair = await startRedisPair({ sentinels: 1, speech: "mutual tls", users });
  onTestFinished(() => pair.stop());
  const { ca, client: cert, clientKey: key } = redisCertificates;
  await useEveryConnection({
    url: pair.sentinelUrl.replace("://", "://remuda:secret@"),
    isCluster: false,
    sentinelUsername: "remuda",
    sentinelPassword: "secret",
    tls: { ca, cert, key },
    ...limits,
  });
  expect(await refusedBy(pair.primary.client())).toEqual([]);
});
