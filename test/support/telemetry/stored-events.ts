import { Redis } from "ioredis";
import { privateRedisPathsOf } from "../../../src/store/private/paths.js";
import type { TelemetryEvent } from "../../../src/telemetry/event.js";

/** What a daemon's private Redis keeps of the events of a lease. */
export interface StoredTelemetry {
  readonly events: readonly TelemetryEvent[];
  /** Their numbers. */
  readonly seqs: readonly number[];
  /** All of it, as Redis has it. */
  readonly text: string;
}

const eventOf = (fields: readonly string[]): TelemetryEvent =>
  JSON.parse(fields[fields.indexOf("json") + 1] ?? "") as TelemetryEvent;

async function inStream<Found>(
  dataDir: string,
  lease: string,
  read: (redis: Redis, key: string) => Promise<Found>,
): Promise<Found | undefined> {
  const redis = new Redis({ path: (await privateRedisPathsOf(dataDir)).socket });
  try {
    const found: string[] = [];
    for await (const keys of redis.scanStream({ type: "stream", match: `*:${lease}` }))
      found.push(...(keys as string[]));
    const [key] = found;
    return key === undefined ? undefined : await read(redis, key);
  } finally {
    redis.disconnect();
  }
}

/** Everything in the stream of a lease's events, the oldest first. */
export async function readStored(dataDir: string, lease: string): Promise<StoredTelemetry> {
  const entries = await inStream(dataDir, lease, (redis, key) => redis.xrange(key, "-", "+"));
  const kept = (entries ?? []).map(([, fields]) => fields);
  const seqs = (entries ?? []).map(([id]) => Number.parseInt(id, 10));
  return { events: kept.map(eventOf), seqs, text: kept.flat().join("\n") };
}

/** The event that was stored last. */
export async function findNewest(dataDir: string, lease: string): Promise<TelemetryEvent | undefined> {
  const entries = await inStream(dataDir, lease, (redis, key) => redis.xrevrange(key, "+", "-", "COUNT", 1));
  const [newest] = entries ?? [];
  return newest && eventOf(newest[1]);
}
