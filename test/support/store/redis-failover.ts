import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startRedisPair } from "./redis-pair.js";
import { openRedisProxy } from "./redis-proxy.js";

/** A primary and its replica behind one address, as a failover moves it. */
export interface RedisFailover {
  /** What `REDIS_URL` may be. */
  readonly url: string;
  /** What is written from now on, and acknowledged, will be lost. */
  detach(): Promise<void>;
  /** The replica takes the primary's place, with what it had when it was detached. */
  failOver(): Promise<void>;
  stop(): Promise<void>;
}

export async function startRedisFailover(): Promise<RedisFailover> {
  const folder = await mkdtemp(join(tmpdir(), "remuda-failover-"));
  const { replica, primary, caughtUp, stop } = await startRedisPair();
  const proxy = await openRedisProxy(primary.port, join(folder, "redis.sock"));
  return {
    url: proxy.url,
    async detach() {
      await caughtUp();
      await replica.client().replicaof("NO", "ONE");
    },
    async failOver() {
      await proxy.cut();
      proxy.move(replica.port);
      await proxy.restore();
    },
    async stop() {
      await proxy.close();
      await stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
