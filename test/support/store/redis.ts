import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { pause, systemClock } from "../../../src/base/clock.js";
import { bound } from "../bound.js";

export interface TestRedis {
  /** Path of its unix socket: what `REDIS_URL` may be. */
  readonly url: string;
  /** How a client of clusters reaches it; of no use without `cluster`. */
  readonly clusterUrl: string;
  client(): Redis;
  /** As SIGSTOP, under which it answers nothing, and SIGCONT. */
  signal(signal: NodeJS.Signals): void;
  stop(): Promise<void>;
}

/**
 * A Redis of the test's own; with `cluster`, a one-node cluster that holds every slot, where a wrong slot is
 * an error; with `port`, also on loopback.
 */
export async function startRedis(options: { cluster?: boolean; port?: number } = {}): Promise<TestRedis> {
  const folder = await mkdtemp(join(tmpdir(), "remuda-redis-"));
  const url = join(folder, "redis.sock");
  const args = [
    "--port",
    String(options.port ?? 0),
    "--bind",
    "127.0.0.1",
    "--unixsocket",
    url,
    "--dir",
    folder,
    "--save",
    "",
    "--appendonly",
    "no",
    "--loglevel",
    "warning",
  ];
  // A cluster node wants a port even where only the socket is used.
  const port = 20_000 + (process.pid % 20_000);
  const cluster = options.cluster
    ? [
        "--cluster-enabled",
        "yes",
        "--port",
        String(port),
        "--bind",
        "127.0.0.1",
        "--cluster-port",
        String(port + 20_000),
        "--cluster-announce-ip",
        "127.0.0.1",
      ]
    : [];
  const [program = "", ...words] = bound("redis-server", ...args, ...cluster);
  const child = spawn(program, words, { stdio: "ignore" });
  const ended = once(child, "exit");
  const redis = new Redis(url, { lazyConnect: true, retryStrategy: () => 20, maxRetriesPerRequest: 200 });
  redis.on("error", () => {});
  await redis.ping();
  if (options.cluster) {
    await redis.call("CLUSTER", "ADDSLOTSRANGE", "0", "16383");
    await untilUp(redis);
  }
  redis.disconnect();
  return {
    url,
    clusterUrl: `redis://127.0.0.1:${port}`,
    client: () => new Redis(url),
    signal: (signal) => void child.kill(signal),
    async stop() {
      child.kill("SIGKILL");
      await ended;
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function untilUp(redis: Redis): Promise<void> {
  for (let tries = 0; !String(await redis.call("CLUSTER", "INFO")).includes("cluster_state:ok"); tries += 1) {
    if (tries > 500) throw new Error("the cluster did not come up");
    await pause(systemClock, 20);
  }
}
