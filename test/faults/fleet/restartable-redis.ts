import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { rm } from "node:fs/promises";
import { Redis } from "ioredis";
import { newDirectory } from "../../support/killed-runs.js";
import { redisServer } from "../../support/store/redis-server.js";
import type { RestartableRedis } from "./network.js";

interface Place {
  readonly through: readonly string[];
  readonly host: string;
  readonly port: number;
  /** Further settings, as `--replicaof …`. */
  readonly more?: readonly string[];
}

/** What a test does to it besides. */
export interface PlacedRedis extends RestartableRedis {
  readonly url: string;
  signal(signal: NodeJS.Signals): void;
  close(): Promise<void>;
}

/** Writes are on its disk before they are answered, so that a kill takes none of them. */
export async function openRestartableRedis({ through, host, port, more = [] }: Place): Promise<PlacedRedis> {
  const folder = newDirectory("redis");
  const settings = [
    "--bind",
    host,
    "--port",
    String(port),
    "--protected-mode",
    "no",
    "--dir",
    folder,
    "--save",
    "",
  ];
  const kept = ["--appendonly", "yes", "--appendfsync", "always", "--loglevel", "warning"];
  let child: ChildProcess | undefined;
  const client = (): Redis => new Redis(port, host, { retryStrategy: () => 20, maxRetriesPerRequest: null });
  const redis = {
    url: `redis://${host}:${port}`,
    client,
    async start() {
      const [program = "", ...args] = [...through, ...redisServer(...settings, ...kept, ...more)];
      child = spawn(program, args, { stdio: "ignore" });
      const asking = client();
      asking.on("error", () => {});
      await asking.ping();
      asking.disconnect();
    },
    signal: (signal: NodeJS.Signals) => void child?.kill(signal),
    async kill() {
      const ending = child;
      child = undefined;
      ending?.kill("SIGKILL");
      if (ending) await once(ending, "exit");
    },
    async close() {
      await redis.kill();
      await rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
    },
  };
  await redis.start();
  return redis;
}
