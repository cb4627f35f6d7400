import type { Redis } from "ioredis";
import { systemClock } from "../../../src/base/clock.js";
import { loadScripts } from "../../../src/store/redis/scripts.js";

/** What some work took, and what it asked of Redis. */
export interface Cost {
  readonly tookMs: number;
  /** Commands, those inside scripts included. */
  readonly commands: number;
  /** Processor time of Redis. */
  readonly busyMs: number;
  readonly slow: readonly SlowScript[];
}

/** One script, as often as it took longer than is logged. */
export interface SlowScript {
  readonly name: string;
  /** One of ours, and no command. */
  readonly isScript: boolean;
  readonly times: number;
  readonly medianMs: number;
  readonly longestMs: number;
}

const loggedMicros = 500;
const mostLogged = 50_000;

const nameByDigest = new Map(
  [...loadScripts().values()].flatMap(({ name, sha, judged }) => [
    [sha, name] as const,
    ...(judged ? [[judged.sha, `${name} (judged)`] as const] : []),
  ]),
);

const names = new Set(nameByDigest.values());

async function counters(redis: Redis): Promise<{ at: number; commands: number; busyMs: number }> {
  const [stats, cpu] = await Promise.all([redis.info("commandstats"), redis.info("cpu")]);
  const calls = [...stats.matchAll(/^cmdstat_\S+:calls=(\d+)/gm)].map(([, count]) => Number(count));
  const busy = [...cpu.matchAll(/^used_cpu_(?:user|sys):([\d.]+)/gm)].map(([, seconds]) => Number(seconds));
  const sum = (values: readonly number[]): number => values.reduce((all, value) => all + value, 0);
  return { at: systemClock.monotonic(), commands: sum(calls), busyMs: sum(busy) * 1000 };
}

type LogEntry = readonly [id: number, at: number, micros: number, words: readonly string[]];

export async function costOf(
  redis: Redis,
  work: () => Promise<unknown>,
  slowerThanMicros = loggedMicros,
): Promise<Cost> {
  await redis.config("SET", "slowlog-log-slower-than", slowerThanMicros, "slowlog-max-len", mostLogged);
  await redis.slowlog("RESET");
  const before = await counters(redis);
  await work();
  const after = await counters(redis);
  return {
    tookMs: after.at - before.at,
    commands: after.commands - before.commands,
    busyMs: after.busyMs - before.busyMs,
    slow: slowOf((await redis.slowlog("GET", mostLogged)) as LogEntry[]),
  };
}

function slowOf(entries: readonly LogEntry[]): readonly SlowScript[] {
  const byName = new Map<string, number[]>();
  for (const [, , micros, [command = "", digest = ""]] of entries) {
    const name = nameByDigest.get(digest) ?? command.toLowerCase();
    if (["config", "slowlog", "info"].includes(name)) continue;
    byName.set(name, [...(byName.get(name) ?? []), micros / 1000]);
  }
  return [...byName]
    .map(([name, all]) => {
      const sorted = all.toSorted((one, other) => one - other);
      return {
        name,
        isScript: names.has(name),
        times: sorted.length,
        medianMs: sorted[Math.floor(sorted.length / 2)] ?? 0,
        longestMs: sorted.at(-1) ?? 0,
      };
    })
    .toSorted((one, other) => other.longestMs - one.longestMs);
}
