import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { Redis } from "ioredis";
import { newDirectory } from "../killed-runs.js";
import { redisClients } from "../store/redis-clients.js";
import { redisServer } from "../store/redis-server.js";
import { mountSmallDisk, type SmallDisk } from "./small-disk.js";

const mebibytes = 16;

/** A Redis whose files are on a small disk of their own; its socket is not. */
export interface DiskRedis {
  readonly url: string;
  readonly disk: SmallDisk & { unmount(): void };
  client(): Redis;
  /** Resolves when the server has ended, whoever ended it. */
  ended(): Promise<void>;
  kill(): Promise<void>;
  /** Starts it on what it has kept; resolves when it answers. */
  start(): Promise<void>;
  stop(): Promise<void>;
}

/** `keeps`: what it keeps on its disk, and when. */
export async function startRedisOnDisk(keeps: readonly string[]): Promise<DiskRedis> {
  const folder = newDirectory("disk-redis");
  const files = join(folder, "files");
  mkdirSync(files);
  const disk = mountSmallDisk(files, mebibytes);
  const url = join(folder, "redis.sock");
  const command = ["--port", "0", "--unixsocket", url, "--dir", files, "--loglevel", "warning", ...keeps];
  const [program = "", ...words] = redisServer(...command);
  const { client, disconnect } = redisClients(url);
  let running: { child: ChildProcess; exit: Promise<unknown> } | undefined;
  const ended = async (): Promise<void> => void (await running?.exit);
  const kill = async (): Promise<void> => {
    running?.child.kill("SIGKILL");
    await ended();
  };
  const start = async (): Promise<void> => {
    const child = spawn(program, words, { stdio: "ignore" });
    running = { child, exit: once(child, "exit") };
    const asked = client();
    await asked.get("anything");
    asked.disconnect();
  };
  await start();
  return {
    url,
    disk,
    client,
    ended,
    kill,
    start,
    async stop() {
      disconnect();
      await kill();
      disk.unmount();
      await rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
    },
  };
}
