import type { FleetNetwork } from "./network.js";
import { openRestartableRedis } from "./restartable-redis.js";
import { openSwitch } from "./switch.js";

/** Each machine is a network namespace with a cable to the same switch; Redis has one, too. */
export async function openNamespaceNetwork(): Promise<FleetNetwork> {
  const net = await openSwitch();
  const { through, address: host } = await net.join();
  const redis = await openRestartableRedis({ through, host, port: 6379 });
  return {
    kind: "network namespaces",
    redis,
    async join() {
      const { address, ...machine } = await net.join();
      return { ...machine, redisUrl: redis.url, settings: { server: { host: address }, node: {} } };
    },
    async close() {
      await redis.close();
      await net.close();
    },
  };
}
