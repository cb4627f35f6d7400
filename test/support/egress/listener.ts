import type { TestRedis } from "../store/redis.js";

export interface Heard {
  readonly channel: string;
  readonly message: { readonly kind: string } & Readonly<Record<string, unknown>>;
}

/** Hears every message between roles on a Redis. */
export async function openEar(
  server: TestRedis,
  isWanted: (channel: string) => boolean = () => true,
): Promise<{ heard(): Promise<readonly Heard[]>; close(): void }> {
  const redis = server.client();
  const heard: Heard[] = [];
  redis.on("pmessage", (_pattern: string, channel: string, text: string) => {
    if (isWanted(channel)) heard.push({ channel, message: JSON.parse(text) as Heard["message"] });
  });
  await redis.psubscribe("remuda:*");
  return {
    /** What was said since the last call. Redis answers the ping after all that was published before it. */
    async heard() {
      await redis.ping();
      return heard.splice(0);
    },
    close: () => redis.disconnect(),
  };
}
