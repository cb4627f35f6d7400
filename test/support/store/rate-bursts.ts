import type { Redis } from "ioredis";
import { expect } from "vitest";
import type { Rate } from "../../../src/access/rate-limiter.js";
import type { Millis } from "../../../src/base/clock.js";
import { Random } from "../../simulation/random.js";

/** Makes so many ms pass for the bucket at a key. */
export async function passFor(redis: Redis, key: string, ms: Millis): Promise<void> {
  const full = await redis.get(key);
  if (full !== null) await redis.set(key, Number(full) - ms * 1000, "KEEPTTL");
}

interface Bursts {
  readonly seed: number;
  readonly perMinute: number;
  /** The time of Redis. */
  now(): Promise<Millis>;
  pass(ms: Millis): Promise<void>;
  /** Each takes one request out of the same bucket, at a daemon of its own. */
  readonly takers: readonly (() => Promise<Rate>)[];
}

/** Bursts at several daemons never get more than the bucket holds, nor less. */
export async function expectBoundBursts({ seed, perMinute, now, pass, takers }: Bursts): Promise<void> {
  const random = new Random(seed);
  const intervalMs = 60_000 / perMinute;
  // Time also passes by itself: at least so many are left, and at most so many.
  let [least, most, at] = [perMinute, perMinute, await now()];
  for (let step = 0; step < 30; step += 1) {
    const refilled = random.below(4);
    await pass(refilled * intervalMs);
    const calls = Array.from({ length: random.below(9) }, () => random.pick(takers)?.());
    const got = (await Promise.all(calls)).flatMap((rate) => rate ?? []);
    const later = await now();
    least = Math.min(perMinute, least + refilled);
    most = Math.min(perMinute, most + refilled + (later - at + 1) / intervalMs);
    at = later;
    const taken = got.filter(({ retryAfterMs }) => retryAfterMs === undefined).length;
    expect(taken).toBeGreaterThanOrEqual(Math.min(least, calls.length));
    expect(taken).toBeLessThanOrEqual(most);
    [least, most] = [Math.max(0, least - taken), most - taken];
    const waits = got.map(({ retryAfterMs = 1 }) => retryAfterMs);
    expect(waits.every((ms) => ms > 0 && ms <= intervalMs)).toBe(true);
  }
}
