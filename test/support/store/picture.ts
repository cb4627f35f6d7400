import type { Redis } from "ioredis";

/**
 * What a key holds, as one text. `DUMP` would not do: the order of a hash that grows changes by being looked
 * at.
 */
export async function pictureOf(redis: Redis, key: string): Promise<string> {
  const kind = await redis.type(key);
  switch (kind) {
    case "none":
      return "";
    case "hash":
      return JSON.stringify(
        Object.entries(await redis.hgetall(key)).toSorted(([one], [other]) => (one < other ? -1 : 1)),
      );
    case "list":
      return JSON.stringify(await redis.lrange(key, 0, -1));
    case "set":
      return JSON.stringify((await redis.smembers(key)).toSorted());
    case "zset":
      return JSON.stringify(await redis.zrange(key, "0", "-1", "WITHSCORES"));
    case "stream":
      return JSON.stringify(await redis.xrange(key, "-", "+"));
    case "string":
      return JSON.stringify(await redis.get(key));
    default:
      throw new Error(`${key} is a ${kind}`);
  }
}
