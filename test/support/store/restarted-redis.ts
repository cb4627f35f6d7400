import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { Redis } from "ioredis";
import { newDirectory } from "../killed-runs.js";
import { redisClients } from "./redis-clients.js";
import { redisServer } from "./redis-server.js";

/** A Redis with its append-only file, which is killed and started again on what it has kept. */
export interface RestartedRedis {
  readonly url: string;
  client(): Redis;
  /** Killed at once, and up again when this resolves. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

export async function startRestartedRedis(more: readonly string[] = []): Promise<RestartedRedis> {
  const folder = newDirectory("restarted");
  const url = join(folder, "redis.sock");
  const where = ["--port", "0", "--unixsocket", url, "--dir", folder];
  const kept = ["--save", "", "--appendonly", "yes", "--loglevel", "warning"];
  const { client, disconnect } = redisClients(url);
  const start = async (): Promise<ChildProcess> => {
    const [program = "", ...words] = redisServer(...where, ...kept, ...more);
    const child = spawn(program, words, { stdio: "ignore" });
    const asked = client();
    await asked.ping();
    asked.disconnect();
    return child;
  };
  let child = await start();
  const kill = async (): Promise<void> => {
    const ended = once(child, "exit");
    child.kill("SIGKILL");
    await ended;
  };
  return {
    url,
    client,
    async restart() {
      await kill();
      child = await start();
    },
    async stop() {
      disconnect();
      await kill();
      await rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
    },
  };
}
