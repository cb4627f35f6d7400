import type { Redis } from "ioredis";

/** What a replica has that is cut off from its primary. */
export interface Detached {
  readonly keys: readonly string[];
  /** It becomes the truth: all that was written under the pattern meanwhile is lost. */
  takeOver(): Promise<void>;
}

export async function detachReplica(redis: Redis, pattern: string): Promise<Detached> {
  const kept = await Promise.all(
    (await redis.keys(pattern)).map(async (key) => {
      const [dump, ttlMs] = await Promise.all([redis.dumpBuffer(key), redis.pttl(key)]);
      return { key, dump, ttlMs: Math.max(0, ttlMs) };
    }),
  );
  return {
    keys: kept.map(({ key }) => key),
    async takeOver() {
      const written = await redis.keys(pattern);
      await Promise.all(written.map((key) => redis.del(key)));
      await Promise.all(kept.map(({ key, dump, ttlMs }) => dump && redis.restore(key, ttlMs, dump)));
    },
  };
}
