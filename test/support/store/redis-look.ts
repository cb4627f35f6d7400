import { Redis } from "ioredis";

/**
 * Each has a limit of its own and may outlive the browser it speaks of
 * (CONTRIBUTING.md#what-may-never-happen).
 */
const mayRemember =
  /:(tombstones|tombstoneOrder|tombstoneNames|events|auditStream|answer:.*|idempotency:.*|removal:.*|endedLeases)$/;

/** The keys that still speak of any of these, in name or content; `url` is the path of a socket. */
export async function keysAbout(url: string, words: readonly string[]): Promise<string[]> {
  const redis = new Redis(url);
  try {
    const keys = (await redis.keys("*")).filter((key) => !mayRemember.test(key));
    const texts = await Promise.all(keys.map(async (key) => key + (await contentOf(redis, key))));
    return keys.filter((_, at) => words.some((word) => texts[at]?.includes(word)));
  } finally {
    redis.disconnect();
  }
}

/** Why a browser was retired, as the events of its pool say; `url` is the path of a socket. */
export async function whyRetired(url: string, browser: string): Promise<string | undefined> {
  const redis = new Redis(url);
  try {
    const end = (await movesIn(redis)).find(
      (move) => move.startsWith(`browser ${browser} `) && move.includes(" to retiring "),
    );
    return end?.split(" why ")[1];
  } finally {
    redis.disconnect();
  }
}

/** The moves of all browsers that are kept, a text for each. */
async function movesIn(redis: Redis): Promise<string[]> {
  const streams = (await redis.keys("*:events")).map(async (key) =>
    (await redis.type(key)) === "stream" ? await redis.xrange(key, "-", "+") : [],
  );
  return (await Promise.all(streams)).flat().map(([, fields]) => fields.join(" "));
}

async function contentOf(redis: Redis, key: string): Promise<string> {
  switch (await redis.type(key)) {
    case "string":
      return (await redis.get(key)) ?? "";
    case "hash":
      return JSON.stringify(await redis.hgetall(key));
    case "set":
      return (await redis.smembers(key)).join();
    case "zset":
      return (await redis.zrange(key, "0", "-1")).join();
    case "list":
      return (await redis.lrange(key, "0", "-1")).join();
    case "stream":
      return JSON.stringify(await redis.xrange(key, "-", "+"));
    default:
      return "";
  }
}
