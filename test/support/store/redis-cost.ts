import type { Redis } from "ioredis";

export interface Cost {
  /** What Redis sent, the asking for this included: some 3 kB. */
  readonly bytes: number;
  /** Reads of a record, inside scripts or outside. */
  readonly reads: number;
  /** Reads of all there are. */
  readonly wholeReads: number;
  /** What was sent at once counts as one. */
  readonly roundTrips: number;
}

async function countersOf(redis: Redis): Promise<Cost> {
  const text = `${await redis.info("stats")}${await redis.info("commandstats")}`;
  const calls = (...names: string[]): number =>
    names.reduce(
      (sum, name) => sum + Number(new RegExp(`^cmdstat_${name}:calls=(\\d+)`, "m").exec(text)?.[1] ?? 0),
      0,
    );
  return {
    bytes: Number(/^total_net_output_bytes:(\d+)/m.exec(text)?.[1]),
    reads: calls("hget"),
    wholeReads: calls("hvals", "hgetall"),
    roundTrips: Number(/^total_reads_processed:(\d+)/m.exec(text)?.[1]),
  };
}

/** What some work cost Redis, where nobody else uses it. */
export async function costOf(redis: Redis, work: () => Promise<unknown>): Promise<Cost> {
  const before = await countersOf(redis);
  await work();
  const after = await countersOf(redis);
  return {
    bytes: after.bytes - before.bytes,
    reads: after.reads - before.reads,
    wholeReads: after.wholeReads - before.wholeReads,
    roundTrips: after.roundTrips - before.roundTrips,
  };
}

async function callsOf(redis: Redis): Promise<ReadonlyMap<string, number>> {
  const text = await redis.info("commandstats");
  const calls = [...text.matchAll(/^cmdstat_(\S+):calls=(\d+)/gm)];
  return new Map(calls.map(([, name = "", count]) => [name, Number(count)]));
}

/**
 * How many of each command some work had Redis execute, inside scripts or outside, where nobody else uses it.
 */
export async function commandsOf(
  redis: Redis,
  work: () => Promise<unknown>,
): Promise<Readonly<Record<string, number>>> {
  const before = await callsOf(redis);
  await work();
  const grown = [...(await callsOf(redis))].map(
    ([name, calls]) => [name, calls - (before.get(name) ?? 0)] as const,
  );
  return Object.fromEntries(grown.filter(([name, calls]) => calls > 0 && name !== "info"));
}
