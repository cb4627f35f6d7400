// A process that holds a private Redis and is there to be killed: `redis-holder.mjs <compiled sources> <data
// directory> <redis-server>`.
import { join } from "node:path";
const [compiled, dataDir, executable] = process.argv.slice(2);
const { startPrivateRedis } = await import(join(compiled, "src/store/private/private-redis.js"));
const { systemClock } = await import(join(compiled, "src/base/clock.js"));
const { Redis } = await import(join(compiled, "node_modules/ioredis/built/index.js"));
const redis = await startPrivateRedis({
  dataDir,
  executable,
  startLimitMs: 60_000,
  stopLimitMs: 5000,
  environment: { PATH: "/usr/bin:/bin" },
  clock: systemClock,
  onDeath: () => {},
});
const client = new Redis({ path: redis.socket });
await client.set("horse", "bay");
process.send(redis.pid);
