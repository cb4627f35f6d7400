import { Redis } from "ioredis";

/** Makes clients that wait for a server which is away, and disconnects them all. */
export function redisClients(url: string): { client(): Redis; disconnect(): void } {
  const clients: Redis[] = [];
  return {
    client() {
      const made = new Redis(url, { retryStrategy: () => 20, maxRetriesPerRequest: null });
      made.on("error", () => {});
      clients.push(made);
      return made;
    },
    disconnect() {
      for (const each of clients) each.disconnect();
    },
  };
}
