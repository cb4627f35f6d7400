import { readFileSync } from "node:fs";
import Fastify from "fastify";
import { Redis } from "ioredis";
import { systemClock } from "../../../src/base/clock.js";
import { newBrowserId, newLeaseId, onDemandPartition } from "../../../src/base/ids.js";
import { startPrivateRedis } from "../../../src/store/private/private-redis.js";

// The floor, a program of its own: the same Fastify without hooks, one script per request, the same kind of
// Redis.
const dataDir = process.argv[2] ?? process.env["REMUDA_DATA_DIR"] ?? "";
const privateRedis = await startPrivateRedis({
  dataDir,
  executable: "redis-server",
  startLimitMs: 10_000,
  stopLimitMs: 10_000,
  clock: systemClock,
  environment: { PATH: process.env["PATH"] ?? "" },
  onDeath: (why) => console.error(why),
});
const redis = new Redis(privateRedis.socket);
const load = (name: string): Promise<string> =>
  redis.script("LOAD", readFileSync(new URL(name, import.meta.url), "utf8")) as Promise<string>;
const [acquire, release] = [await load("acquire.lua"), await load("release.lua")];
const keys = ["{pool}:idle", "{pool}:leased", "{pool}:browsers", "{pool}:leases"] as const;

const app = Fastify();
app.post("/acquire", async (_request, reply) => {
  const text = await redis.evalsha(acquire, keys.length, ...keys, newLeaseId());
  return reply.type("application/json").send(text);
});
app.post<{ Body: { session_id: string; lease_id: string } }>("/release", async ({ body }, reply) => {
  const released = await redis.evalsha(release, keys.length, ...keys, body.session_id, body.lease_id);
  return reply.code(released === 1 ? 204 : 409).send();
});
/** `count` idle browsers, each with a record as large as the daemon's answer. */
app.post<{ Body: { count: number; record: object } }>("/fill", async ({ body: { count, record } }, reply) => {
  await redis.flushall();
  for (let place = 0; place < count; place += 1) {
    const id = newBrowserId(onDemandPartition);
    await redis.hset(keys[2], id, JSON.stringify({ ...record, session_id: id }));
    await redis.zadd(keys[0], place, id);
  }
  return reply.code(204).send();
});
await app.listen({ host: "127.0.0.1", port: 0 });
const address = app.server.address();
console.log(`listening ${typeof address === "object" ? address?.port : ""}`);

async function stop(): Promise<void> {
  app.server.closeAllConnections();
  await app.close();
  redis.disconnect();
  await privateRedis.stop();
}
let stopping: Promise<void> | undefined;
for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => void (stopping ??= stop()));
