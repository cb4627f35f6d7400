import type { TestRedis } from "../store/redis.js";

export interface HeardMessage {
  readonly channel: string;
  readonly message: { readonly kind: string } & Readonly<Record<string, unknown>>;
}

/** Records every message between daemons on a Redis. */
export async function openMessageListener(
  server: TestRedis,
  isWanted: (channel: string) => boolean = () => true,
): Promise<{ heard(): Promise<readonly HeardMessage[]>; close(): void }> {
  const redis = server.client();
  const heard: HeardMessage[] = [];
  redis.on("pmessage", (_pattern: string, channel: string, text: string) => {
    if (isWanted(channel)) heard.push({ channel, message: JSON.parse(text) as HeardMessage["message"] });
  });
  await redis.psubscribe("remuda:*");
  return {
    /** The messages since the last call. Redis answers the ping after all that was published before it. */
    async heard() {
      await redis.ping();
      return heard.splice(0);
    },
    close: () => redis.disconnect(),
  };
}
