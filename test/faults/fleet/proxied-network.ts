import { freePort } from "../../support/free-port.js";
import { openRedisProxy, type RedisProxy } from "../../support/store/redis-proxy.js";
import type { FleetNetwork, Machine } from "./network.js";
import { openRestartableRedis } from "./restartable-redis.js";

/**
 * For machines without network namespaces: each daemon goes to Redis by a proxy of its own, and others reach
 * it by another. Connections that are cut are closed, where a cable that is pulled would leave them open.
 */
export async function openProxiedNetwork(): Promise<FleetNetwork> {
  const redis = await openRestartableRedis({ through: [], host: "127.0.0.1", port: await freePort() });
  const proxies: RedisProxy[] = [];
  const open = async (target: number): Promise<{ proxy: RedisProxy; port: number }> => {
    const port = await freePort();
    const proxy = await openRedisProxy(target, port);
    proxies.push(proxy);
    return { proxy, port };
  };
  return {
    kind: "proxies on loopback",
    redis,
    async join(): Promise<Machine> {
      const own = await freePort();
      const ways = [await open(Number(new URL(redis.url).port)), await open(own)] as const;
      return {
        through: [],
        port: own,
        redisUrl: `redis://127.0.0.1:${ways[0].port}`,
        settings: { server: {}, node: { address: `http://127.0.0.1:${ways[1].port}` } },
        cut: async () => void (await Promise.all(ways.map(({ proxy }) => proxy.cut()))),
        restore: async () => void (await Promise.all(ways.map(({ proxy }) => proxy.restore()))),
        delay: async (ms) => ways.forEach(({ proxy }) => proxy.delay(ms)),
      };
    },
    async close() {
      for (const proxy of proxies) await proxy.close();
      await redis.close();
    },
  };
}
