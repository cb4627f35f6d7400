import { type ChildProcess, spawn } from "node:child_process";
import { randomInt } from "node:crypto";
import { once } from "node:events";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { Redis } from "ioredis";
import { pause, systemClock } from "../../../src/base/clock.js";
import { newDirectory } from "../killed-runs.js";
import { redisServer } from "./redis-server.js";

export interface TestRedis {
  /** Path of its unix socket: what `REDIS_URL` may be. */
  readonly url: string;
  /** How a client of clusters reaches it; of no use without `cluster`. */
  readonly clusterUrl: string;
  client(): Redis;
  /** Sends a signal such as SIGSTOP, under which it answers nothing, and SIGCONT. */
  signal(signal: NodeJS.Signals): void;
  stop(): Promise<void>;
}

/**
 * A Redis of the test's own; with `cluster`, a one-node cluster that holds every slot, where a wrong slot is
 * an error; with `port`, also on loopback.
 */
export async function startRedis(options: { cluster?: boolean; port?: number } = {}): Promise<TestRedis> {
  const folder = newDirectory("redis");
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
  const { child, port } = options.cluster
    ? await runAsCluster(args, url)
    : { child: await run(args, url), port: 0 };
  const ended = once(child, "exit");
  return {
    url,
    clusterUrl: `redis://127.0.0.1:${port}`,
    client: () => new Redis(url),
    signal: (signal) => void child.kill(signal),
    async stop() {
      child.kill("SIGKILL");
      await ended;
      // A child that rewrites its file outlives it by a moment.
      await rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
    },
  };
}

/** Resolves when the server answers; throws where it ends before. */
async function run(args: readonly string[], url: string): Promise<ChildProcess> {
  const [program = "", ...words] = redisServer(...args);
  const child = spawn(program, words, { stdio: "ignore" });
  const redis = new Redis(url, { lazyConnect: true, retryStrategy: () => 20, maxRetriesPerRequest: null });
  redis.on("error", () => {});
  const answers = redis.ping().then(
    () => true,
    () => false,
  );
  const isUp = await Promise.race([answers, once(child, "exit").then(() => false)]);
  redis.disconnect();
  if (!isUp) throw new Error("redis-server ended before it answered");
  return child;
}

const mostTries = 10;
/** Below the ports that the kernel gives to whoever asks for any, the one for the bus included. */
const newPort = (): number => randomInt(10_000, 20_000);

interface Cluster {
  readonly child: ChildProcess;
  readonly port: number;
}

async function runAsCluster(args: readonly string[], url: string): Promise<Cluster> {
  const cluster = await runAtSomePort(args, url);
  const redis = new Redis(url);
  await redis.call("CLUSTER", "ADDSLOTSRANGE", "0", "16383");
  await untilUp(redis);
  redis.disconnect();
  return cluster;
}

/** A cluster node wants ports even where only the socket is used, and another program may have those. */
async function runAtSomePort(args: readonly string[], url: string): Promise<Cluster> {
  for (let tries = 1; tries < mostTries; tries += 1) {
    const cluster = await runAt(newPort(), args, url).catch(() => undefined);
    if (cluster) return cluster;
  }
  return await runAt(newPort(), args, url);
}

async function runAt(port: number, args: readonly string[], url: string): Promise<Cluster> {
  const ports = ["--port", `${port}`, "--cluster-port", `${port + 10_000}`];
  const cluster = ["--cluster-enabled", "yes", ...ports, "--cluster-announce-ip", "127.0.0.1"];
  return { child: await run([...args, ...cluster], url), port };
}

async function untilUp(redis: Redis): Promise<void> {
  for (let tries = 0; !String(await redis.call("CLUSTER", "INFO")).includes("cluster_state:ok"); tries += 1) {
    if (tries > 500) throw new Error("the cluster did not come up");
    await pause(systemClock, 20);
  }
}
